"""Keep torch's compiler from compiling the recorder's own functions.

When compiled code calls something that cannot be compiled, the compiler tries every
Python function called from there, our wrappers and hooks among them. That would cost
time, count against its limits, and print messages. A mark on a code object makes it
run that code as it is. The mark does not stop it from inlining a hook; each hook says
in its first line that it does nothing then.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType
    from typing import Any


def run_uncompiled(torch: Any, package: str) -> None:
    """Mark all code of the package `package` as not to be compiled.

    The marks are set without importing the compiler, which is large.
    """
    mark = _marker(torch._C._dynamo.eval_frame)
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            for code in _codes(vars(module), name):
                mark(code)


def _marker(frames: Any) -> Callable[[CodeType], None]:
    if hasattr(frames, "skip_code"):
        skip: Callable[[CodeType], None] = frames.skip_code
        return skip
    actions = frames._FrameAction
    # What our code calls is the user's, and may be compiled.
    strategy = frames._FrameExecStrategy(actions.SKIP, actions.DEFAULT)

    def mark(code: CodeType) -> None:
        frames.set_code_exec_strategy(code, strategy)

    return mark


def _codes(names: dict[str, Any], module: str) -> Iterator[CodeType]:
    for value in list(names.values()):
        if isinstance(value, property):
            value = value.fget
        if isinstance(value, _FUNCTION) and value.__module__ == module:
            yield from _with_nested(value.__code__)
        elif isinstance(value, type) and value.__module__ == module:
            yield from _codes(dict(vars(value)), module)


def _with_nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, _CODE):
            yield from _with_nested(constant)


_FUNCTION = type(_codes)
_CODE = type(_codes.__code__)
