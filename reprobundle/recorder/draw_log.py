"""Keep what a run draws and starts from, or start a replay from what was kept.

Even the CPU's generator gives other floats on another kind of CPU. With kept tensors
a replay makes every draw too, so that its generators move on as in the reference, and
then takes the reference's values. As soon as something does not match, nothing more
is taken: values in another order would be worse than none.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from _thread import get_ident

from .device_draws import DRAWING, overload
from .draw_file import Kept, Reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


class DrawLog:
    """The order of draws, weights and batches in one process.

    Args:
        torch: The module.
        kept: Where they go, in the reference.
        reference: Where they come from, in a replay.

    Attributes:
        active: Whether this process is the one whose draws count.
        draws: Draws made so far.
        taken: Tensors whose values came from the reference.
        differing: Those of them for which this machine had other values.
        stopped: Why no more are taken; empty while they are.
    """

    def __init__(
        self, torch: Any, kept: Kept | None = None, reference: Reference | None = None
    ) -> None:
        self._torch = torch
        self._kept = kept
        self._reference = reference
        self._inside = 0
        self.active = True
        self.draws = 0
        self.taken = 0
        self.differing = 0
        self.stopped = ""

    def install(self, library: Any, get_kernel: Callable[[str, str], Any]) -> None:
        """Follow every draw of the CPU, and so of all devices that it draws for.

        Args:
            library: A ``torch.library.Library`` that lives as long as the process.
            get_kernel: ``torch.library.get_kernel``.
        """
        for name in DRAWING:
            operator = overload(self._torch, name)
            if operator is not None:
                original = get_kernel(operator._name, "CPU")
                kernel = self._kernel(name, operator._schema, original)
                library.impl(name, kernel, "CPU", with_keyset=True)

    def _kernel(self, name: str, schema: Any, original: Any) -> Callable[..., Any]:
        arguments = [argument.name for argument in schema.arguments]
        written = next(
            (
                argument.name
                for argument in schema.arguments
                if argument.alias_info is not None and argument.alias_info.is_write
            ),
            "",
        )
        tensor = self._torch.Tensor

        def kernel(keyset: Any, *values: Any, **named: Any) -> Any:
            here = get_ident()
            # One draw may be composed of others, such as multinomial.
            if not self.active or self._inside == here:
                return original.call_boxed(keyset, *values, **named)
            self._inside = here
            try:
                result = original.call_boxed(keyset, *values, **named)
                given = {**dict(zip(arguments, values, strict=False)), **named}
                plain = [
                    f"{key}={value!r}"
                    for key, value in given.items()
                    if key != "generator" and not isinstance(value, tensor)
                ]
                drawn = given[written] if written else result
                self._draw(f"{name}({', '.join(plain)})", drawn)
            finally:
                self._inside = 0
            return result

        return kernel

    def _draw(self, label: str, drawn: Any) -> None:
        name = f"draw.{self.draws}"
        self.draws += 1
        if self._kept is not None:
            self._kept.add(name, drawn, label)
        elif self._reference is not None and not self.stopped:
            expected = self._reference.labels.get(name)
            if expected is None:
                self._end_of_draws(name)
            elif expected != label:
                self.stopped = f"{name} is {label} here and {expected} in the reference"
            else:
                self._take(name, drawn)

    def _end_of_draws(self, name: str) -> None:
        if self._reference is not None and self._reference.complete:
            self.stopped = f"{name} is one more than the reference made"

    def use(self, tensors: Iterable[tuple[str, Any]]) -> None:
        """Keep the named tensors, or give them the reference's values.

        Args:
            tensors: Strided tensors on any device, which may be written to.
        """
        for name, tensor in tensors:
            if self._kept is not None:
                self._kept.add(name, tensor)
            elif self._reference is not None and not self.stopped:
                self._take(name, tensor)

    def _take(self, name: str, tensor: Any) -> None:
        reference: Any = self._reference
        value = reference.tensors.get(name)
        if value is None:
            if reference.complete:
                self.stopped = f"the reference has no {name}"
            return
        here = (tuple(tensor.shape), tensor.dtype)
        there = (tuple(value.shape), value.dtype)
        if here != there:
            self.stopped = f"{name} is {_kind(here)} here, {_kind(there)} there"
            return
        self.taken += 1
        with self._torch.no_grad():
            if not _same_bits(self._torch, tensor, value):
                self.differing += 1
                tensor.copy_(value)

    @property
    def missing(self) -> int:
        """Number of the reference's draws that this run has not made."""
        if self._reference is None:
            return 0
        there = sum(name.startswith("draw.") for name in self._reference.labels)
        return max(0, there - self.draws)


def _kind(what: tuple[tuple[int, ...], Any]) -> str:
    shape, dtype = what
    return f"{str(dtype).removeprefix('torch.')} {list(shape)}"


def _same_bits(torch: Any, tensor: Any, value: Any) -> bool:
    """Tell whether both hold the same numbers; NaN is equal to nothing."""
    same: bool = torch.equal(tensor.detach().to("cpu"), value)
    return same
