"""Whether all ranks of a distributed run reported, and agree where they must (V13)."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import Rank, Record
from reprobundle.verify.checks import finding


def check_ranks(record: Record) -> Iterator[Finding]:
    """Yield the findings about the ranks of one run; none for an ordinary run."""
    if not record.ranks:
        return
    yield from _reported(record)
    yield from _agree(record)


def _reported(record: Record) -> Iterator[Finding]:
    size = max(rank.world_size for rank in record.ranks)
    there = {rank.rank for rank in record.ranks}
    absent = sorted(set(range(size)) - there)
    bad = [(number, "left no events") for number in absent]
    bad += [
        (rank.rank, reason)
        for rank in record.ranks
        for reason in _shortcomings(rank, record.ranks)
    ]
    for number, reason in bad:
        yield finding(
            "rank-missing",
            "fail",
            f"rank {number} of {size} {reason}: what it computed is not known",
            where=f"rank {number}",
            expected=f"{size} ranks",
            got=f"{len(there)} ranks",
        )
    if not bad:
        yield finding("rank-missing", "pass", f"all {size} ranks reported")


def _shortcomings(rank: Rank, others: tuple[Rank, ...]) -> Iterator[str]:
    if not rank.ended:
        yield "did not report its end"
    if not rank.joined and any(other.joined for other in others):
        yield "never joined the process group"


def _agree(record: Record) -> Iterator[Finding]:
    checks = [
        ("number of ranks", {str(rank.world_size) for rank in record.ranks}),
        ("torch version", {rank.torch_version for rank in record.ranks}),
    ]
    if all(rank.ended for rank in record.ranks):
        # A rank that was killed had no time to report its last steps.
        steps = {str(rank.steps) for rank in record.ranks}
        checks.append(("number of optimizer steps", steps))
    moments = [set(rank.parameters) for rank in record.ranks]
    for moment in sorted(set.intersection(*moments)):
        digests = {rank.parameters[moment] for rank in record.ranks}
        checks.append((f"parameters at {moment}", digests))
    bad = [(what, values) for what, values in checks if len(values) > 1]
    for what, values in bad:
        yield finding(
            "ranks-disagree",
            "fail",
            f"the ranks differ in the {what}",
            where=what,
            got=", ".join(sorted(values)),
        )
    if not bad:
        yield finding("ranks-disagree", "pass", ", ".join(what for what, _ in checks))
    if not all("end" in names for names in moments) and len(record.ranks) > 1:
        reasons = {rank.parameters_reason for rank in record.ranks}
        yield finding(
            "rank-parameters",
            "not-checked",
            "whether the ranks ended with the same parameters is not known: "
            + ", ".join(sorted(filter(None, reasons))),
        )
