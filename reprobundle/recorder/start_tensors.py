"""Hand initial weights and first batches to the log of draws, just before their use."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from _thread import get_ident

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .draw_log import DrawLog
    from .session import Session

MOST_MODULES = 8
MOST_BATCHES = 3


class StartTensors:
    """Find the outermost modules at their first call, and the first batches."""

    def __init__(self, session: Session, log: DrawLog) -> None:
        self._session = session
        self._log = log
        self._thread = get_ident()
        self._depth = 0
        self._modules: list[Any] = []
        self._batches = 0

    def watch_batches(self, torch: Any) -> None:
        """Attach to torch's data loader, below whoever looks at the batches."""
        self._strided = torch.strided
        self._tensor = torch.Tensor
        iterator = torch.utils.data.dataloader._BaseDataLoaderIter
        replace(iterator, "__next__", self._make_next)

    def watch_modules(self, torch: Any) -> None:
        """Attach to module calls, above whoever looks at the weights."""
        kind = torch.nn.Module
        original = replace(kind, "__call__", self._make_call)
        kind.__call__.__name__ = getattr(original, "__name__", "__call__")

    def _make_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(module: Any, /, *arguments: Any, **named: Any) -> Any:
            if get_ident() != self._thread or len(self._modules) >= MOST_MODULES:
                return original(module, *arguments, **named)
            if self._depth == 0 and not any(module is seen for seen in self._modules):
                self._session.attempt("draws", self._use_weights, module)
            self._depth += 1
            try:
                return original(module, *arguments, **named)
            finally:
                self._depth -= 1

        return call

    def _use_weights(self, module: Any) -> None:
        number = len(self._modules)
        self._modules.append(module)
        named = (*module.named_parameters(), *module.named_buffers())
        self._log.use(
            (f"weights.{number}.{name}", tensor)
            for name, tensor in named
            if tensor.layout == self._strided
        )

    def _make_next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def following(iterator: Any) -> Any:
            batch = original(iterator)
            # Without collation a batch may be part of the data set itself, which
            # must not be written to.
            if self._batches < MOST_BATCHES and iterator._auto_collation:
                self._session.attempt("draws", self._use_batch, batch)
            return batch

        return following

    def _use_batch(self, batch: Any) -> None:
        number = self._batches
        self._batches += 1
        self._log.use(
            (f"batch.{number}.{place}", tensor)
            for place, tensor in enumerate(self._tensors(batch))
        )

    def _tensors(self, value: Any) -> Iterator[Any]:
        if isinstance(value, self._tensor):
            if value.layout == self._strided:
                yield value
        elif isinstance(value, dict):
            for part in value.values():
                yield from self._tensors(part)
        elif isinstance(value, (list, tuple)):
            for part in value:
                yield from self._tensors(part)
