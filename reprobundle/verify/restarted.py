"""Which straight run a restart pass must agree with (V22)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.reader import Bundle
from reprobundle.verify.claims import Replay
from reprobundle.verify.content import attached
from reprobundle.verify.content import sealed as sealed_content
from reprobundle.verify.ending import is_finished
from reprobundle.verify.restart import Restarted
from reprobundle.verify.sealed import REFERENCE_RUN, Sealed


def restarted_at_packing(bundle: Bundle, sealed: Sealed) -> Iterator[Restarted]:
    """Yield the author's restart pass with the reference, if there is one."""
    straight = sealed.reference
    for number, record in sealed.runs.items():
        if record.role == "restart":
            yield Restarted(
                f"runs/{number}",
                record,
                sealed_content(bundle, number, record),
                straight,
                sealed_content(bundle, REFERENCE_RUN, straight),
                is_sealed=True,
            )


def restarted_replay(
    bundle: Bundle, sealed: Sealed, one: Replay, replays: Sequence[Replay]
) -> Restarted:
    """Return a replayed restart pass with the straight run of its occasion.

    Args:
        bundle: The bundle both are replays of.
        sealed: Its decoded documents.
        one: The restart pass.
        replays: Every other replay. Where none of them is the straight run of the
            same occasion and device, the reference stands in its place.
    """
    straight = sealed.reference
    content = sealed_content(bundle, REFERENCE_RUN, straight)
    for other in replays:
        if _is_straight_run_of(one, other) and is_finished(other.record):
            straight = other.record
            content = attached(bundle, other.source, other.id, straight)
    return Restarted(
        f"replays/{one.id}",
        one.record,
        attached(bundle, one.source, one.id, one.record),
        straight,
        content,
        is_sealed=False,
    )


def _is_straight_run_of(one: Replay, other: Replay) -> bool:
    return (
        other.group == one.group
        and other.record.pass_name == "measured"
        and other.record.devices.requested == one.record.devices.requested
    )
