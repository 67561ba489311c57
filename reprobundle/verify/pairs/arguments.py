"""Which arguments of two commands differ: each one is a change of its own.

A command that halves the batch and changes the precision has changed two things,
though it is one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.difference_report import Axis, Change
from reprobundle.verify.pairs.axes import axis_of

_ABSENT = "not given"
# What people call these things on a command line, without dashes.
_NAMES: dict[str, Axis] = {
    "batch": "batch",
    "bs": "batch",
    "b": "batch",
    "seq_len": "shape",
    "length": "shape",
    "size": "shape",
    "image_size": "shape",
    "dtype": "precision",
    "amp": "precision",
    "bf16": "precision",
    "fp16": "precision",
    "seed": "seed",
    "device": "device",
    "threads": "threads",
    "data": "data",
}


def changed_arguments(left: Sequence[str], right: Sequence[str]) -> Iterator[Change]:
    """Yield one change for each argument that two commands do not share.

    Arguments with a name (``--batch 8``, ``--batch=8``, ``batch=8``) are matched by
    it; all others are one change of the command.
    """
    ours, theirs = _Arguments(left), _Arguments(right)
    for name in dict.fromkeys((*ours.named, *theirs.named)):
        sides = ours.named.get(name, _ABSENT), theirs.named.get(name, _ABSENT)
        if sides[0] != sides[1]:
            yield Change(
                axis=_axis(name), name=f"argument {name}", left=sides[0], right=sides[1]
            )
    if ours.others != theirs.others:
        yield Change(
            axis="command",
            name="arguments",
            left=" ".join(ours.others),
            right=" ".join(theirs.others),
        )


class _Arguments:
    """The arguments of a command: by name, and those without one."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.named: dict[str, str] = {}
        self.others: list[str] = []
        pending = ""
        for part in argv:
            name, equals, value = part.partition("=")
            plain = name.lstrip("-")
            if part.startswith("-") and plain:
                pending = "" if equals else plain
                self.named[plain] = value if equals else "given"
            elif equals and plain.replace(".", "_").isidentifier():
                self.named[plain] = value
                pending = ""
            elif pending:
                self.named[pending] = part
                pending = ""
            else:
                self.others.append(part)


def _axis(name: str) -> Axis:
    plain = name.replace("-", "_").lower()
    last = plain.rpartition(".")[2]
    known = _NAMES.get(last)
    if known is not None:
        return known
    axis = axis_of(last)
    return "command" if axis == "other" else axis
