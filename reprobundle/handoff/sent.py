"""The one file that is sent: the modules of `far`, joined in the order of their use."""

from __future__ import annotations

import ast
import functools
from importlib import resources

_ORDER = ("machine", "files", "packages", "standing", "job", "agent")
_FAR = "reprobundle.handoff.far"

# Reads the file and then the request from the standard input, so nothing has to be on
# the other machine but a Python.
STARTER = (
    "import sys;n=int(sys.stdin.buffer.readline());"
    "exec(compile(sys.stdin.buffer.read(n),'agent','exec'))"
)


@functools.cache
def agent_source() -> bytes:
    """Return the agent as one file without an import from this package."""
    folder = resources.files(_FAR)
    parts = [(folder / f"{name}.py").read_text(encoding="utf-8") for name in _ORDER]
    return "\n\n".join(map(_without_our_imports, parts)).encode()


def _without_our_imports(source: str) -> str:
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_FAR):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines)
