"""Judge a bundle: is it whole, is it complete, and did its replays reproduce it?

Runs nothing, unpickles nothing, needs no torch and no network. Every rendering of the
answer is made from the one `Report` returned here.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reprobundle.errors import BundleError
from reprobundle.format.findings import Finding, Report, Verdict
from reprobundle.format.reader import ReplayFile, open_bundle, open_replay_file
from reprobundle.verify.asked import Asked, Progress, SoFar, Told
from reprobundle.verify.checks import unmade
from reprobundle.verify.found import Found
from reprobundle.verify.integrity import refusal, whole_id
from reprobundle.verify.verdict import check_allowances, decide

if TYPE_CHECKING:
    from reprobundle.format.acceptance_record import Reports
    from reprobundle.format.reader import Bundle
    from reprobundle.format.source import Place
    from reprobundle.sign.signers import Signers
    from reprobundle.verify.second_opinion import OwnPolicy


def verify_bundle(
    path: Path | Place,
    *,
    integrity_only: bool = False,
    deep: bool = False,
    replay: str | None = None,
    only: Sequence[str] = (),
    replay_file: Path | None = None,
    expect_id: str | None = None,
    allow: tuple[str, ...] = (),
    own_policy: OwnPolicy | None = None,
    acceptance: bool = False,
    reports: Reports | None = None,
    signers: Signers | None = None,
    here: str = "",
    now: datetime.datetime | None = None,
    progress: Progress = None,
    told: Told = None,
) -> Report:
    """Return everything that can be said about the bundle at `path`.

    Args:
        path: The bundle; one that lies elsewhere is read as a whole.
        integrity_only: Ask only for integrity and completeness, judge no replay.
        deep: Prove the chunk digests too.
        replay: Judge only the replay with this id, or the only one that starts so.
        only: Judge the replays of these ids alone, experiments too; all others that
            are no experiments if empty.
        replay_file: Judge the replays of this file instead of the attached ones.
        expect_id: The bundle id as obtained elsewhere.
        allow: Names of warnings that the caller accepts.
        own_policy: The verifier's own policy, to be judged beside the frozen one.
        acceptance: Whether to assess the evidence: points and a recommendation.
        reports: What other verbs said, for that; those of the newest attached
            acceptance record if None.
        signers: Whose keys are whose; the bundle must be signed by one of them then.
        here: Platform of this machine, such as ``linux-cpu``; only for the advice.
        now: The time that no replay can lie behind; that of this machine if None.
        progress: Called with the number of bytes just checked.
        told: Called once the bundle is open, and again once its integrity is checked:
            to judge it may take long, and a verdict is nothing of what is known then.

    Raises:
        BadCallError: `allow` names no warning, `replay` no replay, or `expect_id` is
            no whole id.
        EnvironmentUnusableError: A file cannot be read.
    """
    check_allowances(allow)
    asked = Asked(
        integrity_only=integrity_only,
        deep=deep,
        replay=replay,
        only=frozenset(only),
        expect_id=None if expect_id is None else whole_id(expect_id),
        allow=allow,
        own_policy=own_policy,
        acceptance=acceptance,
        reports=reports,
        signers=signers,
        here=here,
        now=now or datetime.datetime.now(tz=datetime.timezone.utc),
        progress=progress,
        told=told,
    )
    return _verified(path, replay_file, asked)


def _tell(told: Told, file: str, bundle: Bundle, findings: Sequence[Finding]) -> None:
    if told is not None:
        told(SoFar(file, bundle.id, bundle.manifest.version, tuple(findings)))


def _verified(path: Path | Place, replay_file: Path | None, asked: Asked) -> Report:
    found = Found()
    file = ""
    try:
        with ExitStack() as stack:
            bundle = stack.enter_context(open_bundle(path))
            source: ReplayFile = bundle
            if replay_file is not None:
                file = replay_file.name
                source = stack.enter_context(open_replay_file(replay_file))
                file = ""
            tell = partial(_tell, asked.told, path.name, bundle)
            tell(())
            # What judges is imported only now: the first line is not to wait for it.
            from reprobundle.verify.concluding import conclude
            from reprobundle.verify.opened import read_opened

            opened = read_opened(bundle, source, asked, found)
            tell(found.findings)
            return found.report(path.name, conclude(opened, asked, found), bundle)
    except BundleError as error:
        found.findings.append(refusal(error, file))
        found.findings += unmade(found.findings, "the file could not be opened")
        decision = decide(found.findings, Verdict.TAMPERED)
        return found.report(path.name, decision, None)
