"""What the caller of one verification asks for."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from reprobundle.format.acceptance_record import Reports
    from reprobundle.format.findings import Finding
    from reprobundle.sign.signers import Signers
    from reprobundle.verify.second_opinion import OwnPolicy

Progress = Callable[[int], None] | None


class SoFar(NamedTuple):
    """What is known before the replays are judged. It holds no verdict.

    Attributes:
        file: Name of the file.
        bundle: The bundle id.
        format_version: Of the bundle.
        findings: Those of V1 to V7 and V24, in order; none until they are made.
    """

    file: str
    bundle: str
    format_version: str
    findings: Sequence[Finding] = ()


Told = Callable[[SoFar], None] | None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One call of `verify_bundle`, whose arguments these are.

    Attributes:
        integrity_only: Ask only for integrity and completeness, judge no replay.
        deep: Prove the chunk digests too.
        replay: Judge only the replay with this id, or the only one that starts so.
        only: Judge the replays of these ids alone, experiments too.
        expect_id: The whole bundle id as obtained elsewhere.
        allow: Names of warnings that the caller accepts.
        own_policy: The verifier's own policy, to be judged beside the frozen one.
        acceptance: Whether to assess the evidence.
        reports: What other verbs said, for that.
        signers: Whose keys are whose.
        here: Platform of this machine; only for the advice.
        now: The time that no replay can lie behind.
        progress: Called with the number of bytes just checked.
        told: Called once the bundle is open, and again once its integrity is checked.
    """

    integrity_only: bool
    deep: bool
    replay: str | None
    only: frozenset[str]
    expect_id: str | None
    allow: tuple[str, ...]
    own_policy: OwnPolicy | None
    acceptance: bool
    reports: Reports | None
    signers: Signers | None
    here: str
    now: datetime.datetime
    progress: Progress
    told: Told
