"""Say which rank of a distributed run this process is, and what it must agree on.

A launcher such as torchrun tells a process its rank by variables; what
``torch.distributed`` then says about it is what counts. Data parallelism promises
that every rank holds the same parameters, so their digest is kept after the first
step and at the end.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

from . import tensor_file
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

# Workers that a rank starts inherit its variables and are no ranks.
_WORKER_ARGUMENTS = ("--multiprocessing-fork", "spawn_main")


class Ranks:
    """Report this process's rank and the parameters it ends with."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_rank = False
        self._replicas: Any = None
        self._stepped = False
        self._ended = False

    def continue_in_fork(self) -> None:
        """Forget the parent's rank: its data loader workers are no ranks."""
        self._is_rank = False

    def install(self) -> None:
        """Report the rank that a launcher's variables name."""
        if any(part in text for text in sys.orig_argv for part in _WORKER_ARGUMENTS):
            return
        rank, size = _number("RANK"), _number("WORLD_SIZE")
        if rank is not None and size is not None:
            self._is_rank = True
            self._report(rank, size, "environment")

    def _report(self, rank: int, size: int, how: str) -> None:
        self._session.emit(
            "rank",
            rank=rank,
            world_size=size,
            local_rank=_number("LOCAL_RANK"),
            how=how,
        )

    def on_distributed(self, module: Any) -> None:
        """See a process group being made and unmade."""
        distributed = sys.modules.get("torch.distributed", module)

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def init_process_group(*arguments: Any, **named: Any) -> Any:
                result = original(*arguments, **named)
                self._session.attempt("ranks", self._joined, module)
                return result

            return init_process_group

        def make_last(original: Callable[..., Any]) -> Callable[..., Any]:
            def destroy_process_group(*arguments: Any, **named: Any) -> Any:
                # The model is still there; at the end of the process it may be gone.
                self._session.attempt("ranks", self.report_end)
                return original(*arguments, **named)

            return destroy_process_group

        replace(module, "init_process_group", make, distributed)
        replace(module, "destroy_process_group", make_last, distributed)

    def _joined(self, module: Any) -> None:
        self._is_rank = True
        self._report(module.get_rank(), module.get_world_size(), "process group")

    def on_data_parallel(self, module: Any) -> None:
        """See each model whose replicas are kept equal."""
        from weakref import WeakSet

        self._replicas = WeakSet()

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def initialise(model: Any, *arguments: Any, **named: Any) -> None:
                original(model, *arguments, **named)
                self._session.attempt("ranks", self._watch, model)

            return initialise

        replace(module.DistributedDataParallel, "__init__", make)

    def _watch(self, model: Any) -> None:
        if not self._replicas:
            hooks: Any = sys.modules["torch.optim.optimizer"]
            handle: Any = None

            def after(optimizer: Any, arguments: Any, named: Any) -> None:
                handle.remove()
                if not self._stepped:
                    self._stepped = True
                    self._session.attempt("ranks", self._report_parameters, "step 1")

            handle = hooks.register_optimizer_step_post_hook(after)
        self._replicas.add(model)

    def report_end(self) -> None:
        """Report the parameters as they are now; the last report counts."""
        if not self._is_rank or "torch" not in sys.modules:
            return
        if self._replicas or not self._ended:
            self._ended = True
            self._report_parameters("end")

    def _report_parameters(self, when: str) -> None:
        digest, reason = "", "no model of DistributedDataParallel was alive"
        if self._replicas:
            digest, reason = self._digest(), ""
        self._session.emit("parameters", when=when, digest=digest, reason=reason)

    def _digest(self) -> str:
        from hashlib import blake2b

        torch: Any = sys.modules["torch"]
        # The order of a set differs from process to process.
        texts = []
        for model in list(self._replicas):
            digest = blake2b(digest_size=16)
            for name, parameter in model.named_parameters():
                plain = tensor_file.plain_torch(torch, parameter)
                digest.update(f"{name} {plain.dtype} {plain.shape}\n".encode())
                digest.update(plain.data)
            texts.append(digest.hexdigest())
        return "+".join(sorted(texts))


def _number(variable: str) -> int | None:
    text = os.environ.get(variable, "")
    return int(text) if text.isdecimal() else None
