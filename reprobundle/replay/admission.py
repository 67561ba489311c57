"""Let nothing sensitive out with a replay's record but what somebody allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from reprobundle.errors import SensitiveContentError
from reprobundle.format.canonical import encode
from reprobundle.format.record import Record
from reprobundle.format.writer import Source
from reprobundle.run.finished import Assembled
from reprobundle.run.secrets.gate import ALLOWED, Gate
from reprobundle.run.stand_ins import with_remarks


def admit(
    records: Sequence[Assembled],
    references: Iterable[Record],
    allowed: Iterable[str],
    *,
    home: Path | None = None,
) -> list[Assembled]:
    """Return the records, after a scan of them and of all that goes with them.

    A place that the author allowed when the bundle was made is allowed here too: the
    same file says the same. An output of equal content is not stored again, and was
    scanned then.

    Args:
        records: What is about to be attached or written.
        references: The sealed records that were replayed.
        allowed: ``KIND@PATH`` or ``PATH``, as in `Gate`.
        home: The home folder to look for; None for the caller's.

    Returns:
        The records; the first one says what was let through.

    Raises:
        SensitiveContentError: Something was not allowed.
        BadCallError: `allowed` names a kind that does not exist.
    """
    gate = Gate([*allowed, *allowed_by(references)], home=str(home or Path.home()))
    try:
        gate.check_sources(source for run in records for source in _sources(run))
    except SensitiveContentError as error:
        raise SensitiveContentError(
            f"the replay ran, and its record is not attached: {error.message}",
            places=error.places,
            advice="look at what the command prints and writes here; if it may be "
            f"handed on, replay with --allow-sensitive {error.places[0]}",
        ) from error
    first, *rest = records
    return [with_remarks(first, gate.remarks()), *rest]


def allowed_by(records: Iterable[Record]) -> list[str]:
    """Return the places that records say were allowed when they were made."""
    return [
        _place(remark.where)
        for record in records
        for remark in record.remarks
        if remark.id == ALLOWED
    ]


def _place(where: str) -> str:
    path, _, line = where.rpartition(":")
    return path if path and line.isdigit() else where


def _sources(run: Assembled) -> Iterator[Source]:
    """Yield the record and its content, each named as a run's member."""
    yield Source("runs/1/record.json", "record", encode(run.record))
    for name, path in sorted(run.content.items()):
        yield Source(f"runs/1/{name}", "output", path)
