"""Make random draws the way the launcher asked for, and say how they were made.

``native``: as torch does. ``portable``: the CPU's generator draws for every device.
``recorded``: portable, and the values are kept in the reference and taken from there
in a replay.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os

from . import unfused
from .device_draws import DeviceDraws
from .draw_file import Kept, Reference
from .draw_log import DrawLog
from .mirrored import Mirrored
from .start_tensors import StartTensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

FILE = "draws.safetensors"


class Draws:
    """The part of the recorder that changes a run: only when it is asked to.

    Args:
        session: Where events go.
        made: Gets each generator that the script makes for a device.
    """

    def __init__(self, session: Session, made: Callable[[Any], None]) -> None:
        self._session = session
        self._made = made
        self._mode = "native"
        self._library: Any = None
        self._mirrored: Mirrored | None = None
        self._device: DeviceDraws | None = None
        self._log: DrawLog | None = None
        self._kept: Kept | None = None
        self._start: StartTensors | None = None

    def on_torch(self, torch: Any) -> None:
        """Install what the mode needs, just after the import of torch."""
        if self._session.rng == "native":
            return
        import warnings

        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            # Torch warns once that a kernel is replaced. That is what was asked for.
            warnings.simplefilter("ignore")
            self._mirrored = Mirrored(torch, self._made)
            self._mirrored.install()
            self._device = DeviceDraws(torch, self._mirrored)
            self._device.install(self._library)
            unfused.install(torch, self._session.project)
            self._mode = "portable"
            if self._session.rng == "recorded" and self._session.kind == "main":
                self._session.attempt("draws", self._follow, torch)
        self._send(stored="")

    def _follow(self, torch: Any) -> None:
        get_kernel = getattr(torch.library, "get_kernel", None)
        if get_kernel is None:
            message = "this torch cannot follow the CPU's draws; they are portable"
            self._session.trouble("draws", message)
            return
        source = self._session.draws
        if source:
            self._log = DrawLog(torch, reference=Reference(torch, source))
        else:
            self._kept = Kept(torch, self._session.draws_limit_bytes)
            self._log = DrawLog(torch, kept=self._kept)
        self._log.install(self._library, get_kernel)
        self._start = StartTensors(self._session, self._log)
        self._start.watch_batches(torch)
        self._mode = "recorded"

    def watch_modules(self, torch: Any) -> None:
        """See the weights of modules; to be called after all others that wrap calls."""
        if self._start is not None:
            self._start.watch_modules(torch)

    def continue_in_fork(self) -> None:
        """Leave the numbered draws to the process that was forked."""
        if self._log is not None:
            self._log.active = False
            self._log = self._kept = None
            self._mode = "portable"

    def report_end(self) -> None:
        """Write what was kept, and send the totals."""
        if self._mode == "native":
            return
        if self._log is not None:
            self._log.active = False
        stored = ""
        if self._kept is not None:
            self._kept.write(os.path.join(self._session.values, FILE))
            stored = FILE
        self._send(stored=stored)

    def _send(self, *, stored: str) -> None:
        log = self._log
        device = self._session.attempt("draws", self._drawn_on_device)
        self._session.emit(
            "drawn",
            mode=self._mode,
            moved=self._device.moved if self._device else 0,
            followed=log.draws if log else 0,
            taken=log.taken if log else 0,
            differing=log.differing if log else 0,
            missing=log.missing if log else 0,
            stopped=log.stopped if log else "",
            kept=len(self._kept.tensors) if self._kept else 0,
            complete=bool(self._kept and not self._kept.full),
            file=stored,
            on_device=device or [],
        )

    def _drawn_on_device(self) -> list[str]:
        return self._mirrored.advanced() if self._mirrored else []
