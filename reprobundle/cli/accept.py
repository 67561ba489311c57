"""``reprobundle accept``."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import override_option, show_data
from reprobundle.cli.options import bundle_argument, json_option, say
from reprobundle.cli.paths import named

if TYPE_CHECKING:
    from reprobundle.format.acceptance_record import AcceptanceRecord, Reports
    from reprobundle.format.findings import Report

EXIT_STATUS = {"accepted": 0, "not-accepted": 10, "not-decided": 11}
EXIT_TAMPERED = 21
_report_file = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@bundle_argument
@click.option("--by", default="", metavar="NAME", help="Who accepts.")
@click.option("--where", default="", metavar="PLACE", help="Where, such as a lab.")
@click.option("--as", "role", default="", metavar="ROLE", help="In which role.")
@click.option(
    "--second-person",
    default="",
    metavar="NAME",
    help="Who, other than the author, ran it again: stated, a signature proves it.",
)
@click.option("--note", default="", metavar="TEXT", help="Anything else, one line.")
@click.option(
    "--scan", type=_report_file, help="What reprobundle scan BUNDLE --json printed."
)
@click.option(
    "--doctor",
    type=_report_file,
    help="What reprobundle doctor BUNDLE --json printed on the Mac.",
)
@click.option(
    "--forecast",
    type=_report_file,
    help="What reprobundle forecast BUNDLE --json printed.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    callback=named,
    help="Write the record there (JSON); attach takes it later.",
)
@click.option(
    "--attach", is_flag=True, help="Attach the record; the bundle id does not change."
)
@click.option(
    "--check",
    is_flag=True,
    help="Instead: ask this machine whether the attached acceptance holds for it.",
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    help="With --check: the interpreter to ask.",
)
@override_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every rule and its evidence.")
def accept(
    *,
    bundle: Path,
    by: str,
    where: str,
    role: str,
    second_person: str,
    note: str,
    scan: Path | None,
    doctor: Path | None,
    forecast: Path | None,
    output: Path | None,
    attach: bool,
    check: bool,
    python: Path | None,
    override: str,
    as_json: bool,
    verbose: bool,
) -> int:
    """Assess a bundle for acceptance: objects, path, list, recommendation.

    Every tick names its evidence. With --attach or -o it becomes a record of who
    accepts, where, when, and for which versions. Exit status: 0 accepted, 10 not
    accepted, 11 not decided (evidence is missing, or the acceptance is stale), 20 bad
    call, 21 bad bundle.
    """
    if check:
        from reprobundle.cli.accept_check import check_here

        show_data([bundle], override, what="an acceptance", name="accept --check")
        return check_here(bundle, python, as_json=as_json)
    writes = attach or output is not None
    if writes and not (by.strip() and where.strip()):
        raise click.UsageError("a record says who and where: give --by and --where")
    if not writes and any((by, where, role, second_person, note)):
        raise click.UsageError("--by and the like go into a record: add --attach or -o")
    show_data([bundle], override, what="an acceptance", name="accept")
    reports = _reports(bundle, scan, doctor, forecast)
    report = _verified(bundle, reports)
    if report.assessment is None:
        return _refused(report)
    record = None
    if writes:
        record = _made(report, reports, (by, where, role, second_person, note))
    if as_json:
        _print_json(report, record)
    else:
        _show(report, verbose=verbose)
    if record is not None:
        _keep(bundle, record, output, attach=attach)
    return EXIT_STATUS[report.assessment.acceptance]


def _reports(
    bundle: Path, scan: Path | None, doctor: Path | None, forecast: Path | None
) -> Reports:
    """Return the reports of other verbs: those given, else the newest attached."""
    from reprobundle.format.acceptance_record import Reports
    from reprobundle.format.doctor_report import DoctorReport
    from reprobundle.format.forecast_report import ForecastReport
    from reprobundle.format.reader import open_bundle
    from reprobundle.format.scan_report import ScanReport
    from reprobundle.verify.acceptance_records import read_acceptances
    from reprobundle.verify.assessment.making import read_report

    with open_bundle(bundle) as opened:
        name = opened.id
        sound, _ = read_acceptances(opened)
    known = sound[-1].record.reports if sound else Reports()
    return Reports(
        read_report(scan, ScanReport, bundle=name) if scan else known.scan,
        read_report(doctor, DoctorReport, bundle=name) if doctor else known.doctor,
        read_report(forecast, ForecastReport, bundle=name)
        if forecast
        else known.forecast,
    )


def _verified(bundle: Path, reports: Reports) -> Report:
    from reprobundle.verify.verify import verify_bundle

    return verify_bundle(bundle, acceptance=True, reports=reports)


def _refused(report: Report) -> int:
    """Say why a bundle cannot be assessed, and return the status that belongs to it."""
    for reason in report.reasons[:4]:
        say(reason)
    say(f"not assessed: {report.verdict} (see: reprobundle verify {report.file})")
    return report.exit_status or EXIT_TAMPERED


def _made(
    report: Report, reports: Reports, said: tuple[str, str, str, str, str]
) -> AcceptanceRecord:
    from reprobundle.verify.assessment.making import Statement, make_acceptance

    now = datetime.datetime.now(tz=datetime.timezone.utc)
    return make_acceptance(report, Statement(*said, when=now), reports)


def _print_json(report: Report, record: AcceptanceRecord | None) -> None:
    from reprobundle.format.canonical import encode

    click.echo(encode(record or report.assessment).decode(), nl=False)


def _show(report: Report, *, verbose: bool) -> None:
    from reprobundle.report.accepted import accepted_lines, assessment_lines
    from reprobundle.report.screen import Screen

    screen = Screen.of(sys.stdout)
    lines = accepted_lines(report.acceptances, screen)
    if report.assessment is not None:
        lines += assessment_lines(report.assessment, screen, verbose=verbose)
    click.echo(screen.text(lines))


def _keep(
    bundle: Path, record: AcceptanceRecord, output: Path | None, *, attach: bool
) -> None:
    """Write the record to a file, attach it, or both."""
    import os

    from reprobundle.format.atomic import replacing
    from reprobundle.format.attach import attach_acceptance
    from reprobundle.format.canonical import encode

    data = encode(record)
    if output is not None:
        with (
            replacing(output) as descriptor,
            os.fdopen(os.dup(descriptor), "wb") as file,
        ):
            file.write(data)
        say(f"wrote {output}")
    if attach:
        say(f"attached acceptance record {attach_acceptance(bundle, data)}")
