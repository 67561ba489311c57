"""Say of which process of a distributed run each thing that `inspect` shows is."""

from __future__ import annotations

from reprobundle.format.record import Rank, Record, SeedCall
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, paragraph, table
from reprobundle.report.screen import Line, Screen, Span

# Each says no more than the record holds: it keeps one set of states, one table of
# phases and one environment, whatever the number of processes.
STATES = (
    "final states are those of the command's first process, initial states and draws "
    "completed from later ones; those of each rank are not recorded"
)
PHASES = (
    "of one process, the one with most optimizer steps; which one is not recorded, "
    "and the phases of the other processes are not kept"
)
FACTS = (
    "facts of the command's first process; what it could not tell is from a later "
    "process, so values of several processes may stand side by side; those of each "
    "rank and the backend of the process group are not recorded"
)


def rank_lines(record: Record, screen: Screen) -> list[Line]:
    """Return a row for each rank; nothing for a run that has none."""
    if not record.ranks:
        return []
    columns = (
        Column("rank", align="right"),
        Column("of", align="right"),
        Column("process group"),
        Column("end"),
        Column("steps", align="right"),
        Column("seeds", least=12),
        Column("outputs", least=10),
    )
    return table(screen, columns, [_row(rank) for rank in record.ranks])


def _row(rank: Rank) -> Row:
    return (
        Span(str(rank.rank)),
        Span(str(rank.world_size)),
        Span("joined") if rank.joined else Span("never joined", "warn"),
        Span("reported") if rank.ended else Span("not reported", "warn"),
        Span(text.count(rank.steps)),
        Span(", ".join(rank.seeds) or "none set"),
        Span(", ".join(rank.outputs) or "none"),
    )


def seed_owner(call: SeedCall, record: Record) -> str:
    """Return ``rank 1: `` for a call in a rank; empty for a run that has none."""
    if not record.ranks:
        return ""
    number = {rank.pid: rank.rank for rank in record.ranks}
    return f"rank {number[call.pid]}: " if call.pid in number else "no rank: "


def whose(record: Record, screen: Screen, words: str) -> list[Line]:
    """Return `words` below a block of a distributed run; nothing for any other."""
    return paragraph(screen, "", words) if record.ranks else []
