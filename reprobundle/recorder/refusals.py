"""Raise in the command what MPS would raise (``forecast --strict``).

The texts are torch's: ``aten/src/ATen/mps/MPSFallback.mm``, ``mps/OperationUtils.mm``
and ``TensorIterator.cpp``. A script that catches them takes the way that it would take
on a Mac.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .callers import caller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .session import Session

_FLOAT64 = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
    "float64. Please use float32 instead."
)
_MISSING = (
    "The operator '{}' is not currently implemented for the MPS device. As a temporary "
    "fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use "
    "the CPU as a fallback for this op. WARNING: this will be slower than running "
    "natively on MPS."
)
_MIXED = (
    "Expected all tensors to be on the same device, but found at least two devices, "
    "mps:0 and cpu!"
)
_ARRAY = (
    "can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
    "tensor to host memory first."
)


class Refusals:
    """Refuse what MPS would refuse.

    Args:
        session: Where each refusal is told.
        operators: Names that have no kernel, as a dispatch mode shows them.
        holds: Tells whether a tensor is on the steered device.

    Observers are called where an exception would be swallowed. They leave it here, and
    it is raised where the user's code would meet it.
    """

    def __init__(
        self, session: Session, operators: frozenset[str], holds: Callable[[Any], bool]
    ) -> None:
        self._session = session
        self._operators = operators
        self._holds = holds
        self._pending: Exception | None = None

    def before(self, operator: Any, tensors: Any) -> None:
        """Refuse an operator without a kernel, before it runs.

        Raises:
            NotImplementedError: As on a Mac.
        """
        name = str(operator)
        if name in self._operators and any(map(self._holds, tensors)):
            shown = name.replace(".default", "").replace(".", "::", 1)
            self._keep(NotImplementedError(_MISSING.format(shown)))
            self.after()

    def float64(self) -> None:
        """Keep a refusal of a wide tensor."""
        self._keep(TypeError(_FLOAT64))

    def mixed(self, operator: str) -> None:
        """Keep a refusal of tensors of two devices, or of an array of the device's."""
        array = operator == "numpy()"
        self._keep(TypeError(_ARRAY) if array else RuntimeError(_MIXED))

    def _keep(self, error: Exception) -> None:
        if self._pending is not None:
            return
        self._pending = error
        where = caller(self._session.project)
        told = f"{type(error).__name__}: {error}"
        self._session.emit("steered_refusal", where=where, error=told)

    def after(self) -> None:
        """Raise what was kept, once.

        Raises:
            Exception: The refusal.
        """
        error, self._pending = self._pending, None
        if error is not None:
            raise error
