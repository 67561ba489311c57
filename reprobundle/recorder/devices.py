"""Know which devices hold the run's tensors, and wait for the one in use."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .session import Session

_HOST = ("cpu", "meta")


class Devices:
    """Report each device type when it is first seen, and synchronise with it.

    No device is ever asked for: asking whether CUDA is there starts its driver,
    which fixes ``CUDA_VISIBLE_DEVICES`` and breaks forks. A device is in use once
    the user's code put a tensor on it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: set[str] = set()
        self._torch: Any = None
        self._cuda_in_use: Callable[[], bool] | None = None
        self.on_accelerator: Callable[[], None] | None = None
        self.on_possible: Callable[[], None] | None = None

    def use_torch(self, torch: ModuleType) -> None:
        """Learn which accelerators this build of torch can use at all."""
        self._torch = torch
        version = getattr(torch, "version", None)
        if getattr(version, "cuda", None) or getattr(version, "hip", None):
            self._cuda_in_use = torch.cuda.is_initialized
            self._call(self.on_possible)

    def continue_in_fork(self) -> None:
        """See everything anew: a fork reports for itself."""
        self._seen = set()

    def note(self, device_type: str, seen_on: str) -> None:
        """Report that a tensor was seen on a device of this type."""
        if device_type in self._seen:
            return
        self._seen.add(device_type)
        name = device_type
        if device_type == "mps" and sys.platform != "darwin":
            # No Apple GPU exists there; nothing measured on it may pass for one.
            name = "mps-standin"
        self._session.emit("device", device=name, seen_on=seen_on)
        if device_type not in _HOST:
            self._call(self.on_possible)
            self._call(self.on_accelerator)

    def _call(self, action: Callable[[], None] | None) -> None:
        if action is not None:
            self._session.attempt("accelerator", action)

    def note_tensors(self, values: Any, seen_on: str) -> None:
        """Report the devices of the tensors among `values`, one level deep."""
        tensor = self._torch.Tensor
        for value in values:
            if isinstance(value, tensor):
                self.note(value.device.type, seen_on)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    if isinstance(item, tensor):
                        self.note(item.device.type, seen_on)

    def look_at_end(self) -> None:
        """Report devices that held tensors although no module or optimizer did.

        At the end a question can no longer change the run: only then is MPS asked.
        """
        if self.cuda_in_use:
            self.note("cuda", "torch.cuda")
        torch = self._torch
        available = torch is not None and torch.backends.mps.is_available()
        if available and torch.mps.driver_allocated_memory() > 0:
            self.note("mps", "torch.mps")

    @property
    def cuda_in_use(self) -> bool:
        """Tell whether the user's code has initialised CUDA in this process."""
        return self._cuda_in_use is not None and self._cuda_in_use()

    @property
    def mps_in_use(self) -> bool:
        """Tell whether a tensor was seen on MPS."""
        return "mps" in self._seen

    def synchronize(self) -> str:
        """Wait for the accelerator in use.

        Returns:
            ``cpu`` when there is nothing to wait for, ``cuda`` or ``mps`` when it was
            waited for, ``none`` when it could not be, ``capturing`` while work is
            captured into a graph and not done.
        """
        if self._cuda_in_use is not None and self._cuda_in_use():
            return self._wait_for_cuda()
        if len(self._seen) > 1 or "cpu" not in self._seen:
            return self._wait_for_others()
        return "cpu"

    def _wait_for_cuda(self) -> str:
        try:
            # A wait while a graph is captured would make the capture fail.
            if self._torch.cuda.is_current_stream_capturing():
                return "capturing"
            self._torch.cuda.synchronize()
        except Exception as error:
            # A sticky error of an earlier kernel: it is the user's, and comes up again
            # at the next call of theirs.
            self._session.trouble("synchronize cuda", error)
            return "none"
        return "cuda"

    def _wait_for_others(self) -> str:
        others = [name for name in self._seen if name not in _HOST]
        if not others:
            return "cpu"
        if others != ["mps"]:
            return "none"
        try:
            self._torch.mps.synchronize()
        except Exception as error:
            self._session.trouble("synchronize mps", error)
            return "none"
        return "mps"
