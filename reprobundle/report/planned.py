"""What a replay would do, shown before anyone consents to it."""

from __future__ import annotations

from reprobundle.replay.plan import ReplayPlan
from reprobundle.report import text


def render_plan(plan: ReplayPlan) -> str:
    """Return the commands, and the time, disk and memory the author measured."""
    lines = [f"bundle     {plan.bundle}", "integrity  every digest is right"]
    for run in plan.runs:
        command = " ".join(run.record.command.argv)
        lines.append(
            f"will run   {text.safe(command)}  "
            f"({run.record.pass_name} pass, claim {text.safe(run.record.claim)})"
        )
    memory = text.size(plan.peak_bytes) if plan.peak_bytes else "unknown"
    lines.append(
        f"needs      about {text.duration(plan.expected_ns)}, "
        f"{text.size(3 * plan.files_bytes)} disk, {memory} memory "
        "(as measured by the author)"
    )
    if plan.skipped:
        lines.append(f"not run    claims {', '.join(map(text.safe, plan.skipped))}")
    lines.append("warning    this is foreign code; it runs with your rights")
    return "\n".join(lines)
