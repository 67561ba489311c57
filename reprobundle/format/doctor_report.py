"""What `doctor` says about a machine: can MPS be used here, now, and if not, why."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

DOCTOR_SCHEMA: Final = "reprobundle/doctor/1"

CheckState = Literal["ok", "warn", "problem", "unknown", "not-applicable"]
CauseAnswer = Literal["yes", "no", "unknown", "not-applicable"]
Mps = Literal["usable", "not-usable", "not-testable", "unknown"]


class DoctorCheck(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One question to this machine.

    Attributes:
        group: ``prerequisites``, ``torch``, ``folders``, ``memory``, ``variables``,
            ``session``, ``clock`` or ``needs`` (of a bundle).
        name: Stable name.
        state: ``problem`` alone blocks; ``unknown`` was not answered.
        got: What is here; for ``unknown`` the reason why it is not known.
        wanted: The rule, with the version and date it holds for; empty if none.
        remedy: What to do; empty where nothing has to be done.
    """

    group: str
    name: str
    state: CheckState
    got: str
    wanted: str = ""
    remedy: str = ""


class MpsCause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the six causes for which MPS is missing.

    Attributes:
        name: Stable name.
        title: In words.
        answer: Whether it holds here.
        because: What says so.
        remedy: What to do if it holds.
    """

    name: str
    title: str
    answer: CauseAnswer
    because: str
    remedy: str


class DoctorReport(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """The state of this machine.

    Attributes:
        machine: System and hardware in one line.
        python: The interpreter that was asked.
        mps: ``usable`` only if a tensor was computed there.
        answer: The same in one sentence.
        causes: The six causes, each answered.
        checks: Everything else.
        bundle: Id of the bundle whose needs were compared; empty if none was named.
        exit_status: 0 when MPS is usable and nothing blocks, 10 when something
            blocks, 11 when MPS could not be tested.
    """

    schema: Literal["reprobundle/doctor/1"] = DOCTOR_SCHEMA
    machine: str
    python: str
    mps: Mps
    answer: str
    causes: tuple[MpsCause, ...]
    checks: tuple[DoctorCheck, ...]
    bundle: str = ""
    exit_status: int
