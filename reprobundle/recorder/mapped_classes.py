"""Map the parts of torch that take a device's name and are no calls of tensors.

Autocast, gradient scaling, generators, checkpoints and compiled code read the name by
themselves, in Python; process groups and extensions cannot be had without CUDA at all.
"""

# ruff: noqa: ANN401, N805 -- objects of the user's libraries pass through here; the
# first argument of a metaclass's method is a class
from __future__ import annotations

import os
import sys

from .mapped_calls import device_text, is_name_of
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .mapped_calls import MappedCalls

    Function = Callable[..., Any]

_CUDA_SOURCES = (".cu", ".cuh")


class MappedClasses:
    """Everything besides tensors that a device is named to.

    Args:
        torch: The module.
        calls: Counts what is mapped and refuses what cannot be.
        source: The device type whose name is read.
    """

    def __init__(self, torch: Any, calls: MappedCalls, source: str = "cuda") -> None:
        self._torch = torch
        self._calls = calls
        self._source = source

    def _names(self, device: Any) -> bool:
        return isinstance(device, str) and is_name_of(self._source, device)

    def install(self) -> None:
        """Attach to torch, which was just imported."""
        torch = self._torch
        self.watch_autocast()
        for name in ("custom_fwd", "custom_bwd"):
            replace(torch.amp, name, self._custom(name), torch.amp.autocast_mode)
        replace(torch, "is_autocast_enabled", self._autocasts)
        scaler = getattr(torch.amp, "GradScaler", None)
        if scaler is not None:
            replace(scaler, "__init__", self._scaler)
        replace(torch.serialization, "default_restore_location", self._restore)
        replace(torch.jit, "load", self._script)
        self.leave_uncompiled()
        torch.Generator = self._generator(torch.Generator)
        register = getattr(torch.jit._builtins, "_register_builtin", None)
        if register is not None:
            register(torch.Generator, "aten::Generator")

    def watch_autocast(self) -> None:
        """Have ``autocast`` for the source be one for the target, and count that."""
        autocast = self._torch.amp.autocast_mode.autocast
        replace(autocast, "__init__", self._autocast)

    def leave_uncompiled(self) -> None:
        """Have what ``torch.compile`` gives run as it stands, and count that."""
        replace(self._torch, "compile", self._compile)

    def _autocast(self, original: Function) -> Function:
        torch, calls = self._torch, self._calls

        def initialise(
            context: Any,
            device_type: Any,
            dtype: Any = None,
            enabled: bool = True,
            cache_enabled: bool | None = None,
        ) -> None:
            if self._names(device_type):
                if enabled:
                    calls.note("torch.autocast", device_type)
                device_type = calls.target
                if dtype is None:
                    # Each device has a default of its own; the script means this one's.
                    dtype = torch.get_autocast_dtype(self._source)
            original(context, device_type, dtype, enabled, cache_enabled)

        return initialise

    def _custom(self, name: str) -> Callable[[Function], Function]:
        """Map the decorators of own functions, which cast by the device's name."""
        calls = self._calls

        def make(original: Function) -> Function:
            def decorate(
                function: Any = None, *, device_type: Any, **named: Any
            ) -> Any:
                if self._names(device_type):
                    calls.note(f"torch.amp.{name}", device_type)
                    device_type = calls.target
                return original(function, device_type=device_type, **named)

            return decorate

        return make

    def _autocasts(self, original: Function) -> Function:
        """Answer for the target, where `_autocast` has switched it on."""

        def is_enabled(device_type: Any = "cuda") -> Any:
            mapped = self._names(device_type)
            return original(self._calls.target if mapped else device_type)

        return is_enabled

    def _scaler(self, original: Function) -> Function:
        calls = self._calls

        def initialise(
            scaler: Any, device: str = "cuda", *arguments: Any, **named: Any
        ) -> None:
            if self._names(device):
                calls.note("torch.amp.GradScaler", device)
                device = calls.target
            original(scaler, device, *arguments, **named)

        return initialise

    def _restore(self, original: Function) -> Function:
        """Put the storages of a checkpoint where they are mapped to."""
        calls = self._calls

        def restore(storage: Any, location: Any) -> Any:
            if self._names(location):
                calls.note("torch.load", location)
                location = calls.target
            return original(storage, location)

        return restore

    def _script(self, original: Function) -> Function:
        """Put a script's tensors where they are mapped to."""
        calls = self._calls

        def load(
            f: Any, map_location: Any = None, *arguments: Any, **named: Any
        ) -> Any:
            if map_location is not None and self._names(device_text(map_location)):
                calls.note("torch.jit.load", device_text(map_location))
                map_location = calls.target
            return original(f, map_location, *arguments, **named)

        return load

    def _compile(self, original: Function) -> Function:
        """Run what was to be compiled as it stands: the compiler asks no mode."""
        calls = self._calls
        # Scripts ask for what a compiled model has besides, such as `_orig_mod`.
        set_stance = getattr(self._torch.compiler, "set_stance", None)

        def compile(model: Any = None, **options: Any) -> Any:
            off = os.environ.get("TORCH_COMPILE_DISABLE") == "1"
            if off or options.get("disable"):
                return original(model, **options)
            calls.note("torch.compile", "", "not compiled")
            if set_stance is not None:
                set_stance("force_eager")
                return original(model, **options)
            return model if model is not None else lambda function: function

        return compile

    def _generator(self, shown: Any) -> Any:
        """Return the class of generators that makes the target's for CUDA."""
        kind: Any = type(shown)
        calls, source, names = self._calls, self._source, self._names
        device_type = self._torch.device

        class Meta(kind):  # type: ignore[misc]
            def __instancecheck__(cls, instance: object) -> bool:
                return isinstance(instance, shown)

            def __call__(cls, device: Any = "cpu") -> Any:
                if cls is not mapped:
                    return super().__call__(device)
                number = isinstance(device, int) and not isinstance(device, bool)
                held = isinstance(device, device_type) and device.type == source
                if number or names(device) or held:
                    calls.note("torch.Generator", device_text(device))
                    device = calls.target
                return shown(device)

        content = {"__doc__": shown.__doc__, "__module__": "torch", "__slots__": ()}
        mapped: Any = Meta(shown.__name__, (shown,), content)
        return mapped

    # -- what cannot be had

    def on_distributed(self, module: Any) -> None:
        """Refuse process groups that need NCCL."""
        calls = self._calls

        def make(original: Function) -> Function:
            def initialise(*arguments: Any, **named: Any) -> Any:
                backend = named.get("backend", arguments[0] if arguments else None)
                if "nccl" in str(backend).lower():
                    name = "torch.distributed.init_process_group"
                    calls.refuse(name, "backend nccl")
                return original(*arguments, **named)

            return initialise

        package = sys.modules.get("torch.distributed")
        replace(module, "init_process_group", make, package)

    def on_extensions(self, module: Any) -> None:
        """Refuse extensions with kernels for CUDA."""
        for name in ("load", "load_inline", "CUDAExtension"):
            replace(module, name, self._building(name))

    def _building(self, name: str) -> Callable[[Function], Function]:
        calls, label = self._calls, f"torch.utils.cpp_extension.{name}"

        def make(original: Function) -> Function:
            def build(*arguments: Any, **named: Any) -> Any:
                sources = named.get("sources", arguments[1:2] or ())
                texts = [sources] if isinstance(sources, str) else _flat(sources)
                kernels = any(text.endswith(_CUDA_SOURCES) for text in texts)
                if (
                    kernels
                    or named.get("cuda_sources")
                    or named.get("with_cuda")
                    or name == "CUDAExtension"
                ):
                    calls.refuse(label, "a kernel for CUDA")
                return original(*arguments, **named)

            return build

        return make


def _flat(values: Any) -> list[str]:
    """Return the file names among `values`, which may hold lists of them."""
    found: list[str] = []
    for value in values:
        found += _flat(value) if isinstance(value, (list, tuple)) else [str(value)]
    return found
