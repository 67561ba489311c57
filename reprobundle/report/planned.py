"""What a replay would do, shown before anyone consents to it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reprobundle.format.record import STAND_IN
from reprobundle.replay.draws import expected_draws
from reprobundle.replay.plan import ReplayPlan
from reprobundle.report import text
from reprobundle.report.layout import paragraph
from reprobundle.report.screen import Line, Screen, Style
from reprobundle.run.command import replace_words
from reprobundle.run.data_rules import rules_of, told
from reprobundle.run.own_words import own_words
from reprobundle.run.system_packages import install_command, missing_packages

# Room for the archives beside the unpacked packages.
ARCHIVES = 1.5


def render_plan(
    plan: ReplayPlan,
    screen: Screen | None = None,
    *,
    fresh_environment: bool = False,
    overridden: str = "",
) -> str:
    """Return the commands, and the time, disk and memory the author measured.

    Args:
        plan: What would be run.
        screen: Where it is shown.
        fresh_environment: Whether an environment is built for it first.
        overridden: What of the policy is not followed, and why.
    """
    screen = screen or Screen()
    lines: list[Line] = []
    for label, words, style in _told(
        plan, fresh_environment=fresh_environment, overridden=overridden
    ):
        lines.extend(paragraph(screen, label, words, style=style, whole=True))
    return screen.text(lines)


def _told(
    plan: ReplayPlan, *, fresh_environment: bool, overridden: str
) -> Iterator[tuple[str, str, Style]]:
    yield "bundle", plan.bundle, ""
    yield "integrity", "every digest is right", "good"
    for run in plan.runs:
        # Who consents sees the paths of this machine.
        here = own_words(run.record.command.placeholders)
        argv = (replace_words(part, here) for part in run.record.command.argv)
        command = shlex.join(argv)
        which = f"({run.pass_name} pass, claim {run.record.claim})"
        yield "will run", f"{command}  {which}", "strong"
    memory = text.size(plan.peak_bytes) if plan.peak_bytes else "unknown"
    time, disk = text.duration(plan.expected_ns), text.size(3 * plan.files_bytes)
    needs = f"about {time}, {disk} disk, {memory} memory (as measured by the author)"
    yield "needs", needs, ""
    if fresh_environment:
        room = text.size(int(plan.lock.size_bytes * ARCHIVES))
        packages = text.plural(len(plan.lock.distributions), "package")
        words = f"{packages} from the lock, {room} disk; an equal one is used again"
        yield "environment", words, ""
    draws = expected_draws(run.record for run in plan.runs)
    if draws:
        words = (
            f"fingerprints of {', '.join(sorted(draws))} are compared before the run"
        )
        yield "random", words, ""
    if plan.system_packages is not None:
        missing = missing_packages(plan.system_packages)
        if missing:
            command = install_command(plan.system_packages, missing)
            words = f"not installed here: {', '.join(missing)}; not run: {command}"
            yield "system", words, "warn"
    yield from _of_data(plan, overridden)
    if any(run.record.claim == STAND_IN for run in plan.runs):
        names = ", ".join(plan.samples)
        yield "stand-ins", f"samples are in the place of {names}", "warn"
    if plan.skipped:
        yield "not run", f"claims {', '.join(plan.skipped)}", "warn"
    yield "warning", "this is foreign code; it runs with your rights", "warn"


def _of_data(plan: ReplayPlan, overridden: str) -> Iterator[tuple[str, str, Style]]:
    rules = rules_of(plan.policy)
    if rules is not None:
        yield "data", told(rules), "warn"
        yield "copies", "each one made here is noted: reprobundle copies", ""
    if overridden:
        yield "overridden", overridden, "bad"
    for one in plan.withheld:
        copy = plan.data.get(one.name)
        words = f"{copy} as {one.name}" if copy else f"not given: {one.name}"
        yield "your data", words, "" if copy else "warn"
