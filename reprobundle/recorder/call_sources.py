"""Read in the source of a call which device it names."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

# What was read of a call, by code and instruction: loops come by again.
_READ: dict[tuple[Any, int], tuple[bool, bool]] = {}
_READS: dict[tuple[Any, int], bool] = {}
_READERS = ("item", "float", "int", "bool", "print", "str", "repr", "format", "equal")
_CALLED: dict[tuple[Any, int], str] = {}
_NAMED: dict[tuple[Any, int], tuple[str, ...]] = {}


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
    words = ("device", "map_location")
    named = [key.value for c in calls for key in c.keywords if key.arg in words]
    values = named or [value for call in calls for value in call.args]
    return bool(named), any(map(_is_cpu, values))


def reads_value(frame: FrameType | None) -> bool:
    """Tell whether a frame asks for one value: ``x.item()``, ``float(x)``, ``if x``.

    Another call than these is an operator, which may read values for itself.
    """
    if frame is None:
        return False
    place = (frame.f_code, frame.f_lasti)
    known = _READS.get(place)
    if known is None:
        source, exact = _source(frame)
        known = _READS[place] = not exact or _is_read(source)
    return known


def _is_read(source: str) -> bool:
    import ast

    try:
        whole: Any = ast.parse(f"({source})").body[0]
    except SyntaxError:
        return True
    function = getattr(whole.value, "func", None)
    if function is None:
        # A condition, a comparison, a subscript: Python itself asks.
        return True
    name = getattr(function, "attr", getattr(function, "id", ""))
    return name in _READERS


def function_called(frame: FrameType) -> str:
    """Return the last name of the function that a frame is calling; else nothing."""
    place = (frame.f_code, frame.f_lasti)
    known = _CALLED.get(place)
    if known is None:
        source, exact = _source(frame)
        known = _CALLED[place] = _name_of(source) if exact else ""
    return known


def _name_of(source: str) -> str:
    import ast

    try:
        whole: Any = ast.parse(f"({source})").body[0]
    except SyntaxError:
        return ""
    function = getattr(whole.value, "func", None)
    name: str = getattr(function, "attr", getattr(function, "id", ""))
    return name


def device_of_tensor(frame: FrameType | None) -> Any:
    """Return what ``x`` is in a call with ``device=x.device``; None for another call.

    ``x`` may be a variable or an attribute of one. Attributes are read from an object's
    own dictionary, so that nothing of the user's runs.
    """
    if frame is None:
        return None
    place = (frame.f_code, frame.f_lasti)
    names = _NAMED.get(place)
    if names is None:
        names = _NAMED[place] = _owner_names(*_source(frame))
    if not names:
        return None
    first, *rest = names
    found = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        found = getattr(found, "__dict__", {}).get(name)
    return found


def _owner_names(source: str, exact: bool) -> tuple[str, ...]:
    """Return ``("self", "x")`` for a call with ``device=self.x.device``."""
    import ast

    if not exact or "device" not in source:
        return ()
    try:
        whole: Any = ast.parse(f"({source})").body[0]
    except SyntaxError:
        return ()
    for keyword in getattr(whole.value, "keywords", ()):
        value = keyword.value
        if keyword.arg == "device" and getattr(value, "attr", "") == "device":
            return _dotted(value.value)
    return ()


def _dotted(node: Any) -> tuple[str, ...]:
    if type(node).__name__ == "Name":
        return (node.id,)
    inner = _dotted(node.value) if type(node).__name__ == "Attribute" else ()
    return (*inner, node.attr) if inner else ()


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
