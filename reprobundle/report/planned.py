"""What a replay would do, shown before anyone consents to it."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.replay.plan import ReplayPlan
from reprobundle.report import text
from reprobundle.report.layout import paragraph
from reprobundle.report.screen import Line, Screen, Style


def render_plan(plan: ReplayPlan, screen: Screen | None = None) -> str:
    """Return the commands, and the time, disk and memory the author measured."""
    screen = screen or Screen()
    lines: list[Line] = []
    for label, words, style in _told(plan):
        lines.extend(paragraph(screen, label, words, style=style, whole=True))
    return screen.text(lines)


def _told(plan: ReplayPlan) -> Iterator[tuple[str, str, Style]]:
    yield "bundle", plan.bundle, ""
    yield "integrity", "every digest is right", "good"
    for run in plan.runs:
        command = " ".join(run.record.command.argv)
        which = f"({run.record.pass_name} pass, claim {run.record.claim})"
        yield "will run", f"{command}  {which}", "strong"
    memory = text.size(plan.peak_bytes) if plan.peak_bytes else "unknown"
    time, disk = text.duration(plan.expected_ns), text.size(3 * plan.files_bytes)
    needs = f"about {time}, {disk} disk, {memory} memory (as measured by the author)"
    yield "needs", needs, ""
    if plan.skipped:
        yield "not run", f"claims {', '.join(plan.skipped)}", "warn"
    yield "warning", "this is foreign code; it runs with your rights", "warn"
