"""Which functions of other files a file calls in any case, whoever runs it.

Followed are the statements of the module, those under ``if __name__ == "__main__"``,
and the functions of the file that these call. What stands behind another condition may
never run and is not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Call(NamedTuple):
    """One call that happens whenever the file is run.

    Attributes:
        module: Dotted name of the module that has the function; a relative one starts
            with its dots.
        function: Its name there.
        place: ``file:line``.
    """

    module: str
    function: str
    place: str


def calls_in_any_case(tree: ast.Module, path: str) -> list[Call]:
    """Return the calls of imported functions.

    Args:
        tree: The file.
        path: Its path.
    """
    reader = _Reader(tree, path)
    return list(reader.calls(tree.body, frozenset()))


class _Reader:
    """The names of one file."""

    def __init__(self, tree: ast.Module, path: str) -> None:
        self._path = path
        self._own: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._imported: dict[str, tuple[str, str]] = {}
        for one in ast.walk(tree):
            if isinstance(one, ast.ImportFrom):
                self._from(one)
            elif isinstance(one, ast.Import):
                for alias in one.names:
                    self._imported[alias.asname or alias.name] = (alias.name, "")
        for one in tree.body:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._own[one.name] = one

    def _from(self, node: ast.ImportFrom) -> None:
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            self._imported[alias.asname or alias.name] = (base, alias.name)

    def calls(self, body: Sequence[ast.stmt], inside: frozenset[str]) -> Iterator[Call]:
        """Yield the calls of some statements and of what they call in this file."""
        for node in _calls(body):
            name = ast.unparse(node.func)
            if name in self._own and name not in inside:
                yield from self.calls(self._own[name].body, inside | {name})
            elif found := self._target(name):
                yield Call(*found, f"{self._path}:{node.lineno}")

    def _target(self, name: str) -> tuple[str, str] | None:
        """Return module and function of a call; None for no imported function."""
        if name in self._imported and self._imported[name][1]:
            return self._imported[name]
        owner, _, function = name.rpartition(".")
        if owner not in self._imported:
            return None
        module, inner = self._imported[owner]
        # ``from pkg import jobs``: jobs may be a module.
        joined = module + inner if module.endswith(".") else f"{module}.{inner}"
        return (joined if inner else module), function


def _calls(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        if isinstance(statement, ast.If):
            if "__name__" in ast.unparse(statement.test):
                yield from _calls(statement.body)
        elif isinstance(statement, (ast.With, ast.For)):
            yield from _calls(statement.body)
        elif isinstance(statement, ast.Try):
            # One that is caught may be meant to fail.
            yield from _calls(statement.finalbody)
        elif isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return)):
            value = statement.value
            yield from _inside(value) if value is not None else ()


def _inside(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of an expression that are made with it."""
    if isinstance(node, (ast.Lambda, ast.IfExp, ast.BoolOp)):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _inside(child)
