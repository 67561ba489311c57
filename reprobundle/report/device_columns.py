"""The outputs of one replay on several devices, side by side with the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from reprobundle.format.findings import (
    ArrayComparison,
    Judgement,
    OutputComparison,
    Report,
)
from reprobundle.format.record import as_float
from reprobundle.report import text

MOST_ROWS = 24
SAME = "bit-identical"


class Row(NamedTuple):
    """One output, or one number in it.

    Attributes:
        name: Its name, indented where it is a number.
        references: What each sealed run has there.
        cells: What each device's replay has there, or how near it came.
    """

    name: str
    references: tuple[str, ...]
    cells: tuple[str, ...]


class DeviceColumns(NamedTuple):
    """One table: the references, then one column for each device.

    Attributes:
        claim: Whose outputs these are.
        references: Headings of the sealed runs that the replays were judged against:
            one, or one for each device that has a sealed run of its own.
        devices: Headings of the replays.
        rows: The rows.
    """

    claim: str
    references: tuple[str, ...]
    devices: tuple[str, ...]
    rows: tuple[Row, ...]


def device_columns(report: Report) -> list[DeviceColumns]:
    """Return a table for each claim that one replay ran on more than one device."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for one in report.judgements:
        if one.pass_name == "measured" and _column(one):
            groups.setdefault((one.occasion, one.claim), []).append(one)
    return [
        _table(claim, group)
        for (_, claim), group in groups.items()
        if len({_column(one) for one in group}) > 1
        and any(one.outputs for one in group)
    ]


def _column(one: Judgement) -> str:
    """Return the device of a column: where it ran, else where it was asked to."""
    return one.device or one.requested


def _table(claim: str, group: Sequence[Judgement]) -> DeviceColumns:
    # The newest of a device counts, as it does for the verdict.
    latest = {_column(one): one for one in group}
    names = dict.fromkeys(
        output.name for one in latest.values() for output in one.outputs
    )
    columns = list(latest.values())
    sealed = list(dict.fromkeys(one.against for one in columns))
    rows = [row for name in names for row in _rows(name, columns, sealed)]
    return DeviceColumns(
        claim,
        _headings(columns, sealed),
        tuple(_heading(one, several=len(sealed) > 1) for one in columns),
        tuple(rows[:MOST_ROWS]),
    )


def _headings(columns: Sequence[Judgement], sealed: Sequence[int]) -> tuple[str, ...]:
    if len(sealed) < 2:
        return ("reference",)
    kinds = {one.against: _sealed_on(one) for one in columns}
    return tuple(f"run {number}, {kinds[number]}".rstrip(", ") for number in sealed)


def _heading(one: Judgement, *, several: bool) -> str:
    # Where the sealed run is one of the same device, nobody needs to be told which.
    plain = not several or not one.device or _sealed_on(one) == one.device
    return _column(one) if plain else f"{one.device} (of run {one.against})"


def _sealed_on(one: Judgement) -> str:
    """Return the device of the sealed run that a replay was judged against."""
    return next((found.got for found in one.findings if found.id == "same-run"), "")


def _rows(name: str, columns: Sequence[Judgement], sealed: Sequence[int]) -> list[Row]:
    outputs = [_find(one, name) for one in columns]
    sizes = tuple(
        _size([o for o, one in zip(outputs, columns, strict=True) if one.against == at])
        for at in sealed
    )
    results = tuple(map(_cell, columns, outputs))
    rows = [Row(name, sizes, results)]
    numbers = dict.fromkeys(
        part.name
        for output in outputs
        for part in (output.parts if output is not None else ())
        if part.name and part.elements == 1 and not part.equal
    )
    for number in numbers:
        parts = [_part(output, number) for output in outputs]
        known = {
            one.against: part.expected
            for one, part in zip(columns, parts, strict=True)
            if part is not None and part.expected
        }
        cells = tuple(
            _number(part, known.get(one.against, SAME))
            for one, part in zip(columns, parts, strict=True)
        )
        references = tuple(known.get(at, text.NOTHING) for at in sealed)
        rows.append(Row(f"  {number}", references, cells))
    return rows


def _find(one: Judgement, name: str) -> OutputComparison | None:
    return next((output for output in one.outputs if output.name == name), None)


def _part(output: OutputComparison | None, name: str) -> ArrayComparison | None:
    parts = output.parts if output is not None else ()
    return next((part for part in parts if part.name == name), None)


def _size(outputs: Sequence[OutputComparison | None]) -> str:
    counts = [
        sum(part.elements for part in output.parts)
        for output in outputs
        if output is not None and output.parts
    ]
    return text.plural(max(counts), "value") if counts else text.NOTHING


def _cell(one: Judgement, output: OutputComparison | None) -> str:
    if output is None:
        # A run without any output says why in its verdict, such as NOT RUN HERE.
        return text.NOTHING if one.outputs else one.verdict.lower()
    if output.result == SAME:
        return SAME
    errors = [
        as_float(part.max_abs) for part in output.parts if part.max_abs is not None
    ]
    if not errors:
        return output.result
    largest: float = max(errors, key=lambda value: (math.isnan(value), value))
    word = output.result.removesuffix("-tolerance")
    return f"{word}, abs {largest:.2g}"


def _number(part: ArrayComparison | None, known: str) -> str:
    if part is None:
        return text.NOTHING
    return known if part.equal else part.got
