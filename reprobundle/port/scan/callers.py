"""Which functions of one file lead to a function, and whether the file calls one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

# The statements of the file itself, which run whenever it does.
MODULE = ""
# Called by whoever makes an object and uses it.
_OF_OBJECTS = frozenset({"forward", "setup", "training_step", "configure_optimizers"})


class Callers:
    """Who calls whom in one file, by bare names, where no guard stands before it."""

    def __init__(self) -> None:
        self._callers: dict[str, set[str]] = {}

    def add(self, callee: str, inside: Iterable[str]) -> None:
        """Note a call.

        Args:
            callee: Bare name of a function or class.
            inside: Functions around the call, the innermost last. A call of the
                function by itself, or of what it overrides, is none.
        """
        around = list(inside)
        if callee not in {bare(one) for one in around}:
            caller = around[-1] if around else MODULE
            self._callers.setdefault(callee, set()).add(caller)

    def add_class(self, node: ast.ClassDef) -> None:
        """Note that making an object of a class makes one of its bases."""
        for base in node.bases:
            name = bare(ast.unparse(base))
            self._callers.setdefault(name, set()).add(node.name)

    def reaching(self, function: str) -> frozenset[str]:
        """Return what leads to a function, itself and perhaps `MODULE` included."""
        found: set[str] = set()
        waiting = [function]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            owner, _, own = name.rpartition(".")
            if owner and (own.startswith("__") or own in _OF_OBJECTS):
                waiting.append(owner)
            else:
                waiting += self._callers.get(own, ())
        return frozenset(found)


def bare(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]
