"""Read the Python sources of a project, without running them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from reprobundle.format.record import Remark

MOST_SOURCE_BYTES = 1 << 20


def remarks_in(
    folder: Path,
    names: Iterable[str],
    about: Callable[[ast.AST, str], Iterator[Remark]],
    *,
    needed: Sequence[re.Pattern[bytes]],
) -> Iterator[Remark]:
    """Yield what is to be said about some sources of a project.

    Args:
        folder: The project.
        names: Files below it; those that hold no Python are passed over.
        about: Says it of one parsed source and its name.
        needed: What all stands in every source of which anything is said. To look for
            that takes a hundredth of the time that parsing takes.
    """
    for name in names:
        if not name.endswith(".py"):
            continue
        tree = _parsed(folder / name, needed)
        if tree is not None:
            yield from about(tree, name)


def _parsed(path: Path, needed: Sequence[re.Pattern[bytes]]) -> ast.AST | None:
    try:
        if path.stat().st_size > MOST_SOURCE_BYTES:
            return None
        source = path.read_bytes()
        has_all = all(one.search(source) for one in needed)
        return ast.parse(source) if has_all else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        # A source that cannot be parsed did not run either.
        return None
