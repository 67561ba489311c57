"""Send tensors "on CUDA" to another process, through a queue or as an argument.

torch pickles a tensor for it and makes it anew at the other end. The mark of one that
is on CUDA is a list in the place of the tuple of strides: torch takes both, so a
process that is not mapped reads the tensor as ever.

Source: ``torch/multiprocessing/reductions.py`` (``reduce_tensor``, ``rebuild_tensor``).
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .mapped_calls import MappedCalls
    from .places import Places

    Function = Callable[..., Any]

# MPS shares no memory between processes.
_COPY = "a copy, and no shared memory"


class MappedSharing:
    """What is done with a tensor at both ends.

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
        self._reductions = torch.multiprocessing.reductions

    def install(self) -> None:
        """Attach to ``torch.multiprocessing``, which torch imports itself."""
        from multiprocessing.reduction import ForkingPickler

        reductions = self._reductions
        replace(reductions, "rebuild_tensor", self._rebuilding)
        replace(reductions, "reduce_tensor", self._reducing)
        for kind in (self._torch.Tensor, self._torch.nn.Parameter):
            ForkingPickler.register(kind, reductions.reduce_tensor)

    def _reducing(self, original: Function) -> Function:
        def reduce_tensor(tensor: Any) -> Any:
            if not self._is_there(tensor):
                return original(tensor)
            sent = tensor
            # What torch refuses to send, it refuses itself.
            if self._places is None and (tensor.is_leaf or not tensor.requires_grad):
                self._calls.note("torch.multiprocessing", "", _COPY)
                sent = tensor.detach().cpu()
            rebuild, arguments = original(sent)
            if rebuild is not self._reductions.rebuild_tensor:
                return rebuild, arguments
            _, storage, (offset, size, stride, _) = arguments
            marked = (offset, size, list(stride), tensor.requires_grad)
            return rebuild, (type(tensor), storage, marked)

        return reduce_tensor

    def _rebuilding(self, original: Function) -> Function:
        def rebuild_tensor(kind: Any, storage: Any, metadata: Any) -> Any:
            tensor = original(kind, storage, metadata)
            return self._arrived(tensor) if isinstance(metadata[2], list) else tensor

        return rebuild_tensor

    def _is_there(self, tensor: Any) -> bool:
        if self._places is None:
            return bool(
                tensor.device.type == self._calls.target
                and tensor.layout == self._torch.strided
                and not tensor.is_nested
            )
        return self._places.holds(tensor)

    def _arrived(self, tensor: Any) -> Any:
        if self._places is not None:
            self._places.hold(tensor)
            return tensor
        moved = tensor.detach().to(self._calls.target)
        if isinstance(tensor, self._torch.nn.Parameter):
            return self._torch.nn.Parameter(moved, requires_grad=tensor.requires_grad)
        return moved.requires_grad_(tensor.requires_grad)
