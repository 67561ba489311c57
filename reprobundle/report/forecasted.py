"""What `forecast` found, for a terminal."""

from __future__ import annotations

from reprobundle.format.forecast_report import (
    Fit,
    ForecastOperator,
    ForecastReport,
    Place,
)
from reprobundle.port.forecast.forecast import EXIT_BLOCKED
from reprobundle.report import text
from reprobundle.report.layout import BLANK, Column, Row, paragraph, table
from reprobundle.report.screen import Line, Screen, Span, Style

_STYLES: dict[Place, Style] = {
    "missing": "bad",
    "always-cpu": "bad",
    "detour": "warn",
    "unknown": "warn",
}
_FITS: dict[Fit, str] = {
    "cannot": "cannot fit",
    "tight": "tight",
    "not-excluded": "not excluded",
}
_OPERATORS = (
    Column("on MPS"),
    Column("sure"),
    Column("operator", least=16),
    Column("calls", align="right"),
    Column("where", least=12),
    Column("note", least=16),
)


def render_forecast(
    report: ForecastReport, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return the operators that matter, float64, memory, and what was not covered."""
    screen = screen or Screen()
    shown = [
        one for one in report.operators if verbose or one.place in _STYLES or one.on_mps
    ]
    ran = f"torch {report.ran_with} on the CPU, {text.plural(report.steps, 'step')}"
    lines: list[Line] = [
        *paragraph(screen, "target", f"torch {report.torch} on MPS; ran with {ran}"),
        *paragraph(screen, "operators", _counts(report)),
    ]
    if shown:
        lines += [*table(screen, _OPERATORS, [_row(one) for one in shown])]
    lines += _float64(report, screen)
    reads = text.plural(report.scalar_reads, "read")
    said = f"{reads} of a single value from the device; each waits for it"
    lines += paragraph(screen, "waits", said) if report.scalar_reads else []
    lines += paragraph(screen, "memory", _memory(report))
    for number, words in enumerate(report.not_covered):
        label = "" if number else "NOT COVERED"
        lines += paragraph(screen, label, words, style="dim")
    lines += [BLANK, *_verdict(report, screen)]
    return screen.text(lines)


def _counts(report: ForecastReport) -> str:
    counts: dict[str, int] = {}
    for one in report.operators:
        counts[one.place] = counts.get(one.place, 0) + 1
    told = ", ".join(f"{number} {place}" for place, number in counts.items())
    return told or "none was seen"


def _row(one: ForecastOperator) -> Row:
    return (
        Span(one.place, _STYLES.get(one.place, "")),
        Span(one.certainty),
        Span(one.operator.removeprefix("aten.").removesuffix(".default")),
        Span(text.count(one.count)),
        Span(one.where or text.NOTHING),
        Span(one.note, "dim"),
    )


def _float64(report: ForecastReport, screen: Screen) -> list[Line]:
    lines: list[Line] = []
    for number, one in enumerate(report.float64[:8]):
        label = "" if number else "float64"
        said = f"{one.dtype} {one.how} at {one.where}, {one.count} times: raises on MPS"
        lines += paragraph(screen, label, said, style="bad")
    return lines


def _memory(report: ForecastReport) -> str:
    fits = ", ".join(
        f"{one.mac_bytes / 2**30:.0f} GB {_FITS[one.fit]}" for one in report.memory
    )
    return f"at least {text.size(report.peak_bytes)} of tensors at one time: {fits}"


def _verdict(report: ForecastReport, screen: Screen) -> list[Line]:
    bad = [one for one in report.operators if one.place in {"missing", "always-cpu"}]
    found = [f"{text.plural(len(bad), 'operator')} without a kernel"] if bad else []
    if report.float64:
        found.append(f"{text.plural(len(report.float64), 'place')} with float64")
    if report.exit_status == EXIT_BLOCKED and not found:
        found.append("no operator was seen" if not report.operators else "memory")
    if found:
        said = f"BLOCKED BY {', '.join(found)}"
        return paragraph(screen, "FORECAST", said, style="strong bad")
    if report.exit_status:
        said = "NOT WHOLE: nothing that was seen blocks, but not everything was seen"
        return paragraph(screen, "FORECAST", said, style="strong warn")
    said = "NOTHING FOUND THAT BLOCKS; only a run on a Mac shows more"
    return paragraph(screen, "FORECAST", said, style="strong")
