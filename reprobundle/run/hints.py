"""Point at the three usual ways to keep memory that a training loop could give back.

Losses kept with their graph, whole predictions kept, and a hidden state carried into
the next iteration. The source is read, never run, so these are hints: each says what
was seen and where, and whether memory grows is for the memory log to show. Source:
"My model reports out of memory", PyTorch's FAQ (docs/source/notes/faq.rst).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from reprobundle.format.record import Remark
from reprobundle.run.loops import (
    Found,
    assigned_names,
    backward_names,
    carries,
    everything,
    last_name,
    loops,
)
from reprobundle.run.sources import remarks_in

MOST_HINTS = 20
_KEEPING = frozenset({"append", "extend", "add", "appendleft"})
# Whoever has one of these methods called is a model.
_OF_MODELS = frozenset({"parameters", "state_dict", "load_state_dict", "train", "eval"})
# Without one of these nothing in a source has a graph that could be kept.
_CALLED = rf"\.\s*(?:{'|'.join(sorted(_OF_MODELS))})\b[\s\\)]*\("
_NEEDED = (re.compile(rf"backward|{_CALLED}".encode()),)
_STATES = re.compile(
    r"(h|c|hx|cx|hs|cs|mems?|memory|carry)\d?|\w*(hidden|state)\w*", re.IGNORECASE
)
_NO_MODELS: frozenset[str] = frozenset()


def hints_in(folder: Path, names: Iterable[str]) -> tuple[Remark, ...]:
    """Return the hints about some sources of a project.

    Args:
        folder: The project.
        names: Files below it.
    """
    return tuple(islice(remarks_in(folder, names, hints, needed=_NEEDED), MOST_HINTS))


def hints(tree: ast.AST, name: str) -> Iterator[Remark]:
    """Yield the hints about one parsed source, by line.

    Args:
        tree: The source.
        name: What to call it.
    """
    models = _models(tree)
    if not models and not backward_names(ast.walk(tree)):
        return
    seen: set[tuple[str, int]] = set()
    for found in loops(tree):
        for kind, line, text in _of_loop(found, models):
            if (kind, line) not in seen:
                seen.add((kind, line))
                yield Remark(id=kind, severity="gap", where=f"{name}:{line}", text=text)


def _models(tree: ast.AST) -> frozenset[str]:
    return frozenset(
        ast.unparse(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _OF_MODELS
    )


class _Hint(NamedTuple):
    """One kind of hint, its line, and what is said."""

    kind: str
    line: int
    text: str


def _of_loop(found: Found, models: frozenset[str]) -> Iterator[_Hint]:
    trained = _with_graph(found)
    made = _made_by_models(found, models) - trained
    for node in found.nodes:
        for kept in _kept(node, trained):
            if carries(kept, trained, _NO_MODELS):
                text = (
                    f"{ast.unparse(kept)} is kept with its graph in every round: keep "
                    ".item() or .detach() of it"
                )
                yield _Hint("keeps-loss-graph", kept.lineno, text)
            elif isinstance(node, ast.Call) and carries(kept, made, models):
                text = (
                    f"{ast.unparse(kept)} is kept whole and with its graph in every "
                    "round: keep .detach(), an aggregate, or use no_grad()"
                )
                yield _Hint("keeps-predictions", kept.lineno, text)
    yield from _carried(found)


def _with_graph(found: Found) -> set[str]:
    """Return what the loop calls ``backward`` on and does not cut off itself."""
    trained = backward_names(found.nodes)
    cut = {
        name
        for node in found.nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        for name in assigned_names(target)
        if name in trained
        and _reads(node.value, name)
        and not carries(node.value, {name}, _NO_MODELS)
    }
    return trained - cut


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(p, ast.Name) and p.id == name for p in ast.walk(node))


def _made_by_models(found: Found, models: frozenset[str]) -> set[str]:
    return {
        name
        for node in found.nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and carries(node.value, set(), models)
        for target in node.targets
        for name in assigned_names(target)
    }


def _kept(node: ast.AST, trained: set[str]) -> Iterator[ast.expr]:
    """Yield what a statement adds to something that outlives the round."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        keeping = node.func.attr in _KEEPING and node.args
        if keeping and last_name(node.func.value) not in trained:
            yield node.args[-1]
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield from () if last_name(node.target) in trained else (node.value,)


def _carried(found: Found) -> Iterator[_Hint]:
    """Yield the states that a loop with a backward pass hands to its next round."""
    if not backward_names(found.nodes):
        return
    inside = tuple(everything(found.loop))
    for node in inside:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        for name in _handed_on(node, node.value):
            if _bindings(inside, name) == 1 and not _is_cut(inside, name):
                text = (
                    f"{name} goes into the next round with the graph of this one: "
                    f"begin the round with {name} = {name}.detach()"
                )
                yield _Hint("carries-hidden-state", node.lineno, text)


def _handed_on(node: ast.Assign, call: ast.Call) -> list[str]:
    """Return the names that a call takes and that its result is bound to."""
    given = {name for argument in call.args for name in _plain(argument)}
    names = sorted(given & assigned_names(node.targets[0]))
    if isinstance(node.targets[0], ast.Name):
        return [name for name in names if _STATES.fullmatch(name)]
    return names


def _plain(argument: ast.AST) -> Iterator[str]:
    if isinstance(argument, ast.Name):
        yield argument.id
    elif isinstance(argument, (ast.Tuple, ast.List)):
        for one in argument.elts:
            yield from _plain(one)


def _bindings(nodes: Iterable[ast.AST], name: str) -> int:
    """Return how often a loop binds a name: a second time makes it another value."""
    return sum(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and node.id == name
        for node in nodes
    )


def _is_cut(nodes: Iterable[ast.AST], name: str) -> bool:
    return any(
        isinstance(node, ast.Call)
        and last_name(node) == "detach_"
        and _reads(node.func, name)
        for node in nodes
    )
