"""Answer for operators whose result depends on values that a dry run does not have.

Sizes are the largest that can come out; single values are 0.5, 0 or False. Each answer
is counted at the line that asked, for what follows from it may go otherwise on real
values.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .callers import caller, calling_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Answer = Callable[..., Any]

_MASKS = ("torch.bool", "torch.uint8")


class Invented:
    """Make answers up, and count them by place.

    Args:
        torch: The module.
        project: Scratch folder of the project.

    Attributes:
        places: Line and what was invented there → how often.
    """

    def __init__(self, torch: Any, project: str) -> None:
        self._torch = torch
        self._project = project
        self.places: dict[tuple[str, str], int] = {}
        self._answers: dict[str, Answer] = {
            "_local_scalar_dense": self._value,
            "equal": lambda *_, **__: self._told("value", True),
            "nonzero": self._nonzero,
            "masked_select": self._selected,
            "_unique2": self._unique,
            "_unique": self._unique,
            "unique_dim": self._unique_dim,
            "unique_consecutive": self._unique_consecutive,
            "bincount": self._counts,
            "repeat_interleave": self._repeated,
        }

    def answer(self, operator: Any) -> Answer | None:
        """Return what answers in the place of an operator; None if it may run."""
        name = str(operator)
        if not name.startswith("aten."):
            return None
        base = name.split(".")[1]
        if base == "repeat_interleave" and not name.endswith(".Tensor"):
            return None
        return self._answers.get(base)

    def by_positions(self, operator: Any, arguments: Any) -> Any:
        """Return the arguments of an index with masks in the form of positions.

        A mask selects as many elements as it has, at most.
        """
        if str(operator) not in (
            "aten.index.Tensor",
            "aten.index_put.default",
            "aten.index_put_.default",
        ):
            return arguments
        given = arguments[1]
        if not any(i is not None and str(i.dtype) in _MASKS for i in given):
            return arguments
        indices: list[Any] = []
        for index in given:
            if index is None or str(index.dtype) not in _MASKS:
                indices.append(index)
                continue
            if str(operator) == "aten.index.Tensor":
                self.note("size")
            where = self._whole(index.numel(), like=index)
            indices += [where] * index.dim()
        return (arguments[0], indices, *arguments[2:])

    def note(self, how: str) -> None:
        """Count an answer at the user's line; an optimizer's own numbers are none."""
        frame = calling_frame()
        if frame is not None and "/torch/optim/" in frame.f_code.co_filename:
            return
        key = (caller(self._project), how)
        self.places[key] = self.places.get(key, 0) + 1

    def _told(self, how: str, answer: Any) -> Any:
        self.note(how)
        return answer

    def _whole(self, *shape: int, like: Any) -> Any:
        torch = self._torch
        return torch.zeros(shape, dtype=torch.int64, device=like.device)

    def _value(self, tensor: Any) -> Any:
        known = getattr(tensor, "constant", None)
        if known is not None:
            # A number that the script itself wrote down, and nothing changed since.
            from torch.utils._python_dispatch import _disable_current_modes

            with _disable_current_modes():
                return known.item()
        dtype = tensor.dtype
        if dtype == self._torch.bool:
            return self._told("value", False)
        if dtype.is_complex:
            return self._told("value", 0j)
        return self._told("value", 0.5 if dtype.is_floating_point else 0)

    def _nonzero(self, tensor: Any) -> Any:
        self.note("size")
        return self._whole(tensor.numel(), tensor.dim(), like=tensor)

    def _selected(self, tensor: Any, mask: Any) -> Any:
        self.note("size")
        shape = self._torch.broadcast_shapes(tensor.shape, mask.shape)
        return tensor.new_empty((shape.numel(),))

    def _unique(self, tensor: Any, *_: Any, **__: Any) -> Any:
        self.note("size")
        whole = self._whole(tensor.numel(), like=tensor)
        inverse = self._whole(*tensor.shape, like=tensor)
        return tensor.reshape(-1).clone(), inverse, whole

    def _unique_dim(self, tensor: Any, dim: int, *_: Any, **__: Any) -> Any:
        self.note("size")
        whole = self._whole(tensor.shape[dim], like=tensor)
        return tensor.clone(), whole, whole.clone()

    def _unique_consecutive(
        self, tensor: Any, return_inverse: bool = False, *_: Any, dim: Any = None
    ) -> Any:
        return self._unique(tensor) if dim is None else self._unique_dim(tensor, dim)

    def _counts(self, tensor: Any, weights: Any = None, minlength: int = 0) -> Any:
        self.note("size")
        found = self._whole(max(minlength, 1), like=tensor)
        return found if weights is None else found.to(weights.dtype)

    def _repeated(self, repeats: Any, *, output_size: int | None = None) -> Any:
        self.note("size")
        size = repeats.numel() if output_size is None else output_size
        return self._whole(size, like=repeats)
