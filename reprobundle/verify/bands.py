"""Whether the numbers of a claim lie in the bands that its author stated.

A band says what the work claims, beside the tolerances that say what counts as the
same output. A number without a band is shown and not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Literal

from reprobundle.errors import ReprobundleError
from reprobundle.format.findings import Finding
from reprobundle.format.judged import BandResult
from reprobundle.format.policy import Band, Claim, Policy
from reprobundle.format.record import Output, Record, number
from reprobundle.outputs.cells import Cell, read_cell
from reprobundle.outputs.documents import read_leaves
from reprobundle.outputs.tables import open_table
from reprobundle.verify.checks import finding
from reprobundle.verify.content import Content

_BLOCK_ELEMENTS = 1 << 18

Side = tuple[Record, Content]
Result = Literal["within", "outside", "not-judged", "not-found"]


def claim_of(policy: Policy, name: str) -> Claim | None:
    """Return what the policy states about the claim `name`."""
    return next((claim for claim in policy.claims if claim.name == name), None)


def judge_bands(
    claim: Claim | None, reference: Side, replay: Side
) -> tuple[BandResult, ...]:
    """Return each number of a claim on both sides, and whether it lies in its band."""
    if claim is None:
        return ()
    return tuple(_judged(band, reference, replay) for band in claim.bands)


def _judged(band: Band, reference: Side, replay: Side) -> BandResult:
    sides = (reference, replay)
    expected, got = (last_number(band.metric, side) for side in sides)
    return BandResult(
        metric=band.metric,
        least=band.least,
        most=band.most,
        reference=None if expected is None else number(expected),
        replay=None if got is None else number(got),
        result=_result(band, got),
        test=band.test,
    )


def _result(band: Band, got: float | None) -> Result:
    if got is None:
        return "not-found"
    if band.least is None and band.most is None:
        return "not-judged"
    # A NaN lies in no band.
    above = band.least is None or got >= band.least
    below = band.most is None or got <= band.most
    return "within" if above and below else "outside"


def last_number(metric: str, side: Side) -> float | None:
    """Return the last number of ``OUTPUT`` or ``OUTPUT#COLUMN``, None if there is none.

    Of an array that is its last element in C order; ``OUTPUT#NAME`` names one of
    several.

    Args:
        metric: As a band names it.
        side: A record and its content.
    """
    record, content = side
    name, _, column = metric.partition("#")
    output = next((one for one in record.outputs if one.name == name), None)
    if output is None or output.stored not in ("here", "sealed"):
        return None
    last: float | None = None
    # A damaged output is told by the comparison; here it only holds no number.
    with suppress(ReprobundleError, OSError):
        if output.kind == "arrays":
            return _last_element(output, content, column)
        for cell in _cells(output, content, column):
            if cell.is_numeric:
                last = float(cell.value)
    return last


def _last_element(output: Output, content: Content, name: str) -> float | None:
    """Return the last element of an array in C order; None if it is no real number."""
    from reprobundle.outputs.arrays import read_arrays

    is_checkpoint = output.format == "checkpoint"
    if is_checkpoint and not output.arrays_member:
        return None
    opened = (
        content.open_member(output.arrays_member)
        if is_checkpoint
        else content.open(output)
    )
    with opened as stream:
        arrays = read_arrays(stream, "safetensors" if is_checkpoint else output.format)
        chosen = [one for one in arrays if not name or one.name == name]
        if len(chosen) != 1 or chosen[0].dtype.startswith("complex"):
            return None
        last: float | None = None
        for block in chosen[0].blocks(_BLOCK_ELEMENTS):
            if block.size:
                last = float(block[-1])
        return last


def _cells(output: Output, content: Content, column: str) -> Iterator[Cell]:
    with content.open(output) as stream:
        if output.kind == "document":
            for leaf in read_leaves(stream, output.format):
                if not column or leaf.column == column:
                    yield leaf.cell
        elif output.kind == "table":
            with open_table(stream, output.format) as table:
                place = table.columns.index(column) if column in table.columns else None
                for row in table.rows if place is not None else ():
                    yield read_cell(row[place or 0])


def check_bands(
    claim: Claim | None, results: Sequence[BandResult]
) -> Iterator[Finding]:
    """Yield the findings about the numbers of one claim (V17)."""
    if claim is None:
        return
    judged = [one for one in results if one.result != "not-judged"]
    if claim.statement and not judged and not claim.ends:
        reason = f"the claim {claim.name!r} states no band: it is shown and not judged"
        yield finding("claim-judged", "not-checked", reason, where=claim.name)
    for one in judged:
        yield _band_finding(one)


def _band_finding(one: BandResult) -> Finding:
    got = "" if one.replay is None else f"{float(one.replay):.9g}"
    expected = band_words(one)
    sides = {"where": one.metric, "expected": expected, "got": got}
    if one.result == "within":
        return finding("claim-band", "pass", **sides)
    if one.result == "not-found":
        reason = "the replay holds no such number to judge the claim by"
        return finding("claim-band", "not-checked", reason, **sides)
    test = f" ({one.test})" if one.test else ""
    reason = f"the number lies outside the band of the claim{test}"
    return finding("claim-band", "fail", reason, **sides)


def band_words(one: BandResult) -> str:
    """Return a band in words; empty where there is none."""
    bounds = (("at least", one.least), ("at most", one.most))
    return ", ".join(f"{word} {end:g}" for word, end in bounds if end is not None)
