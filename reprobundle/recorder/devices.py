"""Know which devices hold the run's tensors, and wait for the one in use."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .hardware import device_kinds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType
    from typing import Any

    from .facts import Probe
    from .hardware.kind import DeviceKind
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
        self._off_host = self._strange = False
        self._kinds: tuple[DeviceKind, ...] = ()
        self._accelerators: tuple[DeviceKind, ...] = ()
        self.on_accelerator: Callable[[], None] | None = None
        self.on_possible: Callable[[], None] | None = None
        self.on_startable: Callable[[Mapping[str, object]], None] | None = None

    def use_torch(self, torch: ModuleType) -> None:
        """Learn which accelerators this build of torch can use at all."""
        self._torch = torch
        self._kinds = device_kinds(torch)
        self._accelerators = tuple(
            kind for kind in self._kinds if kind.type not in _HOST
        )
        for kind in self._accelerators:
            if kind.starts_unseen and kind.starting is None:
                self._call(self.on_possible)
            elif kind.starts_unseen and self.on_startable is not None:
                self._session.attempt("accelerator", self.on_startable, kind.starting)

    def continue_in_fork(self) -> None:
        """See everything anew: a fork reports for itself."""
        self._seen = set()
        self._off_host = self._strange = False

    def note(self, device_type: str, seen_on: str) -> None:
        """Report that a tensor was seen on a device of this type."""
        if device_type in self._seen:
            return
        self._seen.add(device_type)
        names = {kind.type: kind.name for kind in self._kinds}
        self._session.emit(
            "device", device=names.get(device_type, device_type), seen_on=seen_on
        )
        if device_type not in _HOST:
            self._off_host = True
            self._strange |= device_type not in names
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

        At the end a question can no longer change the run.
        """
        for kind in self._accelerators:
            if kind.held_tensors():
                self.note(kind.type, f"torch.{kind.type}")

    def in_use(self) -> list[DeviceKind]:
        """Return the kinds that this process uses, the CPU first."""
        return [kind for kind in self._kinds if kind.is_used(self._seen)]

    def accelerators_in_use(self) -> list[DeviceKind]:
        """Return the kinds that this process uses beside the CPU."""
        return [kind for kind in self._accelerators if kind.is_used(self._seen)]

    def facts(self) -> Iterator[Probe]:
        """Yield the probes about every accelerator, used or not."""
        for kind in self._accelerators:
            yield from kind.facts(used=kind.is_used(self._seen))

    @property
    def are_capturing(self) -> bool:
        """Tell whether a device in use captures work into a graph now."""
        return any(kind.is_capturing() for kind in self.accelerators_in_use())

    def synchronize(self) -> str:
        """Wait for the accelerator in use.

        Returns:
            ``cpu`` when there is nothing to wait for, ``cuda`` or ``mps`` when it was
            waited for, ``none`` when it could not be, ``capturing`` while work is
            captured into a graph and not done.
        """
        if self._strange:
            return "none"
        for kind in self._accelerators:
            if kind.is_used(self._seen):
                return self._wait_for(kind)
        return "none" if self._off_host else "cpu"

    def _wait_for(self, kind: DeviceKind) -> str:
        try:
            if kind.is_capturing():
                return "capturing"
            kind.synchronize()
        except Exception as error:
            # A sticky error of an earlier kernel: it is the user's, and comes up again
            # at the next call of theirs.
            self._session.trouble(f"synchronize {kind.type}", error)
            return "none"
        return kind.type
