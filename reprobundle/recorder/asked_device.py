"""Tell which device a call asks for, on a run where the CPU stands for another one.

What a script was given as its device is ``cpu`` there, as is the CPU that it means. The
source of the call tells them apart: a device named outright is meant. A script that
names MPS outright has no need of that: the value tells (`AskedByValue`).
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .call_sources import device_named, device_of_tensor
from .callers import caller_frame, calling_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .named_mps import NamedMps

_DEFAULT_DEVICE = "/torch/utils/_device.py"


class AskedInSource:
    """Read it in the source.

    Args:
        project: The user's folder.
        holds: Tells whether a tensor is on the steered device.
    """

    def __init__(self, project: str, holds: Callable[[Any], bool]) -> None:
        self._project = project
        self._holds = holds

    def is_goal(self, wanted: Any) -> bool:
        """Tell whether a move goes to the steered device.

        Args:
            wanted: A text or a ``torch.device``.
        """
        del wanted
        return not device_named(caller_frame(self._project))[1]

    def is_made_by(self, wanted: Any, frame: FrameType) -> bool:
        """Tell whether a maker such as ``torch.tensor`` makes its result there.

        The call itself counts, which may be a library's: optimizers keep their count of
        steps on the CPU outright.

        Args:
            wanted: Its ``device=``.
            frame: Makes the call.
        """
        del wanted
        like = self._like(frame)
        return not device_named(frame)[1] if like is None else like

    def is_made_by_operator(self) -> bool:
        """Tell whether the operator that is running makes its result there."""
        users = caller_frame(self._project)
        default = below_default()
        direct = users if default else calling_frame()
        like = self._like(direct)
        if like is not None:
            return like
        named, outright = device_named(direct)
        if not named and not default:
            # What is made inside a library's call, such as a module's weights.
            named, outright = device_named(users)
        return (named or default) and not outright

    def default(self) -> Any:
        """Return what a maker takes that names no device; None if nothing was set."""
        return default_device()

    def is_named_now(self) -> bool:
        """Tell whether the call that is running names the device outright."""
        return False

    def _like(self, frame: FrameType | None) -> bool | None:
        """Tell whether ``device=x.device`` names a steered tensor; None if no tensor.

        Libraries write that, and so do scripts that prepare data on the CPU.
        """
        tensor = device_of_tensor(frame)
        if not isinstance(tensor, sys.modules["torch"].Tensor):
            return None
        return self._holds(tensor)


class AskedByValue(AskedInSource):
    """Take what a call says at its word, and read the source of torch's own calls.

    Args:
        project: The user's folder.
        holds: Tells whether a tensor is on the steered device.
        named: Stands between the script and torch.
    """

    def __init__(
        self, project: str, holds: Callable[[Any], bool], named: NamedMps
    ) -> None:
        super().__init__(project, holds)
        self._named = named

    def is_goal(self, wanted: Any) -> bool:
        """Tell whether it is MPS; torch itself sees the CPU in its place."""
        if self._named.names(wanted):
            return True
        return self._is_left_open(calling_frame()) and super().is_goal(wanted)

    def is_made_by(self, wanted: Any, frame: FrameType) -> bool:
        """Tell whether it is MPS; torch itself sees the CPU in its place."""
        if self._named.names(wanted):
            return True
        return self._is_left_open(frame) and super().is_made_by(wanted, frame)

    def is_made_by_operator(self) -> bool:
        """Tell whether the call names MPS."""
        asked = self._named.asked_now()
        if asked is not None and (asked or not _is_torchs(calling_frame())):
            return asked
        return self._named.was_asked and super().is_made_by_operator()

    def _is_left_open(self, frame: FrameType | None) -> bool:
        """Tell whether only the source tells: torch's own call, and MPS was asked for.

        Where nothing ever asked for it, nothing of torch's is made there.
        """
        return self._named.was_asked and _is_torchs(frame)

    def default(self) -> Any:
        """Return the device that the last call of torch was made for."""
        return self._named.last_device()

    def is_named_now(self) -> bool:
        """Tell whether the call that is running names MPS outright."""
        return bool(self._named.asked_now())


def _is_torchs(frame: FrameType | None) -> bool:
    if frame is None:
        return False
    name = frame.f_code.co_filename
    return "/torch/" in name and not name.endswith(_DEFAULT_DEVICE)


def default_device() -> Any:
    """Return the device of ``torch.set_default_device`` or ``with torch.device(…)``.

    None if none was set. The second lies above the modes that were there before.
    """
    overrides: Any = sys.modules["torch.overrides"]
    for mode in reversed(overrides._get_current_function_mode_stack()):
        if type(mode).__name__ == "DeviceContext":
            return mode.device
    return None


def below_default() -> bool:
    """Tell whether a default device is at work below this call."""
    found: FrameType | None = sys._getframe(1)
    while found is not None:
        if found.f_code.co_filename.endswith(_DEFAULT_DEVICE):
            return True
        found = found.f_back
    return False
