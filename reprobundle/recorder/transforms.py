"""See through the tensors that `torch.func` wraps for `vmap`, `grad` and `jvp`."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def unwrapped(torch: Any, tensor: Any) -> Any:
    """Return the plain tensor inside a wrapped one, with all that `vmap` stacked.

    A wrapper has no storage, and gives no number to Python.
    """
    functions = torch._C._functorch
    while functions.is_functorch_wrapped_tensor(tensor):
        tensor = functions.get_unwrapped(tensor)
    return tensor
