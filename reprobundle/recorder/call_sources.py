"""Read in the source of a call which device it names."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

# What was read of a call, by code and instruction: loops come by again.
_READ: dict[tuple[Any, int], tuple[bool, bool]] = {}


def device_named(frame: FrameType | None) -> tuple[bool, bool]:
    """Return whether a call names a device, and whether it is the CPU outright.

    Args:
        frame: Of the user, in the middle of a call.
    """
    if frame is None:
        return False, False
    place = (frame.f_code, frame.f_lasti)
    known = _READ.get(place)
    if known is None:
        known = _READ[place] = read_call(*_source(frame))
    return known


def read_call(source: str, exact: bool) -> tuple[bool, bool]:
    """Return whether a call names a device by keyword, and names the CPU outright.

    Args:
        source: The call.
        exact: Whether it is that and no more. Else it is a line, and all its calls
            are looked at.
    """
    import ast

    try:
        found = ast.parse(f"({source})" if exact else source)
    except SyntaxError:
        return False, False
    calls = [one for one in ast.walk(found) if isinstance(one, ast.Call)]
    if exact:
        # The outermost one; a piece that is no call, such as a loop, names nothing.
        whole: Any = found.body[0]
        calls = [one for one in calls if one is whole.value]
    named = [key.value for c in calls for key in c.keywords if key.arg == "device"]
    values = named or [value for call in calls for value in call.args]
    return bool(named), any(map(_is_cpu, values))


def _is_cpu(value: Any) -> bool:
    """Tell whether an expression is ``"cpu"`` or ``torch.device("cpu")``."""
    if type(value).__name__ == "Call":
        return any(map(_is_cpu, value.args))
    return getattr(value, "value", None) in ("cpu", "cpu:0")


def _source(frame: FrameType) -> tuple[str, bool]:
    """Return the source of the call that a frame is making, and whether it is that.

    Python 3.10 knows no more than the line.
    """
    import linecache

    code, first, last = frame.f_code, frame.f_lineno, frame.f_lineno
    begin: int | None = None
    end: int | None = None
    if hasattr(code, "co_positions"):
        one, other, begin, end = list(code.co_positions())[frame.f_lasti // 2]
        first, last = one or first, other or last
    name = code.co_filename
    lines = [linecache.getline(name, n).encode() for n in range(first, last + 1)]
    exact = begin is not None and end is not None and bool(lines)
    if exact:
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][begin:]
    return b"".join(lines).decode(errors="replace").strip(), exact
