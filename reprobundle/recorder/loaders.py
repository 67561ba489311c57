"""Report each pass over a data loader of torch, and its first batch."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys

from .callers import caller
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .beginnings import Beginnings
    from .session import Session

    Function = Callable[..., Any]

_MOST_PASSES = 20


class Loaders:
    """Watch the data loaders: whoever shuffles other samples gets other results."""

    def __init__(self, session: Session, beginnings: Beginnings) -> None:
        self._session = session
        self._beginnings = beginnings
        self._passes = 0

    def use_torch(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        module: Any = sys.modules["torch.utils.data.dataloader"]
        # Not the iterator's __init__: its warnings name the line that called it.
        replace(module.DataLoader, "_get_iterator", self._watch_passes)

    def _watch_passes(self, original: Function) -> Function:
        def get_iterator(loader: Any) -> Any:
            iterator = original(loader)
            if self._passes < _MOST_PASSES:
                self._passes += 1
                self._session.attempt("data loader", self._report, loader, iterator)
            return iterator

        return get_iterator

    def see_batch(self, iterator: Any, batch: Any) -> bool:
        """Look at the first batch of a pass; tell whether further ones are wanted."""
        if iterator._num_yielded == 1:
            self._beginnings.see_batch(batch)
        return self._beginnings.wants_batches

    def _report(self, loader: Any, iterator: Any) -> None:
        workers = int(loader.num_workers)
        self._session.emit(
            "loader",
            where=caller(self._session.project),
            base_seed=str(getattr(iterator, "_base_seed", "")),
            workers=workers,
            start_method=_start_method(loader) if workers else "",
            batch_size=_batch_size(loader),
            sampler=type(loader.sampler).__name__,
            generator_seed=_generator_seed(loader),
        )


def _batch_size(loader: Any) -> int | None:
    size = loader.batch_size
    if size is None:
        size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _start_method(loader: Any) -> str:
    """Return how workers are started; asking the default would fix it for good."""
    context = loader.multiprocessing_context
    if context is not None:
        return str(context.get_start_method())
    module: Any = sys.modules.get("multiprocessing.context")
    if module is None:
        return ""
    chosen = module._default_context.get_start_method(allow_none=True)
    return str(chosen or module._default_context._default_context.get_start_method())


def _generator_seed(loader: Any) -> str:
    for owner in (loader, loader.sampler):
        generator = getattr(owner, "generator", None)
        if generator is not None:
            return str(generator.initial_seed())
    return ""
