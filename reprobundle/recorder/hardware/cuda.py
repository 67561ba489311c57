"""CUDA, and ROCm, which torch gives the same name and functions.

Sources: the public functions of ``torch.cuda`` since torch 2.0.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .cuda_obstacle import cuda_obstacle
from .kind import reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from ..facts import Probe
    from .obstacle import Machine, Obstacle


class Cuda:
    """See `DeviceKind`; counters are sums over all GPUs the process sees."""

    type = name = "cuda"
    seed_functions: tuple[str, ...] = (
        "manual_seed",
        "manual_seed_all",
        "seed",
        "seed_all",
    )

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        version = getattr(torch, "version", None)
        self.starts_unseen = bool(
            getattr(version, "cuda", None) or getattr(version, "hip", None)
        )
        # ``is_initialized`` is this name of its module, and no fork in between
        # (torch/cuda/__init__.py). A lookup can be asked eight times in a step.
        names = getattr(torch.cuda, "__dict__", {})
        self.starting: Mapping[str, object] | None = (
            names if "_initialized" in names else None
        )
        # The function itself: a mapped run puts one in its place that always says yes.
        self._is_initialized = getattr(torch.cuda, "is_initialized", None)

    def is_used(self, seen: AbstractSet[str]) -> bool:
        """Tell whether the user's code has initialised CUDA in this process."""
        if not self.starts_unseen or self._is_initialized is None:
            return False
        return bool(self._is_initialized())

    def held_tensors(self) -> bool:
        """Tell whether CUDA was initialised."""
        return self.is_used(frozenset())

    def is_capturing(self) -> bool:
        """Tell whether a CUDA graph is captured: a wait would make that fail."""
        return bool(self._torch.cuda.is_current_stream_capturing())

    def synchronize(self) -> None:
        """Wait for all streams of every GPU that this process has a context on.

        Waiting for another would make one there, which takes its memory.
        """
        cuda = self._torch.cuda
        cuda.synchronize()
        count = cuda.device_count()
        if count > 1:
            current = cuda.current_device()
            for number in range(count):
                if number != current and self._is_touched(number):
                    cuda.synchronize(number)

    def _is_touched(self, number: int) -> bool:
        # Of CUDA's driver, in torch/csrc/cuda/Module.cpp; without it, whether torch's
        # allocator holds memory there, which takes longer to ask.
        ask = getattr(self._torch._C, "_cuda_hasPrimaryContext", None)
        if ask is not None:
            return bool(ask(number))
        return bool(self._torch.cuda.memory_reserved(number))

    def counters(self, *, whole: bool) -> Iterator[tuple[str, int]]:
        """Yield allocated and reserved bytes, with `whole` the peak too."""
        cuda = self._torch.cuda
        # One call for all figures; ``memory_allocated`` would flatten a large table
        # for each of them.
        stats = [
            cuda.memory_stats_as_nested_dict(number)
            for number in range(cuda.device_count())
        ]
        yield "cuda_allocated", _sum(stats, "allocated_bytes", "current")
        yield "cuda_reserved", _sum(stats, "reserved_bytes", "current")
        if whole:
            yield "cuda_peak_allocated", _sum(stats, "allocated_bytes", "peak")

    def facts(self, *, used: bool) -> Iterator[Probe]:
        """Yield number, names, capabilities and memory of the GPUs, and cuDNN's."""
        torch, cuda = self._torch, self._torch.cuda
        when_used = reader("CUDA", used=used)

        def each(read: Any) -> Any:
            return when_used(lambda: [read(n) for n in range(cuda.device_count())])

        yield "torch.cuda.used", "torch.cuda.is_initialized()", lambda: used
        yield (
            "torch.cuda.device_count",
            "torch.cuda",
            when_used(lambda: cuda.device_count()),
        )
        yield (
            "torch.cuda.devices",
            "torch.cuda",
            each(lambda n: cuda.get_device_name(n)),
        )
        yield (
            "torch.cuda.capabilities",
            "torch.cuda",
            each(lambda n: "{}.{}".format(*cuda.get_device_capability(n))),
        )
        yield (
            "torch.cuda.memory_bytes",
            "torch.cuda",
            each(lambda n: str(cuda.get_device_properties(n).total_memory)),
        )
        yield (
            "torch.cudnn.version",
            "torch.backends.cudnn",
            when_used(lambda: torch.backends.cudnn.version()),
        )

    def generator_places(self) -> Sequence[str]:
        """Return one place for each GPU."""
        return [f"cuda:{n}" for n in range(self._torch.cuda.device_count())]

    def generator_states(self) -> Iterator[tuple[str, Any]]:
        """Yield the state of each GPU's default generator."""
        for number, generator in enumerate(self._torch.cuda.default_generators):
            yield f"cuda:{number}", generator.get_state()

    def obstacle(self, machine: Machine) -> Obstacle | None:
        """Return why CUDA cannot be used."""
        return cuda_obstacle(self._torch, machine)


def _sum(stats: list[dict[str, Any]], counter: str, which: str) -> int:
    return sum(device[counter]["all"][which] for device in stats if counter in device)
