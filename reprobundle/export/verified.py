"""A bundle that was verified just now, and is open: what every export starts from.

Nothing is exported on the word of an earlier report. What is told elsewhere about a
bundle is what `verify` says at that moment.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reprobundle.errors import BadCallError, NotExportedError
from reprobundle.format.citation import Citation, citation_of, with_doi
from reprobundle.format.findings import Report, Verdict
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.record import Record
from reprobundle.verify.replays import read_replay
from reprobundle.verify.sealed import Sealed, read_sealed
from reprobundle.verify.verify import verify_bundle

if TYPE_CHECKING:
    from reprobundle.sign.signers import Signers

BROKEN = frozenset({Verdict.TAMPERED.value, Verdict.UNREADABLE.value})
DECIDED = frozenset(
    verdict.value
    for verdict in (
        Verdict.BIT_IDENTICAL,
        Verdict.WITHIN_TOLERANCE,
        Verdict.WITH_WARNINGS,
        Verdict.NOT_REPRODUCED,
        Verdict.DIFFERENT_FAILURE,
    )
)
"""Verdicts that answer whether the result was reproduced; no other one is an answer."""


class Verified(NamedTuple):
    """What an export tells.

    Attributes:
        path: The bundle's file.
        bundle: The same, open.
        report: What `verify` said about it, and about its replays.
        sealed: Its documents.
        replays: Record id → record of each attached replay, in order of attaching.
        citation: How the work is to be cited, as its author states it.
        at: When it was verified, UTC.
    """

    path: Path
    bundle: Bundle
    report: Report
    sealed: Sealed
    replays: Mapping[str, Record]
    citation: Citation
    at: datetime.datetime


@contextmanager
def verified(
    path: Path,
    *,
    expect_id: str | None = None,
    signers: Signers | None = None,
    doi: str = "",
    citation: Citation | None = None,
    at: datetime.datetime | None = None,
) -> Iterator[Verified]:
    """Verify the bundle at `path` and give it open.

    Args:
        path: The bundle.
        expect_id: Its id as the caller was told it.
        signers: Whose keys are whose.
        doi: A DOI that was assigned after the bundle was sealed.
        citation: A citation in the place of the sealed one.
        at: The time that is told; now if None.

    Raises:
        NotExportedError: It was altered, cannot be read, or lacks its documents.
        BadCallError: `doi` is none or contradicts what is sealed, or the file was
            replaced while it was verified.
    """
    report = verify_bundle(path, expect_id=expect_id, signers=signers)
    if report.verdict in BROKEN:
        raise _refusal(path, report)
    with open_bundle(path) as bundle:
        if bundle.id != report.bundle:
            raise BadCallError(
                f"{str(path)!r} was replaced while it was verified",
                advice="export it again when nothing writes to it",
            )
        sealed, _ = read_sealed(bundle)
        if sealed is None:
            raise _refusal(path, report)
        stated = citation_of(sealed.reference.environment)
        yield Verified(
            path=path,
            bundle=bundle,
            report=report,
            sealed=sealed,
            replays=_replays(bundle),
            citation=with_doi(citation or stated, doi),
            at=at or datetime.datetime.now(datetime.timezone.utc),
        )


def stated_time() -> datetime.datetime | None:
    """Return the time that ``SOURCE_DATE_EPOCH`` sets, or None where it is not set.

    Two exports of one bundle can be equal by it
    (https://reproducible-builds.org/specs/source-date-epoch/).

    Raises:
        BadCallError: It is set to something else than seconds.
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not fixed:
        return None
    try:
        return datetime.datetime.fromtimestamp(int(fixed), datetime.timezone.utc)
    except (ValueError, OverflowError, OSError) as error:
        raise BadCallError(
            f"SOURCE_DATE_EPOCH is {fixed[:40]!r}, expected seconds since 1970",
            advice="unset it",
        ) from error


def rfc3339(at: datetime.datetime) -> str:
    """Return a time in UTC as the records of a bundle write it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def first_reason(report: Report) -> str:
    """Return the most important reason of a verdict; empty for a plain one."""
    return report.reasons[0] if report.reasons else ""


def _replays(bundle: Bundle) -> dict[str, Record]:
    found = ((one, read_replay(bundle, bundle, one)[0]) for one in bundle.replay_ids)
    return {replay_id: record for replay_id, record in found if record is not None}


def _refusal(path: Path, report: Report) -> NotExportedError:
    reason = first_reason(report)
    return NotExportedError(
        f"{str(path)!r} is {report.verdict}{f': {reason}' if reason else ''}; nothing "
        "was exported",
        is_altered=report.verdict in BROKEN,
        advice=f"reprobundle verify {path}",
    )
