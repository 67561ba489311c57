"""Whether both runs made their random draws in the same way (V12)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from reprobundle.format.findings import Finding
from reprobundle.format.record import Drawn, Record
from reprobundle.verify.checks import finding


def check_drawn(reference: Record, replay: Record) -> Iterator[Finding]:
    """Yield the findings about how the draws of one replay were made."""
    expected, got = reference.randomness.drawn, replay.randomness.drawn
    if replay.pass_name == "restart" and expected.mode == "recorded":
        # A run that is resumed in the middle cannot take what the beginning drew.
        expected = msgspec.structs.replace(expected, mode="portable")
    if expected.mode == got.mode:
        yield finding("same-draws", "pass", f"random draws are {got.mode}")
    else:
        yield finding(
            "same-draws",
            "warn",
            f"random draws are {got.mode} in the replay and {expected.mode} in the "
            "reference",
            expected=expected.mode,
            got=got.mode,
            advice=f"replay with --rng {expected.mode}",
        )
    if got.mode == "recorded":
        yield _taken(got)
        yield from _not_followed(replay)
    if got.mode != "native":
        yield _on_device(got)


def _taken(drawn: Drawn) -> Finding:
    if drawn.stopped:
        return finding(
            "draws-taken",
            "warn",
            f"the reference's draws were taken {drawn.taken:,} times and no longer: "
            f"{drawn.stopped}",
            got=drawn.stopped,
        )
    if drawn.missing:
        return finding(
            "draws-taken",
            "warn",
            f"{drawn.missing:,} draws of the reference were not made here",
            expected=drawn.followed + drawn.missing,
            got=drawn.followed,
        )
    if not drawn.taken:
        return finding(
            "draws-taken", "not-checked", "nothing of the reference was there to take"
        )
    return finding(
        "draws-taken",
        "pass",
        f"{drawn.taken:,} draws, weights and batches are the reference's; this "
        f"machine had other values for {drawn.differing:,} of them, and "
        f"{drawn.followed:,} draws were made in all",
    )


def _not_followed(replay: Record) -> Iterator[Finding]:
    """Yield which processes drew for themselves: only the main one's are numbered."""
    workers = max((one.workers for one in replay.randomness.loaders), default=0)
    others = [f"{workers} workers of a data loader"] if workers else []
    others += [f"{len(replay.ranks)} ranks"] if len(replay.ranks) > 1 else []
    if others:
        yield finding(
            "draws-taken",
            "not-checked",
            f"draws of {' and '.join(others)} are this machine's own, not the "
            "reference's: only those of the main process are kept and taken",
            where="other processes",
            advice="load with num_workers=0, in one process, to take every draw",
        )


def _on_device(drawn: Drawn) -> Finding:
    if drawn.on_device:
        return finding(
            "draws-on-device",
            "warn",
            "its own generator was drawn from, by something that portable draws do "
            "not reach",
            where=", ".join(drawn.on_device),
        )
    return finding(
        "draws-on-device",
        "pass",
        f"{drawn.moved:,} draws for a device were made by the CPU's generator",
    )
