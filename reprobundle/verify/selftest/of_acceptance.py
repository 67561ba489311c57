"""Mutations of an acceptance record: a statement that its evidence does not bear out.

Each forged record has the digest it is named by, as a forger would see to; what gives
it away is that the assessment in it does not follow from the bundle.
"""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from reprobundle.format.acceptance_record import AcceptanceRecord, Reports
from reprobundle.format.archive import ArchiveWriter
from reprobundle.format.assessment import Assessment, Evidence, HeldFor, Point
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes
from reprobundle.format.limits import RAW_BYTES
from reprobundle.format.pairing import acceptance_name
from reprobundle.format.reader import open_bundle
from reprobundle.verify.assessment.making import Statement, make_acceptance
from reprobundle.verify.selftest.altered_replay import OTHER_DIGEST, ids
from reprobundle.verify.selftest.mutation import Made, Mutation
from reprobundle.verify.selftest.subject import Subject
from reprobundle.verify.verify import verify_bundle

Change = Callable[[AcceptanceRecord], AcceptanceRecord]
_WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def put_behind(bundle_path: Path, name: str, data: bytes) -> None:
    """Write an entry behind the seal of a bundle, whatever is in it."""
    with open_bundle(bundle_path) as bundle:
        entries = bundle.entries
    descriptor = os.open(bundle_path, os.O_RDWR)
    try:
        writer = ArchiveWriter(descriptor, offset=entries[-1].end, entries=entries)
        writer.add(name, data, aligned=len(data) > RAW_BYTES)
        writer.close_directory()
    finally:
        os.close(descriptor)


def honest(bundle_path: Path) -> AcceptanceRecord:
    """Return the acceptance record that follows from a bundle."""
    report = verify_bundle(bundle_path, acceptance=True)
    said = Statement("selftest", "here", "", "", "", _WHEN)
    return make_acceptance(report, said, Reports())


def _with(change: Change) -> Callable[[Subject], Iterator[Made]]:
    """Return what attaches a record that was changed before it was named."""

    def make(subject: Subject) -> Iterator[Made]:
        copy = subject.folder / "accepted.rpb.zip"
        shutil.copy(subject.path, copy)
        data = encode(change(honest(subject.path)))
        put_behind(copy, acceptance_name(digest_bytes(data)), data)
        yield Made(copy, "the acceptance record")

    return make


def _assessed(**changes: object) -> Change:
    def change(record: AcceptanceRecord) -> AcceptanceRecord:
        other = msgspec.structs.replace(record.assessment, **changes)
        return msgspec.structs.replace(record, assessment=other)

    return change


def _ticked(record: AcceptanceRecord) -> AcceptanceRecord:
    """Tick the first point that is not met."""
    points = list(record.assessment.points)
    at = next(at for at, one in enumerate(points) if one.state != "met")
    points[at] = Point(
        id=points[at].id,
        group=points[at].group,
        title=points[at].title,
        state="met",
        evidence=(Evidence(source="seen", says="it is fine"),),
    )
    return _assessed(points=tuple(points))(record)


def _shorter(record: AcceptanceRecord) -> AcceptanceRecord:
    """Leave out a point that is not met."""
    points = record.assessment.points
    kept = [one for one in points if one.state == "met"]
    return _assessed(points=tuple(kept))(record)


def with_other_recommendation(record: AcceptanceRecord) -> AcceptanceRecord:
    """Return an acceptance record that recommends something else."""
    advice = record.assessment.recommendation
    choice = "stop" if advice.choice == "choose-mac" else "choose-mac"
    other = msgspec.structs.replace(advice, choice=choice, rule="all-conditions")
    return _assessed(recommendation=other)(record)


def _versions(record: AcceptanceRecord) -> AcceptanceRecord:
    """Let it hold for versions that no run had."""
    held = HeldFor(
        run=f"replays/{OTHER_DIGEST}",
        platform="macos-mps",
        versions={"torch.version": "9.9.9"},
    )
    known: Assessment = record.assessment
    return _assessed(holds_for=(*known.holds_for, held))(record)


def _of_another(record: AcceptanceRecord) -> AcceptanceRecord:
    return msgspec.structs.replace(record, bundle=OTHER_DIGEST)


def _renamed(subject: Subject) -> Iterator[Made]:
    """Change one word of a record and keep its name."""
    copy = subject.folder / "renamed.rpb.zip"
    shutil.copy(subject.path, copy)
    data = encode(honest(subject.path))
    other = data.replace(b'"by": "selftest"', b'"by": "somebody"')
    put_behind(copy, acceptance_name(digest_bytes(data)), other)
    yield Made(copy, "who accepted it")


def _reformatted(subject: Subject) -> Iterator[Made]:
    """Write a record in another form."""
    copy = subject.folder / "reformatted.rpb.zip"
    shutil.copy(subject.path, copy)
    data = encode(honest(subject.path)) + b"\n"
    put_behind(copy, acceptance_name(digest_bytes(data)), data)
    yield Made(copy, "a line break behind the record")


ACCEPTANCE_MUTATIONS = (
    Mutation(
        "acceptance-altered",
        "an acceptance record changed under its old name",
        ids("acceptance-name"),
        _renamed,
    ),
    Mutation(
        "acceptance-reformatted",
        "an acceptance record in another form",
        ids("acceptance-record"),
        _reformatted,
    ),
    Mutation(
        "acceptance-of-another",
        "an acceptance record of another bundle",
        ids("acceptance-bundle"),
        _with(_of_another),
    ),
    Mutation(
        "acceptance-ticked",
        "a point ticked that is not met",
        ids("acceptance-derived"),
        _with(_ticked),
    ),
    Mutation(
        "acceptance-shortened",
        "the points left out that are not met",
        ids("acceptance-derived"),
        _with(_shorter),
    ),
    Mutation(
        "acceptance-recommended",
        "another recommendation than the rules give",
        ids("acceptance-derived"),
        _with(with_other_recommendation),
    ),
    Mutation(
        "acceptance-verdict",
        "another verdict than the replays give",
        ids("acceptance-derived"),
        _with(_assessed(verdict="REPRODUCED ALL THE SAME", exit_status=0)),
    ),
    Mutation(
        "acceptance-accepted",
        "an acceptance that the points do not give",
        ids("acceptance-derived"),
        _with(
            lambda record: _assessed(
                acceptance="not-accepted"
                if record.assessment.acceptance == "accepted"
                else "accepted"
            )(record)
        ),
    ),
    Mutation(
        "acceptance-versions",
        "an acceptance for versions that no run had",
        ids("acceptance-derived"),
        _with(_versions),
    ),
)
