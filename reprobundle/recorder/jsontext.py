"""Read and write small JSON texts without importing ``json``.

``json`` pulls in ``re`` and ``enum``. A recorder that imports them before the user's
code would cost milliseconds in every process, and would decide which ``re`` a project
with a module of that name gets. The accelerator module has no such dependencies.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _quote: Callable[[str], str]
    _make_scanner: Any

try:
    from _json import encode_basestring as _quote
    from _json import make_scanner as _make_scanner
except ImportError:  # An interpreter without the accelerator.
    import json as _json

    _make_scanner = None

    def _quote(text: str, /) -> str:
        return _json.dumps(text, ensure_ascii=False)


class _ScannerSettings:
    """What the C scanner asks its caller for: plain JSON, no hooks."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def decode(text: str) -> Any:
    """Return the value that a JSON `text` without leading blanks stands for."""
    if _make_scanner is None:
        return _json.loads(text)
    value, _ = _make_scanner(_ScannerSettings())(text.strip(), 0)
    return value


def encode(value: object) -> str:
    """Return `value` as JSON on one line.

    NaN and infinite floats become the strings ``nan``, ``inf`` and ``-inf``; sets are
    sorted; mapping keys become text.

    Raises:
        TypeError: A part of `value` has no JSON form.
    """
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        pairs = (f"{_quote(str(key))}:{encode(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    return "[" + ",".join(encode(item) for item in _items(value)) + "]"


def _float(value: float) -> str:
    if value != value:  # NaN; math would be one more import.
        return '"nan"'
    if value in (float("inf"), float("-inf")):
        return '"inf"' if value > 0 else '"-inf"'
    return float.__repr__(value)


def _items(value: object) -> list[object] | tuple[object, ...]:
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    message = f"a value of type {type(value).__qualname__} has no JSON form"
    raise TypeError(message)
