"""Name the place in the user's code that a call came from."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
_STANDARD = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_WORKER = "torch/utils/data/_utils/worker.py"
_MODE_WRAPPERS = (
    "torch/_dynamo/eval_frame.py",
    "torch/_compile.py",
    "torch/utils/_python_dispatch.py",
)
_PACKAGES = ("/site-packages/", "/dist-packages/")


def caller(project: str) -> str:
    """Return ``file:line`` of the innermost frame that is the user's."""
    found = caller_frame(project)
    return _place(found) if found is not None else ""


def caller_frame(project: str) -> FrameType | None:
    """Return the innermost frame that is the user's.

    That is the innermost one inside `project`; if there is none, the innermost one
    outside this package, the standard library and installed packages; if there is
    none either, the innermost one outside this package.
    """
    top = os.path.join(project, "")
    own: FrameType | None = None
    nearest: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, "<frozen")):
            nearest = nearest or frame
            if _is_users(name):
                own = own or frame
                if name.startswith(top):
                    return frame
        frame = frame.f_back
    return own or nearest


def torch_worker() -> str:
    """Return the place in torch's data loader workers that called us; else nothing.

    A forked worker has the user's loop on its stack as well, but the user called
    nothing there.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith(_WORKER):
            return _place(frame)
        if not is_ours(name) and "/torch/" not in name:
            break
        frame = frame.f_back
    return ""


def calling_frame() -> FrameType | None:
    """Return the innermost frame that made a call below this package, whoever's it is.

    torch wraps dispatch modes to keep its compiler out; these frames are skipped.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        is_ours(frame.f_code.co_filename)
        or frame.f_code.co_filename.endswith(_MODE_WRAPPERS)
    ):
        frame = frame.f_back
    return frame


def direct_caller() -> str:
    """Return the file that called us, whoever's it is; empty if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def is_ours(name: str) -> bool:
    """Tell whether a code object's file name lies in this package."""
    return name.startswith(_OURS)


def is_standard(name: str) -> bool:
    """Tell whether a code object's file name lies in the standard library."""
    return name.startswith((_STANDARD, "<frozen")) and not is_installed(name)


def is_installed(name: str) -> bool:
    """Tell whether a code object's file name lies in an installed package."""
    return any(part in name for part in _PACKAGES)


def _is_users(name: str) -> bool:
    return not is_installed(name) and not name.startswith(_STANDARD)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
