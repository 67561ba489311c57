"""Describe the exception that ends a process, as if the recorder were not there."""

from __future__ import annotations

import os

from .callers import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    # Not at start: it is only needed once, and takes milliseconds to import.
    import traceback as formatter

    lines = formatter.format_exception(kind, error, traceback)
    return {
        "type": _type_name(kind),
        "message": _message(error)[:_LONGEST_TEXT],
        "where": innermost_place(traceback, error, project),
        "traceback": "".join(lines)[:_LONGEST_TEXT],
    }


def _type_name(kind: type[BaseException]) -> str:
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception:
        return "<the exception cannot be shown as text>"
