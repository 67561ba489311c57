"""Everything a report page shows, gathered once for every format.

The report of `verify` says what was judged; this adds what a reader wants to see of
the runs themselves. Nothing here judges, and a part that cannot be read is left out:
what that means for the verdict is in the report already.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import BundleError
from reprobundle.format.canonical import decode
from reprobundle.format.citation import Citation, citation_of, with_doi
from reprobundle.format.findings import Judgement, Report
from reprobundle.format.policy import Policy
from reprobundle.format.reader import (
    Bundle,
    ReplayFile,
    open_bundle,
    open_replay_file,
)
from reprobundle.format.record import MemorySample, MemorySeries, Record
from reprobundle.format.source import Place
from reprobundle.report.curves import Curve, find_curves
from reprobundle.verify.content import Content, attached
from reprobundle.verify.content import sealed as sealed_content
from reprobundle.verify.replays import read_replay
from reprobundle.verify.sealed import Sealed, read_sealed


class Side(NamedTuple):
    """One run: its record and its memory samples in order of time."""

    record: Record
    memory: tuple[MemorySample, ...]


class ReplayPage(NamedTuple):
    """One judged replay beside the sealed run it stands against.

    Attributes:
        judgement: As `verify` gave it.
        reference: The sealed run; None when there is none of that number.
        replay: The replay itself; None when its record cannot be read.
        curves: Columns of tables that can be drawn.
    """

    judgement: Judgement
    reference: Side | None = None
    replay: Side | None = None
    curves: tuple[Curve, ...] = ()


class Page(NamedTuple):
    """What a page shows.

    Attributes:
        report: The one answer, with all findings.
        policy: The frozen policy, if the bundle could be read.
        reference: The reference run, if the bundle could be read.
        size_bytes: Size of the file; 0 when it could not be read.
        replays: The judged replays, newest last.
        citation: How the work is to be cited, as its author states it.
    """

    report: Report
    policy: Policy | None = None
    reference: Side | None = None
    size_bytes: int = 0
    replays: tuple[ReplayPage, ...] = ()
    citation: Citation = Citation()


def build_page(
    path: Path | Place,
    report: Report,
    replay_file: Path | None = None,
    doi: str = "",
) -> Page:
    """Return the page about the bundle at `path`.

    Args:
        path: The bundle that `report` is about.
        report: What `verify` said about it.
        replay_file: The replays that were judged, if they travelled alone.
        doi: A DOI that was assigned after the bundle was sealed.

    Raises:
        BadCallError: `doi` is none, or another one is sealed.
    """
    bare = Page(report, replays=tuple(map(ReplayPage, report.judgements)))
    if not report.bundle:
        return bare
    try:
        with ExitStack() as stack:
            bundle = stack.enter_context(open_bundle(path))
            source: ReplayFile = bundle
            if replay_file is not None:
                source = stack.enter_context(open_replay_file(replay_file))
            sealed, _ = read_sealed(bundle)
            if sealed is None:
                return bare
            stated = citation_of(sealed.reference.environment)
            page = _page(bundle, source, sealed, report)
            return page._replace(citation=with_doi(stated, doi))
    except BundleError:
        return bare


def _page(bundle: Bundle, source: ReplayFile, sealed: Sealed, report: Report) -> Page:
    return Page(
        report=report,
        policy=sealed.policy,
        reference=_sealed_side(bundle, sealed, 1),
        size_bytes=bundle.size_bytes,
        replays=tuple(
            _replay_page(bundle, source, sealed, judgement)
            for judgement in report.judgements
        ),
    )


def _replay_page(
    bundle: Bundle, source: ReplayFile, sealed: Sealed, judgement: Judgement
) -> ReplayPage:
    record, _ = read_replay(bundle, source, judgement.replay)
    if record is None:
        return ReplayPage(judgement)
    own = attached(bundle, source, judgement.replay, record)
    replay = Side(record, _memory(record, own))
    number = judgement.against or record.runs
    if number not in sealed.runs:
        return ReplayPage(judgement, replay=replay)
    reference = _sealed_side(bundle, sealed, number)
    return ReplayPage(
        judgement,
        reference=reference,
        replay=replay,
        curves=find_curves(
            reference.record,
            record,
            sealed_content(bundle, number, reference.record),
            own,
            policy=sealed.policy,
        ),
    )


def _sealed_side(bundle: Bundle, sealed: Sealed, number: int) -> Side:
    record = sealed.runs[number]
    return Side(record, _memory(record, sealed_content(bundle, number, record)))


def _memory(record: Record, content: Content) -> tuple[MemorySample, ...]:
    if not record.memory.series:
        return ()
    name = record.memory.series
    try:
        with content.open_member(name) as stream:
            series = decode(stream.read(), MemorySeries, where=name, rule="R-7.2")
    except BundleError:
        return ()
    return tuple(sorted(series.samples, key=lambda sample: sample.t_ns))
