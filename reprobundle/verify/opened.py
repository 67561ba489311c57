"""Is the bundle what was sealed, and which runs and records does it hold (V1 to V7)?"""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.findings import Verdict
from reprobundle.format.reader import Bundle, ReplayFile
from reprobundle.verify.acceptance_records import ReadAcceptance, read_acceptances
from reprobundle.verify.asked import Asked
from reprobundle.verify.chosen import named
from reprobundle.verify.claims import Replay
from reprobundle.verify.experiments import is_experiment
from reprobundle.verify.found import Found
from reprobundle.verify.integrity import (
    check_identity,
    check_opened,
    check_sealed_digests,
)
from reprobundle.verify.membership import check_run_members
from reprobundle.verify.parts import as_far_as_here, without_absent
from reprobundle.verify.replays import read_replay
from reprobundle.verify.restart import Restarted
from reprobundle.verify.restarted import restarted_at_packing, restarted_replay
from reprobundle.verify.sealed import Sealed, read_sealed
from reprobundle.verify.signatures import check_signatures
from reprobundle.verify.verdict import consequence

_BROKEN = (Verdict.UNREADABLE, Verdict.TAMPERED)


class Opened:
    """A bundle whose integrity was checked, and the records beside its seal.

    Attributes:
        bundle: The bundle.
        source: Where the replays to judge lie: that bundle, or a replay file.
        sealed: Its decoded documents; None if one is missing.
        attached: Every sound replay record, in the order of attaching.
        runs: Those that are no restart pass.
        replays: Those of them that may decide about the bundle.
        experiments: Those that were to differ.
        restarts: The restart passes, which V22 alone judges.
        accepted: The sound acceptance records.
    """

    def __init__(self, bundle: Bundle, source: ReplayFile) -> None:
        self.bundle = bundle
        self.source = source
        self.sealed: Sealed | None = None
        self.attached: list[Replay] = []
        self.runs: list[Replay] = []
        self.replays: list[Replay] = []
        self.experiments: list[Replay] = []
        self.restarts: list[Replay] = []
        self.accepted: list[ReadAcceptance] = []

    def chosen(self, asked: Asked) -> list[Replay]:
        """Return the replays to judge; an experiment only where it is asked for.

        Raises:
            BadCallError: `asked.replay` is the id of none, or of several.
        """
        own = [one for one in self.replays if one.source is self.source]
        if asked.only:
            return [one for one in own if one.id in asked.only]
        if asked.replay is None:
            return own
        there = [one for one in self.experiments if one.source is self.source]
        return named([*own, *there], asked.replay)

    def restarted(self, sealed: Sealed) -> list[Restarted]:
        """Return each restart pass with the straight run that it must agree with."""
        mine = [one for one in self.restarts if one.source is self.source]
        replayed = [
            restarted_replay(self.bundle, sealed, one, self.replays)
            for one in mine[-1:]
        ]
        return [*restarted_at_packing(self.bundle, sealed), *replayed]

    def sort(self, one: Replay, *, only: frozenset[str]) -> None:
        """Put one record where it belongs."""
        record = one.record
        self.attached.append(one)
        # A restart pass is no replay of its own: it is judged by V22 alone.
        is_restart = record.pass_name == "restart" and not record.outcome.stop
        if not is_restart:
            self.runs.append(one)
        if is_experiment(record) and one.id not in only:
            self.experiments.append(one)
        else:
            (self.restarts if is_restart else self.replays).append(one)


def read_opened(
    bundle: Bundle, source: ReplayFile, asked: Asked, found: Found
) -> Opened:
    """Return what the bundle holds; make the checks V1 to V7 and V24 on the way.

    Args:
        bundle: The open bundle.
        source: Where the replays to judge lie.
        asked: The call.
        found: Takes the findings.
    """
    opened = Opened(bundle, source)
    found.findings += check_opened(bundle)
    found.findings += check_sealed_digests(
        bundle, deep=asked.deep, progress=asked.progress
    )
    found.findings.append(check_identity(bundle, asked.expect_id))
    if is_broken(found):
        return opened
    opened.sealed, about = read_sealed(bundle)
    found.findings += about
    if opened.sealed is not None:
        found.findings += check_run_members(bundle, opened.sealed.runs)
        opened.sealed = as_far_as_here(bundle, opened.sealed)
    sources = list(dict.fromkeys((bundle, source)))
    for one in sources:
        _read_replays(opened, one, asked, found)
    opened.accepted, about_accepted = read_acceptances(bundle)
    found.findings += about_accepted
    _examine_signatures(sources, asked, found)
    return opened


def is_broken(found: Found) -> bool:
    """Tell whether something is not what was sealed: then nothing else is judged."""
    return any(consequence(one) in _BROKEN for one in found.findings)


def _read_replays(
    opened: Opened, source: ReplayFile, asked: Asked, found: Found
) -> None:
    for replay_id in source.replay_ids:
        record, about = read_replay(opened.bundle, source, replay_id)
        found.findings += about
        if record is not None:
            known = without_absent(opened.bundle, record, f"replays/{replay_id}/")
            opened.sort(Replay(replay_id, known, source), only=asked.only)


def _examine_signatures(
    sources: Sequence[ReplayFile], asked: Asked, found: Found
) -> None:
    if asked.signers is not None or any(one.signatures for one in sources):
        from reprobundle.sign.examine import examine_signatures

        found.signatures = tuple(examine_signatures(sources, asked.signers))
    found.findings += check_signatures(
        found.signatures, has_signers=asked.signers is not None
    )
