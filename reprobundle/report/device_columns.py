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


class DeviceColumns(NamedTuple):
    """One table: the reference, then one column for each device.

    Attributes:
        claim: Whose outputs these are.
        devices: Names of the columns.
        rows: Name of an output or number, the reference's side, one cell each.
    """

    claim: str
    devices: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]


def device_columns(report: Report) -> list[DeviceColumns]:
    """Return a table for each claim that one replay ran on more than one device."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for one in report.judgements:
        if one.pass_name == "measured" and one.device and one.outputs:
            groups.setdefault((one.occasion, one.claim), []).append(one)
    return [
        _table(claim, group)
        for (_, claim), group in groups.items()
        if len({one.device for one in group}) > 1
    ]


def _table(claim: str, group: Sequence[Judgement]) -> DeviceColumns:
    # The newest of a device counts, as it does for the verdict.
    latest = {one.device: one for one in group}
    names = dict.fromkeys(
        output.name for one in latest.values() for output in one.outputs
    )
    rows = [row for name in names for row in _rows(name, list(latest.values()))]
    several = len({one.against for one in latest.values()}) > 1
    names_of = (
        f"{device} (of run {one.against})" if several else device
        for device, one in latest.items()
    )
    return DeviceColumns(claim, tuple(names_of), tuple(rows[:MOST_ROWS]))


def _rows(
    name: str, columns: Sequence[Judgement]
) -> list[tuple[str, str, tuple[str, ...]]]:
    outputs = [_find(one, name) for one in columns]
    rows = [(name, _size(outputs), tuple(map(_cell, outputs)))]
    numbers = dict.fromkeys(
        part.name
        for output in outputs
        for part in (output.parts if output is not None else ())
        if part.name and part.elements == 1 and not part.equal
    )
    for number in numbers:
        parts = [_part(output, number) for output in outputs]
        first, known = next(
            (
                (one.against, part.expected)
                for one, part in zip(columns, parts, strict=True)
                if part is not None
            ),
            (0, ""),
        )
        # What equals another sealed run does not equal the value in this row.
        cells = tuple(
            _number(part, known if one.against == first else SAME)
            for one, part in zip(columns, parts, strict=True)
        )
        rows.append((f"  {number}", known, cells))
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


def _cell(output: OutputComparison | None) -> str:
    if output is None:
        return text.NOTHING
    if output.result == "bit-identical":
        return "bit-identical"
    errors = [
        as_float(part.max_abs) for part in output.parts if part.max_abs is not None
    ]
    if not errors:
        return output.result
    largest: float = max(errors, key=lambda value: (math.isnan(value), value))
    return f"{output.result}, max abs {text.number(largest)}"


def _number(part: ArrayComparison | None, known: str) -> str:
    if part is None:
        return text.NOTHING
    return known if part.equal else part.got
