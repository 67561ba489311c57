"""Point at the places in the sources that make generators which nobody can see made.

numpy's ``RandomState``, and ``Generator`` around a bit generator, are immutable types:
the recorder sees neither where one is made nor its seed. The source is read for that,
never run, so a place tells what stands there and not that it was reached.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from reprobundle.format.record import Remark
from reprobundle.run.sources import remarks_in

MOST_PLACES = 20
LONGEST_CALL = 80
UNSEEN = frozenset(
    {
        "numpy.random.RandomState",
        "numpy.random.mtrand.RandomState",
        "numpy.random.Generator",
    }
)
# A name of numpy's is known by the import that gives it.
_NEEDED = (re.compile(b"RandomState|Generator"), re.compile(b"numpy"))


def unseen_in(folder: Path, names: Iterable[str]) -> tuple[Remark, ...]:
    """Return a remark for each place in some sources of a project.

    Args:
        folder: The project.
        names: Files below it.
    """
    return tuple(islice(remarks_in(folder, names, unseen, needed=_NEEDED), MOST_PLACES))


def unseen(tree: ast.AST, name: str) -> Iterator[Remark]:
    """Yield a remark for each such call in one parsed source.

    Args:
        tree: The source.
        name: What to call it.
    """
    known = _imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        made = _dotted(node.func, known)
        if made in UNSEEN:
            yield Remark(
                id="generator-not-seen",
                severity="gap",
                where=f"{name}:{node.lineno}",
                text=f"{ast.unparse(node)[:LONGEST_CALL]} stands here: {made} is an "
                "immutable type, so whether one was made, and with which seed, was not "
                "seen",
            )


def _imported(tree: ast.AST) -> dict[str, str]:
    """Return local name → what an import gave it, wherever the import stands."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                first = one.name.partition(".")[0]
                known[one.asname or first] = one.name if one.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                known[one.asname or one.name] = f"{node.module}.{one.name}"
    return known


def _dotted(node: ast.expr, known: dict[str, str]) -> str:
    """Return the full name of what is called; empty if an import does not tell."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return ""
    return ".".join([known[node.id], *reversed(parts)])
