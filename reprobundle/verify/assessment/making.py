"""Make an acceptance record of a report: what a person adds is who, where and when."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from reprobundle.errors import BadCallError, BundleError
from reprobundle.format.acceptance_record import AcceptanceRecord, Reports
from reprobundle.format.atomic import explained
from reprobundle.format.canonical import decode
from reprobundle.format.doctor_report import DoctorReport
from reprobundle.format.findings import Report
from reprobundle.format.forecast_report import ForecastReport
from reprobundle.format.scan_report import ScanReport
from reprobundle.verify.assessment.holding import TOOL

_MADE_BY = {
    ScanReport: "reprobundle scan BUNDLE --json",
    DoctorReport: "reprobundle doctor BUNDLE --json",
    ForecastReport: "reprobundle forecast BUNDLE --json",
}

Told = TypeVar("Told", ScanReport, DoctorReport, ForecastReport)


class Statement(NamedTuple):
    """What a person states; nothing of it is proven.

    Attributes:
        by, where: Who accepts, and at which place or organisation.
        role: In which role; empty for none.
        second_person: Who else ran it again; empty for nobody.
        note: Anything else.
        when: The time, with its zone.
    """

    by: str
    where: str
    role: str
    second_person: str
    note: str
    when: datetime.datetime


def make_acceptance(
    report: Report, statement: Statement, reports: Reports
) -> AcceptanceRecord:
    """Return the acceptance record of a bundle.

    Args:
        report: What `verify` said, with its assessment.
        statement: What a person adds.
        reports: The reports that the assessment took into account.

    Raises:
        BadCallError: There is nothing to accept, or the statement is empty or long.
    """
    if report.assessment is None or not report.bundle:
        raise BadCallError(
            f"{report.file} cannot be assessed: {report.verdict}",
            advice=f"see: reprobundle verify {report.file}",
        )
    when = statement.when.astimezone(datetime.timezone.utc)
    given = {
        "bundle": report.bundle,
        "tool": TOOL,
        "when": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "by": statement.by.strip(),
        "where": statement.where.strip(),
        "role": statement.role.strip(),
        "second_person": statement.second_person.strip(),
        "note": statement.note.strip(),
    }
    try:
        for name, text in given.items():
            _check_text(name, text)
        return msgspec.structs.replace(
            msgspec.convert(
                {**given, "assessment": msgspec.to_builtins(report.assessment)},
                type=AcceptanceRecord,
            ),
            **reports._asdict(),
        )
    except msgspec.ValidationError as error:
        raise BadCallError(
            f"the statement cannot be taken: {error}",
            advice="give --by and --where, each of 1 to 500 characters",
        ) from error


def _check_text(name: str, text: str) -> None:
    if not text.isprintable():
        raise BadCallError(
            f"--{name.replace('_', '-')} holds a character that cannot be shown",
            advice="leave out line breaks and control characters",
        )


def read_report(path: Path, kind: type[Told], *, bundle: str) -> Told:
    """Return what another verb said about this bundle.

    Args:
        path: A file with its ``--json``.
        kind: Which verb's.
        bundle: Id of the bundle that it has to be about.

    Raises:
        BadCallError: It is no such report, or about another bundle or none.
        EnvironmentUnusableError: It cannot be read.
    """
    command = _MADE_BY[kind]
    with explained(f"cannot read {str(path)!r}"):
        data = path.read_bytes()
    try:
        told = decode(data, kind, where=path.name, rule="")
    except BundleError as error:
        raise BadCallError(
            f"{path.name} is not what {command} prints: {error.message}",
            advice=f"make it with {command}",
        ) from error
    if told.bundle != bundle:
        about = f"bundle {told.bundle[:12]}…" if told.bundle else "no bundle"
        raise BadCallError(
            f"{path.name} is about {about}, this is {bundle[:12]}…",
            advice=f"make it with {command}",
        )
    return told
