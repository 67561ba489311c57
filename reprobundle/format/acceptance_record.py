"""The acceptance record: who accepted which result, on what evidence, and for what.

It lies outside the seal as ``acceptance/<id>.json``, where the id is the digest of its
bytes, or travels alone. All of its `assessment` follows from the bundle, the named
replays and the reports it holds, so a verifier derives it anew and compares; who, where
and when are statements of the person who made it. A signature over its bytes lies
elsewhere (spec.md, section 7.5).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from reprobundle.format.assessment import Assessment
from reprobundle.format.doctor_report import DoctorReport
from reprobundle.format.forecast_report import ForecastReport
from reprobundle.format.record import Digest
from reprobundle.format.scan_report import ScanReport

ACCEPTANCE_SCHEMA: Final = "reprobundle/acceptance/1"
RULES_VERSION: Final = 1
"""Raised whenever a point or a rule may come out otherwise on the same evidence."""

# A person's statement: some text, of a length that a report can show.
Said = Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
SaidOrNot = Annotated[str, msgspec.Meta(max_length=500)]


class Reports(NamedTuple):
    """What other verbs said about the bundle; each None where it was not given."""

    scan: ScanReport | None = None
    doctor: DoctorReport | None = None
    forecast: ForecastReport | None = None

    def about(self, bundle: str) -> Reports:
        """Return those that name this bundle: what is about another shows nothing."""
        mine = (one if one and one.bundle == bundle else None for one in self)
        return Reports(*mine)  # type: ignore[arg-type]


class AcceptanceRecord(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """One acceptance.

    Attributes:
        schema: Always ``reprobundle/acceptance/1``.
        bundle: Id of the bundle it is about.
        rules: Version of the rules that the assessment was derived by.
        tool: Name and version of the writer.
        when: RFC 3339, UTC.
        by: Who states it.
        where: At which place or organisation, in that person's words.
        role: In which role: ``author``, ``second person``, or any other.
        second_person: Who, other than the author, ran it again; empty for nobody. It
            is stated, not proven.
        note: In that person's words.
        scan, doctor, forecast: The reports that were taken into account, whole.
        assessment: What the evidence came to.
    """

    schema: Literal["reprobundle/acceptance/1"] = ACCEPTANCE_SCHEMA
    bundle: Digest
    rules: int = RULES_VERSION
    tool: str
    when: str
    by: Said
    where: Said
    role: SaidOrNot = ""
    second_person: SaidOrNot = ""
    note: SaidOrNot = ""
    scan: ScanReport | None = None
    doctor: DoctorReport | None = None
    forecast: ForecastReport | None = None
    assessment: Assessment

    @property
    def reports(self) -> Reports:
        """The reports it holds."""
        return Reports(self.scan, self.doctor, self.forecast)
