"""What a script itself moves between host and device, and indices without a row."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import OperatorUse, Record, Transfer
from reprobundle.verify.checks import finding

MOST_NAMED = 3
_WORDS = {
    "to-device": "inputs that start on the CPU",
    "from-device": "explicit copies to the CPU",
    "scalar-read": "scalar reads",
}


def check_crossings(record: Record, *, used: str) -> Iterator[Finding]:
    """Yield the findings about transfers and indices of a traced run.

    Args:
        record: The evidence pass; nothing is yielded where it saw no accelerator.
        used: Device of the run.
    """
    devices = record.devices
    if not devices.operators:
        return
    told = [
        text
        for kind, words in _WORDS.items()
        if (text := _told(words, [t for t in devices.transfers if t.kind == kind]))
    ]
    yield finding("host-transfers", "pass", "; ".join(told) or "none")
    if used.startswith("mps"):
        late = [one for one in devices.transfers if one.non_blocking]
        yield _non_blocking(late)
    for bad in devices.bad_indices:
        yield finding(
            "index-out-of-range",
            "warn",
            f"{bad.operator} looked up a row that its table does not have: an error "
            "on the CPU, zeros on MPS",
            where=bad.where,
            expected=f"0 to {bad.size - 1}",
            got=f"{bad.low} to {bad.high}",
            advice="correct the indices; the numbers of this run are wrong",
        )
    if not devices.bad_indices:
        yield finding("index-out-of-range", "pass")
    yield _memory_refused([one for one in devices.operators if one.out_of_memory])


def _memory_refused(starved: list[OperatorUse]) -> Finding:
    """Say whether the script went on after its device had no memory for it."""
    if not starved:
        return finding("out-of-memory-caught", "pass")
    first = max(starved, key=lambda one: one.out_of_memory)
    count = sum(one.out_of_memory for one in starved)
    return finding(
        "out-of-memory-caught",
        "warn",
        f"the device had no memory for {first.operator}, and the script did something "
        "else in its place: perhaps with smaller batches, or on the CPU",
        where=first.where,
        expected="0 calls without memory",
        got=f"{count:,}",
        advice="replay it where more memory is free, or with the size that fits",
    )


def _told(words: str, transfers: list[Transfer]) -> str:
    if not transfers:
        return ""
    count = sum(one.count for one in transfers)
    size = sum(one.bytes for one in transfers)
    largest = sorted(transfers, key=lambda one: one.count, reverse=True)[:MOST_NAMED]
    places = ", ".join(f"{one.where or 'backward'} ×{one.count}" for one in largest)
    return f"{count:,} {words}, {size:,} bytes ({places})"


def _non_blocking(late: list[Transfer]) -> Finding:
    if not late:
        return finding("non-blocking-copy", "pass")
    count = sum(one.count for one in late)
    return finding(
        "non-blocking-copy",
        "warn",
        f"{count:,} copies from or to MPS were made with non_blocking=True: known to "
        "corrupt data silently (pytorch issues 139550, 189690)",
        where=late[0].where,
        advice="leave non_blocking out for MPS",
    )
