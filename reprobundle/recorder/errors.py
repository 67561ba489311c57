"""Describe the exception that ends a process, as if the recorder were not there."""

from __future__ import annotations

import os
import sys

from .callers import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any

_LONGEST_TEXT = 200_000


def hide_our_frames(error: BaseException | None) -> None:
    """Take the recorder's frames out of the tracebacks of `error` and its causes.

    Wrapped functions add a frame of ours; what the interpreter prints afterwards is
    what it would print without the recorder.
    """
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        _hide(current.__traceback__)
        waiting += [current.__cause__, current.__context__]


def _hide(traceback: TracebackType | None) -> None:
    while traceback is not None:
        following = traceback.tb_next
        while following is not None and _is_hidden(following):
            following = following.tb_next
        traceback.tb_next = following
        traceback = following


def _is_hidden(traceback: TracebackType) -> bool:
    return is_ours(traceback.tb_frame.f_code.co_filename)


def innermost_place(
    traceback: TracebackType | None, error: BaseException | None, project: str
) -> str:
    """Return ``file:line`` of the innermost frame inside `project`, else of the last.

    A syntax error is where its text is.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{os.path.abspath(error.filename)}:{error.lineno}"
    top = os.path.join(project, "")
    inside = last = ""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        place = f"{name}:{traceback.tb_lineno}"
        if not is_ours(name):
            last = place
            if name.startswith(top):
                inside = place
        traceback = traceback.tb_next
    return inside or last


def error_fields(
    kind: type[BaseException],
    error: BaseException | None,
    traceback: TracebackType | None,
    project: str,
) -> dict[str, Any]:
    """Return the fields of an error event, without the number of steps."""
    return {
        "type": _type_name(kind),
        "message": _message(error)[:_LONGEST_TEXT],
        "where": innermost_place(traceback, error, project),
        "traceback": _formatted(kind, error, traceback)[:_LONGEST_TEXT],
    }


def _formatted(
    kind: type[BaseException],
    error: BaseException | None,
    traceback: TracebackType | None,
) -> str:
    """Return the text of a traceback.

    The formatter is imported only now: it takes milliseconds. After an interrupt it is
    not imported at all, for its imports compile code, which makes the interpreter
    forget that it must end by the signal.
    """
    if "traceback" not in sys.modules and issubclass(kind, KeyboardInterrupt):
        return "".join(_frames(traceback)) + kind.__qualname__ + "\n"
    import traceback as formatter

    return "".join(formatter.format_exception(kind, error, traceback))


def _frames(traceback: TracebackType | None) -> Iterator[str]:
    while traceback is not None:
        code = traceback.tb_frame.f_code
        place = f'"{code.co_filename}", line {traceback.tb_lineno}'
        yield f"  File {place}, in {code.co_name}\n"
        traceback = traceback.tb_next


def _type_name(kind: type[BaseException]) -> str:
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception:
        return "<the exception cannot be shown as text>"
