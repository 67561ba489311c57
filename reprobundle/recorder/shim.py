"""Supply a module ``reprobundle`` where the package is not installed.

The finder stands last: a real package of that name always wins.
"""

from __future__ import annotations

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
    """Find the module ``reprobundle`` if nobody else did."""

    def __init__(self, recorder: ModuleType) -> None:
        self._recorder: Any = recorder

    def install(self) -> None:
        """Put this finder after all others."""
        sys.meta_path.append(self)

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return a spec for ``reprobundle`` itself and for nothing else."""
        if name != NAME:
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
