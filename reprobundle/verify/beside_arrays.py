"""How the texts that a file holds beside its arrays stand to the reference.

A safetensors file has texts in its ``__metadata__``, and what a checkpoint holds beside
tensors and numbers (names of classes, of an architecture) is exported there. They are
part of the result: compared exactly, left out by the same rules as keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reprobundle.format.findings import ArrayComparison
from reprobundle.outputs.text import printable

METADATA = "__metadata__"


def compare_texts(
    reference: Mapping[str, str],
    replay: Mapping[str, str],
    *,
    leave_out: Callable[[Sequence[str]], bool],
) -> tuple[tuple[ArrayComparison, ...], tuple[str, ...]]:
    """Return a part for each text that differs, else one for all, and what is left out.

    Args:
        reference: The texts of the reference by name.
        replay: Those of the replay.
        leave_out: Tells whether a rule leaves out the text of that name.
    """
    names = {**reference, **replay}
    ignored = tuple(sorted(name for name in names if leave_out((name,))))
    kept = [name for name in names if name not in ignored]
    parts = [
        _differing(name, reference.get(name), replay.get(name))
        for name in kept
        if reference.get(name) != replay.get(name)
    ]
    if kept and not parts:
        parts.append(_part(METADATA, elements=len(kept), equal=True))
    return tuple(parts), ignored


def _differing(name: str, expected: str | None, got: str | None) -> ArrayComparison:
    missing = "missing in the replay" if got is None else "not in the reference"
    both = expected is not None and got is not None
    return _part(
        name,
        equal=False,
        outside=1,
        expected=_shown(expected),
        got=_shown(got),
        problem="the text differs" if both else f"text {missing}",
    )


def _shown(text: str | None) -> str:
    return "(no such text)" if text is None else printable(f'"{text}"')


def _part(
    name: str,
    *,
    equal: bool,
    elements: int = 1,
    outside: int = 0,
    expected: str = "",
    got: str = "",
    problem: str = "",
) -> ArrayComparison:
    return ArrayComparison(
        name=name,
        dtype="text",
        elements=elements,
        equal=equal,
        outside=outside,
        expected=expected,
        got=got,
        problem=problem,
    )
