"""Whether the sealed runs of one command on several devices agree (V11).

Each replay is judged by the one of its own device, so their difference excuses nothing
and condemns no replay. It tells a reader that the result depends on the device by more
than the frozen policy admits between two kinds of it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from reprobundle.format.findings import Finding, OutputComparison
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record
from reprobundle.verify.checks import finding
from reprobundle.verify.devices import device_of
from reprobundle.verify.ending import check_ending
from reprobundle.verify.reference import GOOD, compare_sealed, figures
from reprobundle.verify.sealed import REFERENCE_RUN, Sealed

_NAME = "references-differ"
MOST_NAMED = 3


def check_references(bundle: Bundle, sealed: Sealed) -> Iterator[Finding]:
    """Yield for each further device whether its run agrees with the first one."""
    if not sealed.counterparts:
        reason = "the main command was run on one device only"
        yield finding(_NAME, "not-applicable", reason)
    for number, record in sealed.counterparts:
        yield _agreement(bundle, sealed, number, record)


def _agreement(bundle: Bundle, sealed: Sealed, number: int, record: Record) -> Finding:
    first, where = sealed.reference, f"runs/{number}"
    pair = f"the sealed runs on {device_of(first)} and {device_of(record)}"
    endings = [one for one in check_ending(first, record) if one.outcome != "pass"]
    if endings:
        reason = f"{pair} ended otherwise: {endings[0].reason}"
        return finding(_NAME, "warn", reason, where=where)
    found = compare_sealed(bundle, sealed, (REFERENCE_RUN, first), (number, record))
    items = [item for item in found if not item.excluded]
    bad = [item for item in items if item.result not in GOOD]
    if not bad:
        return finding(_NAME, "pass", f"{pair} agree: {_nearness(items)}", where=where)
    unknown = all(item.result == "not-compared" for item in bad)
    said = "; ".join(f"{one.name}: {one.reason or one.result}" for one in bad)
    more = f"; and {len(bad) - MOST_NAMED} more" if len(bad) > MOST_NAMED else ""
    named = "; ".join(said.split("; ")[:MOST_NAMED]) + more
    return finding(
        _NAME,
        "not-checked" if unknown else "warn",
        f"{pair} differ in {len(bad)} of {len(items)} outputs: {named}",
        where=where,
        advice=f"reprobundle diff {shlex.quote(bundle.path.name)}:1 "
        f"{shlex.quote(bundle.path.name)}:{number} shows both",
    )


def _nearness(items: Sequence[OutputComparison]) -> str:
    moved = [item for item in items if item.result != "bit-identical"]
    if not items:
        return "no output is compared"
    if not moved:
        return f"{len(items)} outputs are bit-identical"
    return f"{len(items)} outputs, within tolerance where {figures(moved)}"
