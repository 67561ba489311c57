"""Read what a bundle holds into one document, for a person and for ``--json``.

Nothing is judged and no content digest is proved here. A sealed document that breaks
its schema is an error; a replay lies outside the seal, so one that cannot be read is
shown with the reason instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Literal, TypeVar

import msgspec

from reprobundle.errors import BundleError
from reprobundle.format.canonical import decode
from reprobundle.format.lock import LOCK_MEMBER, Lock
from reprobundle.format.manifest import Manifest
from reprobundle.format.part import Part
from reprobundle.format.policy import Policy
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Count, MemorySample, MemorySeries, Record
from reprobundle.report import text
from reprobundle.run.unread import unread_members
from reprobundle.verify.timing import without_duration

POLICY_MEMBER = "policy.json"
RECORD_NAME = "record.json"
RULES = {POLICY_MEMBER: "R-7.1", LOCK_MEMBER: "R-7.3"}
RECORD_RULE = "R-7.2"

Document = TypeVar("Document")


class MemoryPoint(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """All samples of one run that were taken at one named point.

    Attributes:
        point: Name of the point.
        samples: How many there are.
        first_ns: Time of the first one since the start of the run.
        peak_bytes: The largest value of each counter.
    """

    point: str
    samples: Count
    first_ns: int
    peak_bytes: dict[str, int]


class RunView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One sealed run: its number, its record, its memory by named point.

    Attributes:
        number: The number.
        record: The record as it is.
        memory_points: Its memory by named point.
        no_durations: Phases whose times in the record are no durations, because the
            device was not waited for.
    """

    number: Count
    record: Record
    memory_points: tuple[MemoryPoint, ...]
    no_durations: tuple[str, ...] = ()


class ReplayView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attached replay: its record, or why that could not be read."""

    id: str
    record: Record | None = None
    problem: str = ""


class BundleView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one bundle holds.

    Attributes:
        bundle: Bundle id.
        size_bytes: Size of the file.
        newer_minor: Whether it follows a newer 1.x, so that it may hold more.
        manifest: Every sealed member.
        policy: What counts as the same result.
        lock: The environment of the reference; None when it is not in the bundle.
        runs: The sealed runs by number; the first one is the reference.
        replays: The attached replays, in the order of attaching.
        signatures: Names of the files below ``signatures/``; none is checked here.
        acceptances: Ids of the attached acceptance records; none is checked here.
        unread: Files of the project that no run was seen to read, by their names.
        not_checked: What was not read for this view, and so not compared with what
            was sealed.
        part: Which members are not here, if the file is one part of a bundle.
    """

    schema: Literal["reprobundle/view/1"] = "reprobundle/view/1"
    bundle: str
    size_bytes: Count
    newer_minor: bool
    manifest: Manifest
    policy: Policy
    lock: Lock | None
    runs: tuple[RunView, ...]
    replays: tuple[ReplayView, ...]
    signatures: tuple[str, ...]
    unread: tuple[str, ...] = ()
    acceptances: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    part: Part | None = None


def view(bundle: Bundle) -> BundleView:
    """Return what `bundle` holds.

    Args:
        bundle: An open bundle.

    Raises:
        MissingMemberError: It has no policy.
        DocumentError: A sealed document breaks its schema.
        DigestError: A sealed document is not what was sealed.
    """
    has_lock = LOCK_MEMBER in bundle.members
    runs = tuple(_run(bundle, number) for number in _run_numbers(bundle))
    unread = unread_members(bundle.members, [run.record for run in runs])
    return BundleView(
        bundle=bundle.id,
        size_bytes=bundle.size_bytes,
        newer_minor=bundle.newer_minor,
        manifest=bundle.manifest,
        policy=_sealed(bundle, POLICY_MEMBER, Policy),
        lock=_sealed(bundle, LOCK_MEMBER, Lock) if has_lock else None,
        runs=runs,
        replays=tuple(_replay(bundle, replay_id) for replay_id in bundle.replay_ids),
        signatures=bundle.signatures,
        acceptances=bundle.acceptance_ids,
        part=bundle.part,
        unread=tuple(path.removeprefix("project/") for path in unread),
        not_checked=tuple(_not_checked(bundle, _read_members(bundle, runs))),
    )


def _read_members(bundle: Bundle, runs: Iterable[RunView]) -> set[str]:
    series = (f"runs/{run.number}/{run.record.memory.series}" for run in runs)
    records = (f"runs/{run.number}/{RECORD_NAME}" for run in runs)
    return {POLICY_MEMBER, LOCK_MEMBER, *series, *records} & set(bundle.members)


def _not_checked(bundle: Bundle, read: Set[str]) -> Iterator[str]:
    left = [one for path, one in bundle.members.items() if path not in read]
    if left:
        size_bytes = sum(member.size_bytes for member in left)
        members = text.plural(len(bundle.members), "member")
        yield f"the content of {len(left):,} of {members} ({text.size(size_bytes)})"
    files = sum(len(bundle.replay_entries(one)) - 1 for one in bundle.replay_ids)
    if files:
        yield f"{text.plural(files, 'file')} of the attached replays"
    if not bundle.proven:
        yield "the ZIP headers before what was not read"


def _sealed(bundle: Bundle, path: str, kind: type[Document]) -> Document:
    rule = RULES.get(path, RECORD_RULE)
    return decode(bundle.read(path), kind, where=path, rule=rule)


def _run_numbers(bundle: Bundle) -> list[int]:
    return sorted(
        int(member.path.split("/")[1])
        for member in bundle.members.values()
        if member.role == "record"
    )


def _run(bundle: Bundle, number: int) -> RunView:
    record = _sealed(bundle, f"runs/{number}/{RECORD_NAME}", Record)
    series = f"runs/{number}/{record.memory.series}"
    points: tuple[MemoryPoint, ...] = ()
    if record.memory.series and series in bundle.members:
        points = memory_points(_sealed(bundle, series, MemorySeries))
    return RunView(
        number=number,
        record=record,
        memory_points=points,
        no_durations=tuple(phase.name for phase in without_duration(record)),
    )


def memory_points(series: MemorySeries) -> tuple[MemoryPoint, ...]:
    """Return the samples of `series` by point, in the order of their first sample."""
    by_point: dict[str, list[MemorySample]] = {}
    for sample in sorted(series.samples, key=lambda sample: sample.t_ns):
        by_point.setdefault(sample.point, []).append(sample)
    return tuple(
        MemoryPoint(
            point=point,
            samples=len(samples),
            first_ns=samples[0].t_ns,
            peak_bytes=_peaks(samples),
        )
        for point, samples in by_point.items()
    )


def _peaks(samples: Iterable[MemorySample]) -> dict[str, int]:
    peaks: dict[str, int] = {}
    for sample in samples:
        for counter, size_bytes in sample.bytes.items():
            peaks[counter] = max(size_bytes, peaks.get(counter, size_bytes))
    return peaks


def _replay(bundle: Bundle, replay_id: str) -> ReplayView:
    name = f"replays/{replay_id}/{RECORD_NAME}"
    try:
        record = decode(
            bundle.read_unsealed(name), Record, where=name, rule=RECORD_RULE
        )
    except BundleError as error:
        return ReplayView(id=replay_id, problem=str(error))
    return ReplayView(id=replay_id, record=record)
