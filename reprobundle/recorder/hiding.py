"""Hide the accelerators that were not asked for from scripts that pick one themselves.

CUDA is hidden by ``CUDA_VISIBLE_DEVICES``, which the launcher sets. MPS has no such
variable, so the question whether it is there is answered with no.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def hide_accelerators(torch: Any, device: str) -> None:
    """Make torch say that no other accelerator than the one asked for is there.

    Nothing else changes: a script that names a hidden device outright gets it, and the
    verdict says that it was not the one asked for.

    Args:
        torch: The module that was just imported.
        device: The device asked for, or ``as-is``.
    """
    if device in ("cpu", "cuda"):
        replace(torch.backends.mps, "is_available", _always(False))
        if hasattr(torch, "mps"):
            replace(torch.mps, "is_available", _always(False))
    accelerator = getattr(torch, "accelerator", None)
    if device == "cpu" and accelerator is not None:
        replace(accelerator, "is_available", _always(False))
        replace(accelerator, "current_accelerator", _always(None))


def _always(answer: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def hidden(*arguments: Any, **named: Any) -> Any:
            return answer

        return hidden

    return make
