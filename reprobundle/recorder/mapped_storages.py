"""Move a storage that names CUDA to the device that takes its place.

Storages move by methods of their own, which no function mode sees.

Source: ``torch/storage.py`` (``cuda``, ``cpu``, ``to``, ``mps``).
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .mapped_calls import device_text, is_cuda_name
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .mapped_calls import MappedCalls
    from .places import Places

    Function = Callable[..., Any]


class MappedStorages:
    """The methods of storages, for the device that takes the place of CUDA.

    Args:
        torch: The module.
        calls: Counts what is mapped.
        places: Remembers what would be on CUDA, where the target cannot tell; None
            where it can.
    """

    def __init__(self, torch: Any, calls: MappedCalls, places: Places | None) -> None:
        self._torch = torch
        self._calls = calls
        self._places = places
        self._home = torch.device(calls.target, 0)

    def install(self) -> None:
        """Attach to torch, which was just imported."""
        base = getattr(self._torch.storage, "_StorageBase", None)
        for name in ("cuda", "cpu", "to") if base is not None else ():
            replace(base, name, getattr(self, f"_{name}"))

    def _cuda(self, original: Function) -> Function:
        del original

        def cuda(storage: Any, device: Any = None, non_blocking: bool = False) -> Any:
            del non_blocking
            asked = "cuda" if device is None else device_text(device)
            self._calls.note("UntypedStorage.cuda", asked)
            return self._there(storage)

        return cuda

    def _cpu(self, original: Function) -> Function:
        def cpu(storage: Any) -> Any:
            if self._places is None or not self._places.holds(storage):
                return original(storage)
            return self._copied(storage)

        return cpu

    def _to(self, original: Function) -> Function:
        def to(storage: Any, *, device: Any, non_blocking: bool = False) -> Any:
            if isinstance(device, str) and is_cuda_name(device):
                self._calls.note("UntypedStorage.to", device)
                return self._there(storage)
            if device == self._home:
                return self._there(storage)
            if self._torch.device(device).type == "cpu":
                return storage.cpu()
            return original(storage, device=device, non_blocking=non_blocking)

        return to

    def _there(self, storage: Any) -> Any:
        """Return the storage on the target: a copy, if it is not there already."""
        if self._places is None:
            return storage.mps()
        if self._places.holds(storage):
            return storage
        moved = self._copied(storage)
        self._places.hold(moved)
        return moved

    def _copied(self, storage: Any) -> Any:
        return self._torch.UntypedStorage(storage.nbytes()).copy_(storage, False)
