"""What a repeat pass without the author's own variables shows, and what to do then.

It runs with the variables that a replay has. So a command that needs another one fails
here, or gives other results, and its author hears of it before anybody else does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import msgspec

from reprobundle.format.record import Record
from reprobundle.run.finished import Assembled
from reprobundle.run.missing_variables import as_settled, names_missing

_REMEDY = "-- env NAME=VALUE COMMAND makes a variable part of the command"


def missing(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the variables that measured passes read and their repeats did not have."""
    found = [name for record in records for name in names_missing(record.remarks)]
    return tuple(dict.fromkeys(found))


def settled(run: Assembled) -> Assembled:
    """Return a run as it is told once its repeat gave the same without them."""
    remarks = tuple(map(as_settled, run.record.remarks))
    record = msgspec.structs.replace(run.record, remarks=remarks)
    return dataclasses.replace(run, record=record)


def repeat_advice(variables: tuple[str, ...]) -> str:
    """Return what to do about a repeat pass that failed.

    Args:
        variables: From `missing`.
    """
    if variables:
        lacks = f"it ran without {', '.join(variables)}, as a replay does: {_REMEDY}"
    else:
        lacks = (
            "the bundle lacks something the command needs: a file (name it with "
            "--input), or one of your variables, of which a replay has few "
            f"({_REMEDY})"
        )
    return f"{lacks}; --passes measured stops after one pass"


def told_of_difference(variables: tuple[str, ...]) -> str:
    """Return the line for a repeat pass that gave other results."""
    return (
        f"the repeat pass differs, and it ran without {', '.join(variables)}, as a "
        f"replay does: {_REMEDY}"
    )
