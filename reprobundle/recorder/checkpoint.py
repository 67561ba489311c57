"""Turn checkpoints into tensor files, in an interpreter that has torch.

Run as ``python checkpoint.py OUT_DIR FILE...`` in the user's environment. A checkpoint
is a pickle; it is read with ``weights_only=True`` and in no other way, so nothing in it
is executed. For file number *n* (from 0) ``OUT_DIR/<n>.safetensors`` is written, and
one JSON line says how it went. Texts go into the file's metadata.

Names are dotted paths into the checkpoint, such as ``optimizer.state.0.exp_avg``.
Numbers become tensors without axes: float64, int64, bool.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_PACKAGE = "_reprobundle_checkpoint"


def _own_package() -> None:
    """Make relative imports work when this file is run as a script.

    The script's folder leaves the path: a module of ours must not be found by torch
    under the name of another.
    """
    global __package__
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(
        _PACKAGE,
        os.path.join(folder, "__init__.py"),
        submodule_search_locations=[folder],
    )
    if spec is None or spec.loader is None:
        message = f"{folder} is no package"
        raise ImportError(message)
    package = module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
    __package__ = _PACKAGE


if __name__ == "__main__" and not __package__:
    _own_package()

from . import tensor_file  # noqa: E402 -- the package must exist first
from .jsontext import encode  # noqa: E402

_LONGEST_REASON = 300


def main(arguments: Sequence[str]) -> int:
    """Convert the named files and print one JSON line for each.

    Args:
        arguments: The output folder, then the checkpoints.

    Returns:
        0, also when a file could not be read: its line says so. 20 for a bad call.
    """
    if len(arguments) < 2:
        sys.stderr.write("usage: checkpoint.py OUT_DIR FILE...\n")
        return 20
    folder, *files = arguments
    for number, file in enumerate(files):
        line = _converted(file, os.path.join(folder, f"{number}.safetensors"))
        text = encode({"file": file, **line}) + "\n"
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    return 0


def _converted(file: str, target: str) -> dict[str, object]:
    try:
        import torch

        with torch.no_grad():
            content = torch.load(file, map_location="cpu", weights_only=True)
            tensors, texts = flattened(torch, content)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            tensor_file.write(target, tensors, texts)
    except Exception as error:
        return {"ok": False, "reason": _reason(error)}
    return {"ok": True, "arrays": len(tensors)}


def flattened(
    torch: Any, content: Any
) -> tuple[dict[str, tensor_file.Plain], dict[str, str]]:
    """Return the tensors and the texts of a loaded checkpoint by dotted name."""
    tensors: dict[str, tensor_file.Plain] = {}
    texts: dict[str, str] = {}
    used: set[str] = set()
    for name, leaf in tensor_file.flat_names(content):
        unique = _unique(name, used)
        tensor = _as_tensor(torch, leaf)
        if tensor is None:
            texts[unique] = str(leaf)
        else:
            tensors[unique] = tensor_file.plain_torch(torch, tensor)
    return tensors, texts


def _unique(name: str, used: set[str]) -> str:
    """Tell apart a key ``a.b`` and a key ``b`` below ``a``."""
    unique, count = name, 1
    while unique in used:
        count += 1
        unique = f"{name}#{count}"
    used.add(unique)
    return unique


def _as_tensor(torch: Any, leaf: Any) -> Any:
    """Return `leaf` as a tensor, or None when it is text or something else."""
    if isinstance(leaf, torch.Tensor):
        return leaf
    if isinstance(leaf, bool):
        return torch.tensor(leaf, dtype=torch.bool)
    if isinstance(leaf, int) and -(2**63) <= leaf < 2**63:
        return torch.tensor(leaf, dtype=torch.int64)
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=torch.float64)
    return None


def _reason(error: Exception) -> str:
    """Return one line; torch adds pages of advice, some of it dangerous."""
    text = str(error)
    if "eights only load failed" in text or "weights_only" in text:
        return "it holds more than tensors and plain values" + _refused(text)
    line = " ".join(text.split())
    return f"{type(error).__name__}: {line}"[:_LONGEST_REASON]


def _refused(text: str) -> str:
    """Return which class was refused, if torch says so."""
    _, mark, rest = text.partition("GLOBAL ")
    name = rest.split(maxsplit=1)[0].strip("`") if mark and rest.strip() else ""
    return f": {name}" if name else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
