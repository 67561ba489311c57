"""How a replay makes its random draws, and where it takes the reference's from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from reprobundle.errors import BadCallError
from reprobundle.format.record import DrawMode
from reprobundle.replay.plan import PlannedRun, ReplayPlan
from reprobundle.run.launch import Draws

Asked = DrawMode | Literal[""]


def kept_draws(plan: ReplayPlan) -> list[str]:
    """Return the members of the bundle that hold draws of the planned runs."""
    found = (_member(run, plan) for run in plan.runs)
    return sorted({member for member in found if member})


def require_kept(plan: ReplayPlan, asked: Asked) -> None:
    """Refuse to take draws that nobody kept.

    Raises:
        BadCallError: The bundle holds no draws and ``recorded`` was asked for.
    """
    if asked == "recorded" and not kept_draws(plan):
        raise BadCallError(
            "this bundle holds no draws to take",
            advice="use --rng portable, or have it packed with --rng recorded",
        )


def draws_of(run: PlannedRun, plan: ReplayPlan, asked: Asked, folder: Path) -> Draws:
    """Return how one run makes its draws.

    Args:
        run: The run.
        plan: All runs of the replay.
        asked: What the caller asked for; empty for the way of the reference.
        folder: Where the bundle's members were extracted to.

    Returns:
        Portable draws where the reference's were to be taken and are not there: its
        record then says so.
    """
    mode = asked or run.record.randomness.drawn.mode
    if mode != "recorded":
        return Draws(mode)
    if run.pass_name == "restart":
        # A resumed process starts in the middle, and must not be given the beginning.
        return Draws("portable")
    member = _member(run, plan)
    return Draws("recorded", folder / member) if member else Draws("portable")


def _member(run: PlannedRun, plan: ReplayPlan) -> str:
    """Return the member with the draws of a run's command; its first run kept them."""
    for other in plan.runs:
        name = other.record.randomness.drawn.member
        if name and other.record.command.argv == run.record.command.argv:
            return f"runs/{other.number}/{name}"
    return ""
