"""Have the CPU generator make the random draws of a device, and move them there.

Each random operator that a device has a kernel for gets another kernel: it makes the
draw in a CPU tensor of the same shape, strides and dtype, with the CPU's own kernel,
and copies the result. Everything above the kernel stays torch's: factories, ``*_like``,
``nn.init``, dropout of all kinds and autograd all end in these operators, in every
thread and from C++ too. On the CPU nothing is replaced, so a run there is bit for bit
what it is without this module.

Sources: the tag ``nondeterministic_seeded`` in native_functions.yaml names the random
operators; ``aten/src/ATen/native/Dropout.cpp`` has the CPU's dropout.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .mirrored import Mirrored

    Kernel = Callable[..., Any]

DEVICE_KEYS = ("CUDA", "MPS")

# The operators that have a CPU kernel of their own; all other random operators are
# composed of these. The written argument is not read.
DRAWING = (
    "normal_",
    "uniform_",
    "random_",
    "random_.from",
    "random_.to",
    "bernoulli_.float",
    "bernoulli_.Tensor",
    "exponential_",
    "geometric_",
    "cauchy_",
    "log_normal_",
    "bernoulli.out",
    "normal.Tensor_Tensor",
    "normal.Tensor_Tensor_out",
    "normal.Tensor_float",
    "normal.Tensor_float_out",
    "normal.float_Tensor",
    "normal.float_Tensor_out",
    "randperm.generator_out",
    "multinomial",
    "multinomial.out",
    "poisson",
    "binomial",
    "_standard_gamma",
    "_sample_dirichlet",
)
# These draw while they compute, and read what they write to.
DRAWING_IN_PASSING = ("rrelu_with_noise", "rrelu_with_noise.out", "rrelu_with_noise_")
# Device kernels without a counterpart on the CPU, made of a draw and arithmetic.
DROPPING = ("native_dropout", "_fused_dropout")


def overload(torch: Any, name: str) -> Any:
    """Return the operator ``aten::<name>``, or None where this torch lacks it."""
    packet, _, variant = name.partition(".")
    operators = getattr(torch.ops.aten, packet, None)
    return getattr(operators, variant or "default", None)


class DeviceDraws:
    """The kernels that take the place of a device's own.

    Args:
        torch: The module.
        mirrored: Knows which CPU generator stands for which generator of a device.

    Attributes:
        moved: Draws made so far.
    """

    def __init__(self, torch: Any, mirrored: Mirrored) -> None:
        self._torch = torch
        self._mirrored = mirrored
        self.moved = 0

    def install(self, library: Any) -> None:
        """Register the kernels for every device that has a generator of its own.

        Args:
            library: A ``torch.library.Library`` that lives as long as the process.
        """
        kernels: dict[str, Kernel] = {
            "native_dropout": self._native_dropout,
            "_fused_dropout": self._fused_dropout,
        }
        for name in (*DRAWING, *DRAWING_IN_PASSING):
            operator = overload(self._torch, name)
            if operator is not None:
                kernels[name] = self._kernel(operator, name in DRAWING_IN_PASSING)
        for name, kernel in kernels.items():
            if overload(self._torch, name) is not None:
                for key in DEVICE_KEYS:
                    library.impl(name, kernel, key)

    def _kernel(self, operator: Any, reads: bool) -> Kernel:
        """Return a kernel that calls `operator` with CPU tensors."""
        schema = operator._schema
        names = [argument.name for argument in schema.arguments]
        written = {
            argument.name: min(argument.alias_info.before_set)
            for argument in schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        }
        aliases = [
            min(result.alias_info.before_set) if result.alias_info is not None else ""
            for result in schema.returns
        ]

        def kernel(*arguments: Any, **named: Any) -> Any:
            given = {**dict(zip(names, arguments, strict=False)), **named}
            return self._draw(operator, given, written, aliases, reads)

        return kernel

    def _draw(
        self,
        operator: Any,
        given: dict[str, Any],
        written: dict[str, str],
        aliases: list[str],
        reads: bool,
    ) -> Any:
        tensor = self._torch.Tensor
        device = None
        here: dict[str, Any] = {}
        for name, value in given.items():
            here[name] = value
            if isinstance(value, tensor):
                device = device or value.device
                filled = reads or name not in written
                here[name] = value.to("cpu") if filled else self._like(value)
        if "generator" in given:
            here["generator"] = self._mirrored.of(given["generator"], device)
        with self._torch.no_grad():
            results = operator(**here)
            self.moved += 1
            back = {name: _copied(given[name], here[name]) for name in written}
        if not isinstance(results, tuple):
            results = (results,)
        by_alias = {written[name]: value for name, value in back.items()}
        moved = tuple(
            by_alias[alias] if alias else result.to(device)
            for alias, result in zip(aliases, results, strict=True)
        )
        return moved[0] if len(moved) == 1 else moved

    def _like(self, tensor: Any) -> Any:
        """Return an unset CPU tensor: strides tell which draw goes to which place."""
        return self._torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu"
        )

    def _noise(self, tensor: Any, keep: float, generator: Any = None) -> Any:
        """Return the CPU's draw for dropout: 1 where an element is kept, else 0."""
        own = self._mirrored.of(generator, tensor.device)
        self.moved += 1
        return self._like(tensor).bernoulli_(keep, generator=own)

    def _native_dropout(self, input: Any, p: float, train: bool | None = None) -> Any:
        """Drop as the CPU does: multiply by the draw over the share that is kept."""
        torch = self._torch
        with torch.no_grad():
            if train is False or p == 0 or input.numel() == 0:
                return input.clone(), torch.ones_like(input, dtype=torch.bool)
            noise = self._noise(input, 1 - p)
            mask = noise.to(torch.bool).to(input.device)
            if p < 1:
                noise.div_(1 - p)
            return input * noise.to(input.device), mask

    def _fused_dropout(self, input: Any, p: float, generator: Any = None) -> Any:
        """Do the same for the older operator; its `p` is the share that is kept."""
        torch = self._torch
        with torch.no_grad():
            noise = self._noise(input, p, generator)
            mask = noise.to(torch.uint8).to(input.device)
            return input * noise.div_(p).to(input.device), mask


def _copied(target: Any, source: Any) -> Any:
    """Copy a draw to the device and return where it is now."""
    if target.shape != source.shape:
        target.resize_(source.shape)
    return target.copy_(source)
