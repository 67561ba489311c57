"""Run a script that names CUDA outright on another device, without editing it.

Nothing here does anything unless the launcher asks for it. Then every call that names
CUDA is given the target, counted by place, and told; what only CUDA has is refused with
an error that names it.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .imports import ImportWatch
    from .mapped_calls import MappedCalls
    from .mapped_classes import MappedClasses
    from .session import Session


class DeviceMapping:
    """The part of the recorder that gives CUDA's calls to another device."""

    def __init__(self, session: Session) -> None:
        self._session = session
        source, _, self._target = session.mapping.partition("=")
        self.active = source == "cuda" and self._target in ("cpu", "mps")
        self._calls: MappedCalls | None = None
        self._mode: Any = None

    def watch(self, imports: ImportWatch) -> None:
        """Wait for the modules that torch loads only when they are asked for."""
        if self.active:
            imports.watch("torch.distributed.distributed_c10d", self._on_distributed)
            imports.watch("torch.utils.cpp_extension", self._on_extensions)

    def on_torch(self, torch: Any) -> None:
        """Install everything, after all parts that ask torch what is there."""
        if not self.active:
            return
        # Only a mapped run pays for these modules.
        from .mapped_cuda import MappedCuda
        from .mapped_sharing import MappedSharing
        from .mapped_storages import MappedStorages
        from .places import Places
        from .redirect import Redirect, enter_everywhere

        calls = self._counted()
        places = Places(torch) if self._target == "cpu" else None
        MappedCuda(torch, calls).install()
        self._classes(torch).install()
        if places is not None:
            places.install()
        MappedStorages(torch, calls, places).install()
        MappedSharing(torch, calls, places).install()
        self._mode = enter_everywhere(torch, Redirect(torch, calls, places))

    def _counted(self) -> MappedCalls:
        from .mapped_calls import MappedCalls

        if self._calls is None:
            self._calls = MappedCalls(self._session, self._target)
        return self._calls

    def _classes(self, torch: Any) -> MappedClasses:
        from .mapped_classes import MappedClasses

        return MappedClasses(torch, self._counted())

    def _on_distributed(self, module: Any) -> None:
        self._classes(sys.modules["torch"]).on_distributed(module)

    def _on_extensions(self, module: Any) -> None:
        self._classes(sys.modules["torch"]).on_extensions(module)

    def continue_in_fork(self) -> None:
        """Count anew in a fork."""
        if self._calls is not None:
            self._calls.continue_in_fork()

    def report_end(self) -> None:
        """Send the last counts."""
        if self._calls is not None:
            self._calls.report_end()
