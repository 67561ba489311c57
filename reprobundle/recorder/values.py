"""Keep the values that a script records, so that two runs can be compared by them."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

from . import tensor_file
from .jsontext import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .devices import Devices
    from .session import Session

_NUMPY_NUMBERS = "biufcmMV"


class Values:
    """Write each recorded value to a file of its own, at once."""

    def __init__(self, session: Session, devices: Devices) -> None:
        self._session = session
        self._devices = devices
        self._names: dict[str, int] = {}
        self._written = 0

    def record(self, name: str, value: Any) -> None:
        """Keep `value` under `name`; further ones become ``name#2`` and so on.

        Args:
            name: Any text.
            value: A tensor, an array, a number, text, or lists and mappings of them.
        """
        self._session.attempt("record", self._record, str(name), value)

    def _record(self, name: str, value: Any) -> None:
        file = self._write(value)
        count = self._names[name] = self._names.get(name, 0) + 1
        unique = name if count == 1 else f"{name}#{count}"
        self._session.emit("value", name=unique, file=file)

    def _write(self, value: Any) -> str:
        self._written += 1
        stem = f"{self._session.pid}-{self._written}"
        plain = self._tensor(value)
        if plain is not None:
            file = stem + ".safetensors"
            path = os.path.join(self._session.values, file)
            tensor_file.write(path, {"value": plain})
        else:
            file = stem + ".json"
            self._write_text(file, encode(self._simple(value)))
        return file

    def _write_text(self, file: str, text: str) -> None:
        path = os.path.join(self._session.values, file)
        temporary = path + ".part"
        with open(temporary, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
        os.replace(temporary, path)

    def _tensor(self, value: Any) -> tensor_file.Plain | None:
        torch: Any = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            self._devices.note(value.device.type, "recorded value")
            with torch.no_grad():
                return tensor_file.plain_torch(torch, value)
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None:
            array = _as_array(numpy, value)
            if array is not None:
                return tensor_file.plain_numpy(numpy, array)
        return None

    def _simple(self, value: Any) -> object:
        """Return `value` in a form that JSON has."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, dict):
            return {str(key): self._simple(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._simple(item) for item in value]
        if isinstance(value, (set, frozenset)):
            return [self._simple(item) for item in sorted(value, key=str)]
        if isinstance(value, (bytes, bytearray)):
            return value.hex()
        if isinstance(value, complex):
            return [value.real, value.imag]
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        # Tensors, arrays and numpy scalars inside lists and mappings.
        for method in ("tolist", "item"):
            convert = getattr(value, method, None)
            if callable(convert):
                return self._simple(convert())
        message = f"a value of type {type(value).__qualname__} cannot be recorded"
        raise TypeError(message)


def _as_array(numpy: Any, value: Any) -> Any:
    """Return `value` as an array of numbers, or None when it is none."""
    if not isinstance(value, numpy.ndarray):
        if isinstance(value, (numpy.generic, type)) or not hasattr(value, "__array__"):
            return None
        value = numpy.asarray(value)
    if value.dtype.kind not in _NUMPY_NUMBERS or value.dtype.fields:
        return None
    return value
