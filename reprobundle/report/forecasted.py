"""What `forecast` found, for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reprobundle.format.forecast_report import (
    Fit,
    ForecastOperator,
    ForecastReport,
    Place,
)
from reprobundle.port.forecast.judging import (
    EXIT_BLOCKED,
    is_refused,
    is_wrong,
    on_cpu,
    raises,
)
from reprobundle.report import text
from reprobundle.report.forecast_crossings import crossing_lines
from reprobundle.report.layout import BLANK, Column, Row, paragraph, table
from reprobundle.report.screen import Line, Screen, Span, Style

_STYLES: dict[Place, Style] = {
    "missing": "bad",
    "always-cpu": "warn",
    "detour": "warn",
    "unknown": "warn",
}
_FITS: dict[Fit, str] = {
    "cannot": "cannot fit",
    "tight": "tight",
    "not-excluded": "not excluded",
}
_KINDS = {
    "wrong": "WRONG on MPS",
    "detour": "on the CPU",
    "refused": "RAISES on MPS",
}
_OPERATORS = (
    Column("on MPS"),
    Column("sure"),
    Column("operator", least=16),
    Column("calls", align="right"),
    Column("where", least=12),
    Column("note", least=16, wraps=True),
)


def render_forecast(
    report: ForecastReport, screen: Screen | None = None, *, verbose: bool = False
) -> str:
    """Return what matters for a run on MPS, and what was not covered."""
    screen = screen or Screen()
    shown = [
        one for one in report.operators if verbose or one.place in _STYLES or one.on_mps
    ]
    how = "without values" if report.mode == "dry" else "on the CPU"
    ran = f"torch {report.ran_with} {how}, {text.plural(report.steps, 'step')}"
    lines: list[Line] = [
        *paragraph(screen, "target", f"torch {report.torch} on MPS; ran with {ran}"),
        *paragraph(screen, "operators", _counts(report)),
    ]
    if shown:
        lines += [*table(screen, _OPERATORS, [_row(one) for one in shown])]
    lines += _float64(report, screen)
    lines += crossing_lines(report, screen, verbose=verbose)
    lines += _kernels(report, screen, verbose=verbose)
    lines += _refused(report, screen)
    lines += paragraph(screen, "memory", _memory(report))
    lines += _compared(report, screen)
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
        said = (
            f"{one.certainty}: {one.dtype} {one.how} at {one.where}, "
            f"{text.plural(one.count, 'time')}: raises on MPS"
        )
        lines += paragraph(screen, label, said, style="bad")
    return lines


def _kernels(report: ForecastReport, screen: Screen, *, verbose: bool) -> list[Line]:
    lines: list[Line] = []
    for one in report.kernels:
        label = "" if lines else "known"
        name = one.operator.removeprefix("aten.").removesuffix(".default")
        what = _KINDS[one.kind]
        said = (
            f"{one.certainty}, {what}: {name} at {one.where or text.NOTHING}, "
            f"{text.plural(one.count, 'call')}: {one.text} ({one.source})"
        )
        style: Style = "bad" if is_wrong(one) or raises(one) else "warn"
        lines += paragraph(screen, label, said, style=style)
        lines += paragraph(screen, "", one.form, style="dim") if verbose else []
    return lines


def _refused(report: ForecastReport, screen: Screen) -> list[Line]:
    lines: list[Line] = []
    for one in report.refused:
        what = "ended the command" if one.ended else "raised, and the command went on"
        said = f"certain: {one.where}: {one.error} [{what}]"
        lines += paragraph(screen, "" if lines else "refused", said, style="bad")
    return lines


def _compared(report: ForecastReport, screen: Screen) -> list[Line]:
    one = report.compared
    drawn = "certain: models were given random draws alone: operators, and no data"
    lines: list[Line] = []
    if report.inputs == "drawn":
        lines += paragraph(screen, "inputs", drawn, style="warn")
    if one is None:
        return lines
    said = f"this run, against: {shlex.join(one.other)}"
    lines += paragraph(screen, "reduced", said)
    for words in one.warnings or ("it calls every operator of the full run",):
        lines += paragraph(screen, "", words, style="warn" if one.warnings else "")
    for label, names in (("vanished", one.vanished), ("added", one.added)):
        bare = [n.removeprefix("aten.").removesuffix(".default") for n in names]
        lines += paragraph(screen, label, ", ".join(bare)) if bare else []
    return lines


def _memory(report: ForecastReport) -> str:
    fits = [
        f"{_mac(one.mac_bytes)} {_FITS[one.fit]} ({one.certainty})"
        for one in report.memory
    ]
    peak = text.size(report.peak_bytes)
    return f"at least {peak} of tensors at one time (lower bound): {', '.join(fits)}"


def _mac(size_bytes: int) -> str:
    """Return the size of a Mac as it is sold: one of 16 GB has 16 GiB."""
    whole, rest = divmod(size_bytes, 1 << 30)
    return text.size(size_bytes) if rest else f"{whole} GB"


def _verdict(report: ForecastReport, screen: Screen) -> list[Line]:
    if report.exit_status == EXIT_BLOCKED:
        besides = _on_cpu(report)
        said = f"BLOCKED BY {', '.join(_blockers(report)) or 'memory'}"
        said += f"; {besides}" * bool(besides)
        return paragraph(screen, "FORECAST", said, style="strong bad")
    if not report.steered:
        return paragraph(screen, "FORECAST", _not_asked(report), style="strong warn")
    if besides := _on_cpu(report):
        said = (
            f"NO RUN ON MPS ALONE: nothing that was seen blocks, but {besides}, so "
            "what comes out is no result of MPS"
        )
        return paragraph(screen, "FORECAST", said, style="strong warn")
    if report.exit_status:
        said = "NOT WHOLE: nothing that was seen blocks, but not everything was seen"
        return paragraph(screen, "FORECAST", said, style="strong warn")
    likely = sum(o.kind == "wrong" and not is_wrong(o) for o in report.kernels)
    besides = f", but {text.plural(likely, 'operator')} in a form that is likely wrong"
    said = f"NOTHING FOUND THAT BLOCKS{besides * bool(likely)}; only a run on a Mac "
    said += "shows more"
    return paragraph(screen, "FORECAST", said, style="strong")


def _not_asked(report: ForecastReport) -> str:
    there = ", ".join(_blockers(report)) or "nothing that was seen"
    besides = _on_cpu(report)
    there += f", and {besides}" * bool(besides)
    return (
        "UNKNOWN: this run asked for no MPS; had it, it would be blocked by "
        f"{there}. Write {{device}} where the command takes its device, such as "
        "--device {device}"
    )


def _on_cpu(report: ForecastReport) -> str:
    """Return how many operators run on the CPU of a Mac; empty if none does."""
    number = len(set(on_cpu(report)))
    runs = "runs" if number == 1 else "run"
    return f"{text.plural(number, 'operator')} {runs} on the CPU" if number else ""


def _blockers(report: ForecastReport) -> Iterator[str]:
    # A backward whose forward is refused before it is no further cause.
    operators = sum(is_refused(o) and not o.follows for o in report.operators)
    mixed = sum(one.kind == "mixed-devices" for one in report.crossings)
    kernels = sum(map(is_wrong, report.kernels))
    refused = sum(map(raises, report.kernels))
    for number, noun, rest in (
        (operators, "operator", " without a kernel"),
        (len(report.float64), "place", " with float64"),
        (mixed, "place", " with tensors of both devices"),
        (len(report.refused), "refusal", ""),
        (kernels, "operator", " in a form that MPS gets wrong"),
        (refused, "operator", " in a form that MPS refuses"),
    ):
        if number:
            yield f"{text.plural(number, noun)}{rest}"
    # One size alone is one that was asked for, and has to do.
    if len(report.memory) == 1 and report.memory[0].fit == "cannot":
        yield f"memory, {text.size(report.peak_bytes)} at least"
    if not report.operators:
        yield "no operator was seen"
