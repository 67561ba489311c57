"""Derive a policy from the runs of one result that a bundle holds.

Its repeat passes and its replays are repetitions of one protocol. What they differ by
is the noise that an honest tolerance has to admit, and no more. Where the difference
grows with the steps, no tolerance of the last steps says anything: then the first rows
are to be compared tightly and the end statistically.

The statistical test is the two-sided prediction interval for one more run of the same
kind at 95 %, mean ± t(0.975, n - 1) · s · sqrt(1 + 1/n), which assumes that the runs'
last numbers are independent and normal (Hahn and Meeker, "Statistical Intervals",
1991, section 4.7).
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import BadCallError
from reprobundle.format.findings import ArrayComparison, Judgement, OutputComparison
from reprobundle.format.policy import (
    Band,
    Claim,
    DtypeTolerance,
    OutputRule,
    Policy,
    Tolerance,
)
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.record import STAND_IN, Output, Record
from reprobundle.verify.bands import Side, claim_of, last_number
from reprobundle.verify.content import attached, sealed
from reprobundle.verify.defaults import LARGEST_WIDENED, WIDENING
from reprobundle.verify.devices import device_pair
from reprobundle.verify.drift import growth
from reprobundle.verify.replays import read_replay
from reprobundle.verify.rules import DevicePair
from reprobundle.verify.sealed import Sealed, read_sealed
from reprobundle.verify.verify import verify_bundle

FEWEST_RUNS = 3
_GROWS = 10.0
# A failed check of another kind means that it was not a run of the same protocol.
_ABOUT_NUMBERS = frozenset({"output-differs", "claim-band", "hidden-by-atol"})
# Student's t at 0.975 by degrees of freedom; the last value for more of them.
_T_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


class Suggestion(NamedTuple):
    """What the runs of a bundle suggest.

    Attributes:
        runs: Number of runs it rests on, the author's measured ones among them.
        tolerances, outputs: To be written into a policy.
        claims: The claims for whose last numbers there are bands, each with these
            bands and the command that the frozen policy gives it.
        notes: What a person has to know or to decide.
    """

    runs: int
    tolerances: tuple[DtypeTolerance, ...]
    outputs: tuple[OutputRule, ...]
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]


class _Run(NamedTuple):
    """One other run of a command against its measured one."""

    devices: DevicePair
    comparisons: Sequence[OutputComparison]
    side: Side


class _Repeated(NamedTuple):
    """One command: its claim, its measured run, and every other run of it."""

    claim: str
    first: Side
    runs: tuple[_Run, ...]


def suggest(path: Path) -> Suggestion:
    """Return the policy that the runs in the bundle at `path` suggest.

    Raises:
        BundleError: It cannot be read.
        BadCallError: It holds no second run of any command.
    """
    report = verify_bundle(path)
    with open_bundle(path) as bundle:
        documents, _ = read_sealed(bundle)
        if documents is None:
            raise BadCallError(f"{path.name} lacks a document that a policy needs")
        found = [
            _repeated(bundle, documents, number, report.judgements)
            for number, record in sorted(documents.runs.items())
            if record.role in ("reference", "claim") and record.claim != STAND_IN
        ]
        repeated = [one for one in found if one.runs]
        if not repeated:
            raise BadCallError(
                f"{path.name} holds one run only, and noise needs two",
                advice=f"replay it: reprobundle replay {shlex.quote(path.name)} --yes",
            )
        return _suggested(documents.policy, repeated)


def _repeated(
    bundle: Bundle, documents: Sealed, number: int, judgements: Sequence[Judgement]
) -> _Repeated:
    record = documents.runs[number]
    first = (record, sealed(bundle, number, record))
    runs = (
        *_repeats(bundle, documents, first),
        *_replays(bundle, documents, record, judgements),
    )
    return _Repeated(record.claim, first, runs)


def _repeats(bundle: Bundle, documents: Sealed, first: Side) -> Iterator[_Run]:
    from reprobundle.verify.compare import compare_outputs

    for number, record in documents.fellows(first[0], "repeat"):
        content = sealed(bundle, number, record)
        comparisons = compare_outputs(
            first[0], record, first[1], content, policy=documents.policy
        )
        yield _Run("same", comparisons, (record, content))


def _replays(
    bundle: Bundle,
    documents: Sealed,
    measured: Record,
    judgements: Sequence[Judgement],
) -> Iterator[_Run]:
    for judged in judgements:
        record, _ = read_replay(bundle, bundle, judged.replay)
        failed = {one.id for one in judged.findings if one.outcome == "fail"}
        usable = failed <= _ABOUT_NUMBERS and judged.pass_name != "evidence"
        if record is None or not usable or judged.against not in documents.runs:
            continue
        if record.claim != measured.claim:
            continue
        content = attached(bundle, bundle, judged.replay, record)
        # What it was compared with: on several devices each has a run of its own.
        pair = device_pair(documents.runs[judged.against], record)
        yield _Run(pair, judged.outputs, (record, content))


def _suggested(policy: Policy, repeated: Sequence[_Repeated]) -> Suggestion:
    runs = [run for one in repeated for run in one.runs]
    chaotic = _chaotic(runs)
    noise: dict[tuple[str, DevicePair], float] = {}
    for run, item, part in _parts(runs):
        level = _noise(part)
        if item.name in chaotic or level is None:
            continue
        key = (part.dtype, run.devices)
        noise[key] = max(noise.get(key, 0.0), level)
    count = len(runs) + len(repeated)
    claims = tuple(_claims(policy, repeated)) if chaotic else ()
    return Suggestion(
        runs=count,
        tolerances=tuple(_row(key, level, count) for key, level in noise.items()),
        outputs=tuple(_rule(name, row) for name, row in chaotic.items() if row),
        claims=claims,
        notes=(
            *_few(repeated),
            *_notes(chaotic, has_noise=bool(noise), has_bands=bool(claims)),
        ),
    )


def _claims(policy: Policy, repeated: Sequence[_Repeated]) -> Iterator[Claim]:
    """Yield each claim whose runs give bands for its last numbers."""
    for one in repeated:
        bands = tuple(_bands(one.first, one.runs))
        stated = claim_of(policy, one.claim)
        command = stated.command if stated is not None else ()
        if bands:
            yield Claim(name=one.claim, command=command, bands=bands)


def _parts(
    runs: Sequence[_Run],
) -> Iterator[tuple[_Run, OutputComparison, ArrayComparison]]:
    for run in runs:
        for item in run.comparisons:
            if not item.excluded:
                yield from ((run, item, part) for part in item.parts)


def _noise(part: ArrayComparison) -> float | None:
    """Return the largest error relative to the larger of the element and the scale."""
    if part.equal or part.rtol is None or part.max_abs is None:
        return None
    levels = [float(part.max_rel)] if part.max_rel is not None else []
    if part.scale:
        levels.append(float(part.max_abs) / float(part.scale))
    return min(levels) if levels else None


def _chaotic(runs: Sequence[_Run]) -> dict[str, int]:
    """Return the outputs no element-wise tolerance serves, and the rows that agree.

    The number of rows is 0 where none do, or where the output has no rows.
    """
    found: dict[str, int] = {}
    for _, item, part in _parts(runs):
        level = _noise(part) or 0.0
        too_large = level * WIDENING > LARGEST_WIDENED
        grows = growth(part.drift) >= _GROWS and bool(part.problem)
        if too_large or grows:
            rows = next((one.first for one in part.drift if one.outside), 0)
            found[item.name] = min(rows, found.get(item.name, rows))
    return found


def _row(key: tuple[str, DevicePair], level: float, runs: int) -> DtypeTolerance:
    dtype, devices = key
    return DtypeTolerance(
        dtype=dtype,
        devices=devices,
        tolerance=Tolerance(rtol=WIDENING * level, atol=0.0, floor=1.0),
        source=f"{WIDENING:g} x {level:.3g}, the largest noise of {runs} runs",
    )


def _rule(name: str, rows: int) -> OutputRule:
    reason = f"the runs part from row {rows} on, and ever further"
    return OutputRule(match=name, rows=rows, reason=reason)


def _bands(reference: Side, runs: Sequence[_Run]) -> Iterator[Band]:
    """Yield the band of the last number of every column, from three runs on."""
    sides = [reference, *(run.side for run in runs)]
    if len(sides) < FEWEST_RUNS:
        return
    for output in reference[0].outputs:
        for metric in _metrics(output, runs):
            values = [last_number(metric, side) for side in sides]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                yield _band(metric, known)


def _metrics(output: Output, runs: Sequence[_Run]) -> Iterator[str]:
    if output.kind not in ("table", "document"):
        return
    columns: Mapping[str, None] = {
        part.name: None
        for _, item, part in _parts(runs)
        if item.name == output.name and part.dtype == "number" and not part.equal
    }
    for column in columns:
        yield f"{output.name}#{column}" if column else output.name


def _band(metric: str, values: Sequence[float]) -> Band:
    count = len(values)
    t = _T_975[min(count - 1, len(_T_975)) - 1]
    half = t * statistics.stdev(values) * (1 + 1 / count) ** 0.5
    middle = statistics.fmean(values)
    return Band(
        metric=metric,
        least=middle - half,
        most=middle + half,
        test=f"95 % prediction interval of {count} runs (Student's t)",
    )


def _few(repeated: Sequence[_Repeated]) -> Iterator[str]:
    for one in repeated:
        count = len(one.runs) + 1
        if count < FEWEST_RUNS:
            of = f" of claim {one.claim!r}" if len(repeated) > 1 else ""
            more = "replay more often for a better estimate"
            yield f"it rests on {count} runs{of}; {more}"


def _notes(
    chaotic: Mapping[str, int], *, has_noise: bool, has_bands: bool
) -> Iterator[str]:
    for name, rows in chaotic.items():
        kept = f"compare its first {rows} rows" if rows else "none of its rows agree"
        yield f"no element-wise tolerance is meaningful for {name}: {kept}"
    if has_bands:
        yield (
            "a band judges each run by itself; to compare the ends of repeated runs, "
            "state `ends` (docs/policy.md) and replay with --repeat 4 or more"
        )
    if chaotic and not has_bands:
        yield (
            f"to compare the end statistically, a table or document must hold its "
            f"number and there must be {FEWEST_RUNS} runs"
        )
    if not chaotic and not has_noise:
        yield "every output is bit-identical in all runs: the defaults suffice"
