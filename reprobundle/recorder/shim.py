"""Supply a module ``reprobundle`` where the package is not installed.

A real package of that name always wins, and so does a folder with modules of the
script's own. A folder without any, such as one with bundles beside the script, does
not: Python would make an empty package of it (PEP 420).
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

NAME = "reprobundle"
# Name there → name here; a module of this package is called shapes.
_FUNCTIONS = {
    "record": "record",
    "phase": "phase",
    "device": "device",
    "shapes": "asked_shapes",
    "minimal": "minimal",
}


class ShimFinder:
    """Find the module ``reprobundle`` if no other finder has one with code."""

    def __init__(self, recorder: ModuleType) -> None:
        self._recorder: Any = recorder

    def install(self) -> None:
        """Put this finder before the one that makes packages of folders."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return a spec for ``reprobundle`` itself and for nothing else."""
        if name != NAME or any(
            _has_code(finder.find_spec(name, path, target))
            for finder in sys.meta_path
            if finder is not self and hasattr(finder, "find_spec")
        ):
            return None
        machinery: Any = sys.modules["_frozen_importlib"]
        spec: ModuleSpec = machinery.ModuleSpec(name, self, origin="recorder")
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the import system make the module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module with the recorder's functions."""
        module.__doc__ = "Record values and phases of a run (supplied by the recorder)."
        for name, own in _FUNCTIONS.items():
            setattr(module, name, getattr(self._recorder, own))
        module.__version__ = self._recorder.VERSION  # type: ignore[attr-defined]


def _has_code(spec: ModuleSpec | None) -> bool:
    """Tell whether what was found is more than a folder without a module in it."""
    if spec is None or spec.origin is not None:
        return spec is not None
    try:
        return any(
            name.endswith((".py", ".so", ".pyd"))
            for folder in spec.submodule_search_locations or ()
            for name in os.listdir(folder)
        )
    except OSError:
        return True
