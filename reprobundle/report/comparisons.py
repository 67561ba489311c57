"""Show how the outputs of a replay stand to the reference, the worst ones first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from reprobundle.format.findings import (
    ArrayComparison,
    CheckOutcome,
    OutputComparison,
    OutputResult,
)
from reprobundle.format.record import Number
from reprobundle.report import text
from reprobundle.report.drifting import drift_words
from reprobundle.report.layout import BLANK, Column, Row, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span

# What one screen holds; all of it with ``verbose``.
MOST_OUTPUTS = 12
MOST_PARTS = 4
MOST_NOTES = 6
MOST_KEYS = 8

_ORDER: dict[OutputResult, CheckOutcome] = {
    "outside-tolerance": "fail",
    "missing": "fail",
    "unexpected": "warn",
    "not-compared": "not-checked",
    "within-tolerance": "pass",
    "bit-identical": "pass",
}
_RANK = {result: rank for rank, result in enumerate(_ORDER)}

_COLUMNS = (
    Column("output", least=16),
    Column("kind", least=10),
    Column("compared", align="right"),
    Column("outside", align="right"),
    Column("max abs", align="right"),
    Column("max rel", align="right"),
    Column("result"),
)


def comparison_lines(
    outputs: Sequence[OutputComparison], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the table of `outputs` and a note on each one that needs words."""
    ordered = sorted(outputs, key=lambda output: _RANK[output.result])
    shown = ordered if verbose else ordered[:MOST_OUTPUTS]
    rows: list[Row] = []
    for output in shown:
        rows += _rows(output, screen, verbose=verbose)
    lines = table(screen, _COLUMNS, rows)
    for result, hidden in _counted(ordered[len(shown) :]).items():
        lines += more(screen, hidden, "output", result)
    notes = _notes(ordered, screen, verbose=verbose)
    return [*lines, *([BLANK] if notes else []), *notes]


def _counted(outputs: Iterable[OutputComparison]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for output in outputs:
        counts[output.result] = counts.get(output.result, 0) + 1
    return counts


def _rows(output: OutputComparison, screen: Screen, *, verbose: bool) -> list[Row]:
    total = _row(output.name, _kind(output), output.parts, _result(output, screen))
    inner = (
        [part for part in output.parts if part.name] if verbose else _outside(output)
    )
    if len(output.parts) <= 1 and not verbose:
        inner = []
    shown = inner if verbose else inner[:MOST_PARTS]
    rows = [
        total,
        *(_row(f"  {part.name}", part.dtype, (part,), Span("")) for part in shown),
    ]
    if len(inner) > len(shown):
        hidden = f"  and {text.count(len(inner) - len(shown))} more"
        rows.append((Span(hidden, "dim"), *[Span("")] * (len(_COLUMNS) - 1)))
    return rows


def _outside(output: OutputComparison) -> list[ArrayComparison]:
    return [part for part in output.parts if part.outside or part.problem]


def _row(name: str, kind: str, parts: Sequence[ArrayComparison], result: Span) -> Row:
    return (
        Span(name),
        Span(kind),
        Span(_sum(part.elements for part in parts)),
        Span(_sum(part.outside for part in parts)),
        Span(_largest(part.max_abs for part in parts)),
        Span(_largest(part.max_rel for part in parts)),
        result,
    )


def _kind(output: OutputComparison) -> str:
    dtypes = {part.dtype for part in output.parts}
    if len(dtypes) > 1:
        return f"{output.kind}, {len(dtypes)} dtypes"
    return " ".join([output.kind, *dtypes])


def _result(output: OutputComparison, screen: Screen) -> Span:
    mark = screen.mark(_ORDER[output.result])
    return Span(f"{mark.text} {output.result}", mark.style)


def _sum(counts: Iterable[int]) -> str:
    known = list(counts)
    return text.count(sum(known)) if known else text.NOTHING


def _largest(values: Iterable[Number | None]) -> str:
    """Return the largest of `values`; NaN counts as larger than all."""
    known = [float(value) for value in values if value is not None]
    if not known:
        return text.NOTHING
    largest: float = max(known, key=lambda value: (math.isnan(value), value))
    return text.number(largest)


def _notes(
    outputs: Sequence[OutputComparison], screen: Screen, *, verbose: bool
) -> list[Line]:
    sentences = [
        sentence
        for output in outputs
        for sentence in _sentences(output, verbose=verbose)
    ]
    shown = sentences if verbose else sentences[:MOST_NOTES]
    lines: list[Line] = []
    for sentence in shown:
        lines += paragraph(screen, "", sentence, whole=verbose)
    return [*lines, *more(screen, len(sentences) - len(shown), "note")]


def _sentences(output: OutputComparison, *, verbose: bool) -> list[str]:
    outside = _outside(output)
    parts = outside if verbose else outside[:1]
    found = [
        _joined(_place(output, part), "" if at else output.reason, *_worst(part))
        for at, part in enumerate(parts)
    ]
    if output.reason and not parts:
        found.append(f"{output.name}: {output.reason}")
    found += [
        _joined(_place(output, part), *oddities)
        for part in output.parts
        if (oddities := tuple(_oddities(part)))
    ]
    if output.ignored:
        found.append(f"{output.name}: left out by rule: {_keys(output.ignored)}")
    return found


def _oddities(part: ArrayComparison) -> Iterator[str]:
    """Yield what makes agreement say less than it seems to."""
    if part.note:
        yield part.note
    if part.drift and (words := drift_words(part)):
        yield words
    if part.zero:
        yield "every reference element is zero"
    if part.nan:
        yield f"NaN on both sides at {text.plural(part.nan, 'place')}"
    if part.infinite:
        places = text.plural(part.infinite, "place")
        yield f"the same infinity on both sides at {places}"


def _joined(place: str, *clauses: str) -> str:
    said = dict.fromkeys(clause for clause in clauses if clause)
    return f"{place}: {'; '.join(said)}"


def _place(output: OutputComparison, part: ArrayComparison) -> str:
    return f"{output.name} [{part.name}]" if part.name else output.name


def _worst(part: ArrayComparison) -> Iterator[str]:
    """Yield what the table has no column for."""
    yield part.problem
    if part.worst_index is not None:
        yield f"worst at [{', '.join(map(str, part.worst_index))}]"
    if part.expected or part.got:
        yield f"reference {part.expected}, here {part.got}"
    if part.rtol is not None or part.atol is not None:
        yield _rule(part)


def _rule(part: ArrayComparison) -> str:
    bounds = (
        ("rtol", part.rtol),
        ("atol", part.atol),
        ("floor", part.floor),
        ("share", part.share),
    )
    return "rule " + ", ".join(
        f"{name} {text.number(bound)}"
        for name, bound in bounds
        if bound is not None and (bound or name in {"rtol", "atol"})
    )


def _keys(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_KEYS])
    hidden = len(names) - MOST_KEYS
    return f"{shown} and {text.count(hidden)} more" if hidden > 0 else shown
