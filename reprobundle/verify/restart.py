"""Whether the result is the same after a stop and a resume (V22)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from reprobundle.format.findings import CheckOutcome, Finding, OutputComparison
from reprobundle.format.policy import Policy
from reprobundle.format.record import Output, Record
from reprobundle.verify.checks import finding
from reprobundle.verify.content import Content
from reprobundle.verify.ending import is_finished
from reprobundle.verify.protocol import optimizer_steps
from reprobundle.verify.sealed import Sealed

_GOOD = ("bit-identical", "within-tolerance")
_RECORDED = re.compile(r"(?P<base>record:.*?)(?:#(?P<number>[0-9]+))?$", re.DOTALL)


class Restarted(NamedTuple):
    """A restart pass, and the straight run it must agree with.

    Attributes:
        where: Its name, such as ``runs/4``.
        record, content: The resumed run.
        straight, straight_content: The run that was not stopped.
        is_sealed: Whether the author made it at packing.
    """

    where: str
    record: Record
    content: Content
    straight: Record
    straight_content: Content
    is_sealed: bool


class Resumed(NamedTuple):
    """What came of a stop and a resume.

    Attributes:
        unmade: Why nothing is known about it; empty if something is.
        failed: How the resumed run ended otherwise than the straight one, or empty.
        outputs: How each output that is judged stands to that of the straight run.
    """

    unmade: str = ""
    failed: str = ""
    outputs: tuple[OutputComparison, ...] = ()

    @property
    def differing(self) -> tuple[OutputComparison, ...]:
        """Outputs that are not as straight through, or could not be compared."""
        return tuple(one for one in self.outputs if one.result not in _GOOD)


def resumed(one: Restarted, policy: Policy) -> Resumed:
    """Compare a resumed run with the straight one.

    Args:
        one: Both runs.
        policy: The policy to compare under.
    """
    from reprobundle.verify.compare import compare_outputs

    unmade = _not_made(one)
    if unmade:
        return Resumed(unmade=unmade)
    status = one.record.outcome.exit_status
    if status != one.straight.outcome.exit_status:
        error = one.record.outcome.error
        text = f": {error.type}: {error.message}" if error else ""
        reason = f"the resumed run ended with status {status}{text}"[:300]
        return Resumed(failed=reason)
    records = comparable(one.straight, one.record)
    comparisons = compare_outputs(
        *records, one.straight_content, one.content, policy=policy
    )
    judged = tuple(item for item in comparisons if not item.excluded)
    if not judged:
        return Resumed(
            unmade="the resumed run has no output to compare with the straight one"
        )
    return Resumed(outputs=judged)


def check_restart(sealed: Sealed, restarts: Sequence[Restarted]) -> Iterator[Finding]:
    """Yield the findings of V22.

    Args:
        sealed: The decoded documents of the bundle.
        restarts: The author's and the newest replayed restart pass.
    """
    if not restarts:
        yield _not_asked(sealed.reference)
        return
    yield finding("restart-asked", "pass", f"{len(restarts)} restart passes")
    for one in restarts:
        yield from _told(one, resumed(one, sealed.policy))


def _not_asked(reference: Record) -> Finding:
    saves = any(phase.name == "checkpoint" for phase in reference.phases)
    if not saves:
        reason = "the run saves and loads no checkpoint"
        return finding("restart-asked", "not-applicable", reason)
    return finding(
        "restart-asked",
        "not-checked",
        "whether the result survives a stop and a resume was not asked for",
        advice="use --restart-check",
    )


def _not_made(one: Restarted) -> str:
    """Return why a restart pass shows nothing about a resume, or nothing."""
    restart = one.record.restart
    if restart is None:
        return "its record does not say what was stopped"
    if restart.reason:
        return restart.reason
    if not is_finished(one.record):
        return one.record.outcome.stop_detail or "the resumed run did not end by itself"
    if one.record.files_digest != one.straight.files_digest:
        return "it started from other files than the straight run"
    steps = optimizer_steps(one.straight)
    if steps and restart.steps_after >= steps:
        return (
            f"the resumed process made {restart.steps_after} optimizer steps, as many "
            f"as the straight run ({steps}): it began anew"
        )
    return ""


def _told(one: Restarted, done: Resumed) -> Iterator[Finding]:
    bad: CheckOutcome = "warn" if one.is_sealed else "fail"
    if done.unmade:
        yield finding(
            "restart-made",
            "not-checked",
            done.unmade,
            where=one.where,
            advice="name the command that resumes with --resume-command",
        )
    elif done.failed:
        yield finding("restart-differs", bad, done.failed, where=one.where)
    else:
        yield from _results(one, done, bad)


def _results(one: Restarted, done: Resumed, bad: CheckOutcome) -> Iterator[Finding]:
    judged = done.outputs
    restart = one.record.restart
    for item in done.differing:
        yield finding(
            "restart-differs",
            "not-checked" if item.result == "not-compared" else bad,
            "stopped and resumed, it comes out otherwise than straight through: "
            f"{item.reason or item.result}",
            where=f"{one.where}, {item.name}",
            advice="save and restore every generator state and the place in the data",
        )
    if not done.differing and restart is not None:
        exact = all(item.result == "bit-identical" for item in judged)
        yield finding(
            "restart-differs",
            "pass",
            f"stopped after step {restart.steps_before} and resumed from "
            f"{restart.checkpoint}: {len(judged)} outputs "
            f"{'bit-identical' if exact else 'within tolerance'}",
            where=one.where,
        )


def comparable(straight: Record, resumed: Record) -> tuple[Record, Record]:
    """Return both records with the outputs that a resumed process can have.

    A value that is recorded again and again is numbered from the start of the
    process; the resumed one has only the last of them, so they are matched from the
    end. Numbers printed before the stop are not in its log: they are left out.
    """
    offsets = _offsets(straight.outputs, resumed.outputs)
    renamed = tuple(
        msgspec.structs.replace(output, name=_shifted(output.name, offsets))
        for output in resumed.outputs
        if not output.name.startswith("metric:")
    )
    names = {output.name for output in renamed}
    kept = tuple(
        output
        for output in straight.outputs
        if output.name in names or not output.name.startswith(("record:", "metric:"))
    )
    return (
        msgspec.structs.replace(straight, outputs=kept),
        msgspec.structs.replace(resumed, outputs=renamed),
    )


def _offsets(straight: Sequence[Output], resumed: Sequence[Output]) -> dict[str, int]:
    """Return base name → how many values the straight run recorded before."""
    counts = [_counts(straight), _counts(resumed)]
    return {base: counts[0].get(base, n) - n for base, n in counts[1].items()}


def _counts(outputs: Sequence[Output]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for output in outputs:
        match = _RECORDED.fullmatch(output.name)
        if match:
            counts[match["base"]] = counts.get(match["base"], 0) + 1
    return counts


def _shifted(name: str, offsets: dict[str, int]) -> str:
    match = _RECORDED.fullmatch(name)
    if match is None:
        return name
    number = int(match["number"] or 1) + offsets.get(match["base"], 0)
    return match["base"] if number == 1 else f"{match['base']}#{number}"
