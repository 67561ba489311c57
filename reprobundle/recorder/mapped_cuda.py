"""Answer what a script asks of ``torch.cuda``, for the device that takes its place.

Three kinds of functions: those with a counterpart are answered by it; those that only
mark or tune something do nothing; all others are refused, for an invented answer would
send the script another way. Every call is counted, and only calls that come from
outside torch are changed: torch itself goes on knowing what is really there.

On the CPU, ``torch.cuda.manual_seed`` sets nothing, as torch documents it for machines
without CUDA: the CPU's own generator is the script's, and keeps its stream.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import os
import sys

from .callers import direct_caller
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .mapped_calls import MappedCalls

    Function = Callable[..., Any]

_ANSWERS: dict[str, Any] = {
    "is_available": True,
    "is_initialized": True,
    "device_count": 1,
    "current_device": 0,
    "is_bf16_supported": True,
    "is_tf32_supported": False,
    "can_device_access_peer": False,
}
# Without a device of its own, torch.cuda counts no memory and says 0.
_LEFT_ALONE = frozenset(
    {
        "get_arch_list",
        "is_current_stream_capturing",
        "max_memory_allocated",
        "max_memory_cached",
        "max_memory_reserved",
        "memory_allocated",
        "memory_cached",
        "memory_reserved",
        "memory_stats",
    }
)
_WITHOUT_EFFECT = (
    "init",
    "ipc_collect",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_sync_debug_mode",
)
_MARKERS = ("range_push", "range_pop", "range_start", "range_end", "mark")
_REFUSED_CLASSES = (
    "CUDAGraph",
    "CUDAPluggableAllocator",
    "Event",
    "ExternalStream",
    "GreenContext",
    "MemPool",
    "Stream",
)


class MappedProperties:
    """What ``torch.cuda.get_device_properties`` returns: a name and a size.

    Whatever else is asked of it only CUDA could tell.
    """

    def __init__(self, name: str, total_memory: int, calls: MappedCalls) -> None:
        self.name = name
        self.total_memory = total_memory
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self._calls.refuse(f"torch.cuda.get_device_properties().{name}")

    def __repr__(self) -> str:
        return f"MappedProperties(name={self.name!r}, total_memory={self.total_memory})"


class MappedCuda:
    """The functions of ``torch.cuda``, as far as they have a counterpart.

    Args:
        torch: The module.
        calls: Counts what is mapped and refuses what cannot be.
    """

    def __init__(self, torch: Any, calls: MappedCalls) -> None:
        self._torch = torch
        self._calls = calls
        self._folder = os.path.join(os.path.dirname(torch.__file__), "")
        self._on_mps = calls.target == "mps"
        self._name = f"{calls.target} in the place of CUDA"

    def install(self) -> None:
        """Put the answers in the place of the functions."""
        cuda = self._torch.cuda
        answers = self._answers()
        for name in cuda.__all__:
            known = getattr(cuda, name, None)
            if name in _LEFT_ALONE and not (self._on_mps and name in answers):
                self._replace(cuda, name, None)
            elif name in answers:
                self._replace(cuda, name, answers[name])
            elif _is_function(known):
                self._refuse(cuda, name)
        for name in _REFUSED_CLASSES:
            self._refuse_class(name)
        self._enter_nothing()
        for name in _MARKERS:
            self._replace(cuda.nvtx, name, _nothing)

    def _answers(self) -> dict[str, Function]:
        """Return what each function does, by name."""
        found: dict[str, Function] = {
            name: _always(answer) for name, answer in _ANSWERS.items()
        }
        found |= dict.fromkeys(_WITHOUT_EFFECT, _nothing)
        found |= {
            "synchronize": _nothing,
            "empty_cache": _nothing,
            "memory_summary": _always(self._name),
            "get_device_name": _always(self._name),
            "get_device_properties": self._properties,
            "mem_get_info": self._memory,
            "initial_seed": self._torch.initial_seed,
            "get_rng_state": lambda *_: self._torch.get_rng_state(),
            "get_rng_state_all": lambda: [self._torch.get_rng_state()],
            "set_rng_state": self._set_state,
            "set_rng_state_all": lambda states: self._set_state(*states[:1]),
            # Torch's own: it keeps the seed for a device that never comes.
            "manual_seed": _nothing,
            "manual_seed_all": _nothing,
        }
        return found | (self._of_mps() if self._on_mps else {})

    def _of_mps(self) -> dict[str, Function]:
        mps = self._torch.mps
        # The seed call is recorded as the script made it, not as we carry it out.
        seed = _unwrapped(mps.manual_seed)
        return {
            "synchronize": lambda *_, **__: mps.synchronize(),
            "empty_cache": lambda *_, **__: mps.empty_cache(),
            "memory_allocated": lambda *_, **__: mps.current_allocated_memory(),
            "memory_reserved": lambda *_, **__: mps.driver_allocated_memory(),
            "manual_seed": seed,
            "manual_seed_all": seed,
            "seed": lambda: mps.seed(),
            "seed_all": lambda: mps.seed(),
            "get_rng_state": lambda *_: mps.get_rng_state(),
            "get_rng_state_all": lambda: [mps.get_rng_state()],
        }

    def _properties(self, *_: Any, **__: Any) -> MappedProperties:
        return MappedProperties(self._name, self._memory()[1], self._calls)

    def _memory(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Return free and total memory in bytes, of the device or of the machine."""
        if self._on_mps:
            total = int(self._torch.mps.recommended_max_memory())
            return total - int(self._torch.mps.driver_allocated_memory()), total
        page = os.sysconf("SC_PAGE_SIZE")
        total = page * os.sysconf("SC_PHYS_PAGES")
        free = "SC_AVPHYS_PAGES"
        return page * os.sysconf(free) if free in os.sysconf_names else total, total

    def _set_state(self, state: Any = None, *_: Any, **__: Any) -> None:
        """Set the generator that stands for CUDA's back to a state of its own kind."""
        owner = self._torch.mps if self._on_mps else self._torch
        if state is None:
            return
        if state.numel() != owner.get_rng_state().numel():
            self._calls.refuse(
                "torch.cuda.set_rng_state", "the state is of another device"
            )
        owner.set_rng_state(state)

    # -- putting them in place

    def _replace(self, module: Any, name: str, answer: Function | None) -> None:
        """Have a function answered by `answer`; by itself, but counted, if None."""
        label = f"{module.__name__}.{name}"
        seeds = name in ("manual_seed", "manual_seed_all")

        def make(original: Function) -> Function:
            def mapped(*arguments: Any, **named: Any) -> Any:
                if self._is_torch_calling():
                    return original(*arguments, **named)
                if answer is None:
                    self._calls.note(label, "", "no device to ask")
                    return original(*arguments, **named)
                if seeds:
                    original(*arguments, **named)
                result = answer(*arguments, **named)
                self._calls.note(label, "", self._became(answer, result))
                return result

            return mapped

        replace(module, name, make, *self._aliases(name))

    def _became(self, answer: Function, result: Any) -> str:
        if answer is _nothing:
            return "nothing"
        plain = isinstance(result, (bool, int))
        return str(result) if plain else ""

    def _aliases(self, name: str) -> list[Any]:
        """Return the modules that offer a function under the same name."""
        parts = ("memory", "random", "streams", "graphs")
        found = (sys.modules.get(f"torch.cuda.{part}") for part in parts)
        return [module for module in found if hasattr(module, name)]

    def _refuse(self, cuda: Any, name: str) -> None:
        def make(original: Function) -> Function:
            def refused(*arguments: Any, **named: Any) -> Any:
                if self._is_torch_calling():
                    return original(*arguments, **named)
                return self._calls.refuse(f"torch.cuda.{name}")

            return refused

        replace(cuda, name, make, *self._aliases(name))

    def _refuse_class(self, name: str) -> None:
        kind = getattr(self._torch.cuda, name, None)
        if not isinstance(kind, type):
            return
        calls = self._calls

        def refused(cls: Any, *arguments: Any, **named: Any) -> Any:
            calls.refuse(f"torch.cuda.{name}")

        setattr(kind, "__new__", refused)  # noqa: B010 -- typed as overloads

    def _enter_nothing(self) -> None:
        """Let ``with torch.cuda.device(0)`` change nothing: there is one device.

        ``device_of`` is derived from it.
        """
        calls = self._calls

        def make(original: Function) -> Function:
            def enter(context: Any, /) -> Any:
                del context
                calls.note("torch.cuda.device", "", "nothing")

            return enter

        kind = self._torch.cuda.device
        replace(kind, "__enter__", make)
        replace(kind, "__exit__", lambda original: _nothing_at_exit)

    def _is_torch_calling(self) -> bool:
        return direct_caller().startswith(self._folder)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _unwrapped(function: Any) -> Function:
    original: Function = getattr(function, "__wrapped__", function)
    return original


def _always(answer: Any) -> Function:
    def say(*_: Any, **__: Any) -> Any:
        return answer

    return say


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing: what was asked for has no meaning on the target."""


def _nothing_at_exit(context: Any, *_: Any) -> bool:
    del context
    return False
