"""Follow a training loop through torch's public hooks and a few wrapped functions."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

import sys
from _thread import get_ident

from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .devices import Devices
    from .files import FileWatch
    from .memory import Memory
    from .phases import Clock
    from .session import Session

    Function = Callable[..., Any]

# Looking at the devices of inputs costs about a microsecond; most runs never change
# them after the first steps.
_LOOKS_IN_A_ROW = 16


class Training:
    """Measure the phases of training and see where its tensors are."""

    def __init__(
        self,
        session: Session,
        clock: Clock,
        devices: Devices,
        memory: Memory,
        files: FileWatch,
    ) -> None:
        self._session = session
        self._clock = clock
        self._devices = devices
        self._memory = memory
        self._files = files
        self._calls = 0

    def install(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        parts: tuple[tuple[str, Callable[[Any], None]], ...] = (
            ("forward hooks", self._watch_forward),
            ("optimizer hooks", self._watch_optimizer),
            ("backward", self._watch_backward),
            ("data loader", self._watch_data),
            ("checkpoints", self._watch_checkpoints),
        )
        for part, attach in parts:
            self._session.attempt(part, attach, torch)

    def _watch_forward(self, torch: Any) -> None:
        """Count the outermost module call of the measured thread as ``forward``.

        Global module hooks would do the same through a public door, but they send
        every call of every module through torch's slow path: 5 % of a step of 2 ms
        with ten modules, where this wrapper takes half a microsecond a module. They
        also show in the traceback of every error inside a model.
        """
        is_compiling = torch.compiler.is_compiling
        begin, end, look = self._clock.begin, self._clock.end, self._look_at_call
        inside = 0

        def make(original: Function) -> Function:
            def call(module: Any, /, *arguments: Any, **named: Any) -> Any:
                nonlocal inside
                # The compiler must see nothing else of this function: reading a
                # clock would break its graph.
                if is_compiling() or inside == get_ident() or not begin("forward"):
                    return original(module, *arguments, **named)
                inside = get_ident()
                try:
                    look(module, arguments, named)
                    return original(module, *arguments, **named)
                finally:
                    inside = 0
                    end()

            return call

        kind = torch.nn.Module
        original = replace(kind, "__call__", make)
        # The compiler knows the function by this name.
        kind.__call__.__name__ = getattr(original, "__name__", "__call__")

    def _look_at_call(self, module: Any, arguments: Any, named: Any) -> None:
        calls = self._calls = self._calls + 1
        if calls > _LOOKS_IN_A_ROW and calls & (calls - 1):
            return
        values = (*arguments, *named.values())
        self._session.attempt("devices", self._look, module, values)

    def _look(self, module: Any, inputs: Any) -> None:
        devices = self._devices
        devices.note_tensors(inputs, "module input")
        for parameter in module.parameters():
            devices.note(parameter.device.type, "module parameter")
            break

    def _watch_optimizer(self, torch: Any) -> None:
        is_compiling = torch.compiler.is_compiling
        clock = self._clock
        thread = 0

        def before(optimizer: Any, arguments: Any, named: Any) -> None:
            nonlocal thread
            if not is_compiling() and clock.begin("optimizer"):
                thread = get_ident()

        def after(optimizer: Any, arguments: Any, named: Any) -> None:
            nonlocal thread
            if is_compiling():
                return
            if thread == get_ident():
                thread = 0
                clock.end()
            steps = clock.steps = clock.steps + 1
            if steps & (steps - 1) == 0:
                self._look_at_step(optimizer, steps)

        hooks: Any = sys.modules["torch.optim.optimizer"]
        hooks.register_optimizer_step_pre_hook(before)
        hooks.register_optimizer_step_post_hook(after)

    def _look_at_step(self, optimizer: Any, steps: int) -> None:
        self._session.attempt("devices", self._look_at_parameters, optimizer)
        self._memory.sample(f"step {steps}")

    def _look_at_parameters(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._devices.note(parameter.device.type, "optimized parameter")
                break

    def _watch_backward(self, torch: Any) -> None:
        is_compiling = torch.compiler.is_compiling
        begin, end = self._clock.begin, self._clock.end

        def make(original: Function) -> Function:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                if is_compiling() or not begin("backward"):
                    return original(*arguments, **named)
                try:
                    return original(*arguments, **named)
                finally:
                    end()

            return wrapper

        # Tensor.backward calls the first of these by its name.
        for name in ("backward", "grad"):
            replace(torch.autograd, name, make)

    def _watch_data(self, torch: Any) -> None:
        begin, end = self._clock.begin, self._clock.end

        def make(original: Function) -> Function:
            def wrapper(iterator: Any) -> Any:
                if not begin("data"):
                    return original(iterator)
                batch = False
                try:
                    result = original(iterator)
                    batch = True
                finally:
                    # The call that finds no further batch takes time and gives none.
                    end(counted=batch)
                return result

            return wrapper

        loader: Any = sys.modules["torch.utils.data.dataloader"]
        replace(loader._BaseDataLoaderIter, "__next__", make)

    def _watch_checkpoints(self, torch: Any) -> None:
        timed = self._timed("checkpoint")
        serialization = torch.serialization
        replace(serialization, "save", self._opening(timed, 1, write=True), torch)
        replace(serialization, "load", self._opening(timed, 0, write=False), torch)
        jit = sys.modules.get("torch.jit._serialization", torch.jit)
        replace(jit, "save", self._opening(timed, 1, write=True), torch.jit)
        replace(jit, "load", self._opening(timed, 0, write=False), torch.jit)
        for kind in (
            torch.jit._script.RecursiveScriptModule,
            torch.jit._trace.TopLevelTracedModule,
        ):
            replace(kind, "save", self._opening(timed, 1, write=True))
        replace(torch, "from_file", self._opening(_same, 0, write=False))

    def watch_safetensors(self, module: Any) -> None:
        """See the files that safetensors opens in native code."""
        timed = self._timed("checkpoint")
        replace(module, "serialize_file", self._opening(timed, 1, write=True))
        module.safe_open = _opener(module.safe_open, self._note_read)

    def watch_export(self, module: Any) -> None:
        """See the files that ``torch.export`` opens in native code."""
        timed = self._timed("checkpoint")
        replace(module, "save", self._opening(timed, 1, write=True))
        replace(module, "load", self._opening(timed, 0, write=False))

    def _note_read(self, path: Any) -> None:
        self._session.attempt("files", self._note, path, False)

    def _note(self, path: Any, write: bool) -> None:
        self._files.note(path, write=write)

    def _timed(self, phase: str) -> Callable[[Function], Function]:
        begin, end = self._clock.begin, self._clock.end

        def make(original: Function) -> Function:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                if not begin(phase):
                    return original(*arguments, **named)
                try:
                    return original(*arguments, **named)
                finally:
                    end()

            return wrapper

        return make

    def _opening(
        self, also: Callable[[Function], Function], position: int, *, write: bool
    ) -> Callable[[Function], Function]:
        """Return a maker of wrappers that report the file a function opens.

        Args:
            also: A further wrapper, put inside.
            position: Of the file among the arguments.
            write: Whether the function writes it.
        """

        def make(original: Function) -> Function:
            inner = also(original)

            def wrapper(*arguments: Any, **named: Any) -> Any:
                path = _argument(arguments, named, position)
                self._session.attempt("files", self._note, path, write)
                return inner(*arguments, **named)

            return wrapper

        return make


_FILE_NAMES = ("f", "filename", "file")


def _argument(arguments: Any, named: dict[str, Any], position: int) -> Any:
    if len(arguments) > position:
        return arguments[position]
    return next((named[name] for name in _FILE_NAMES if name in named), None)


def _same(original: Function) -> Function:
    return original


def _opener(original: Any, note: Callable[[Any], None]) -> Any:
    """Return a class that reports its first argument and makes an `original`.

    A class and no function: ``isinstance`` tests and annotations such as
    ``safe_open | None`` must go on working.
    """

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, original)

        def __getattr__(cls, name: str) -> Any:
            return getattr(original, name)

    class Opener(metaclass=Meta):
        __doc__ = original.__doc__
        __wrapped__ = original

        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            note(_argument(arguments, named, 0))
            return original(*arguments, **named)

    Opener.__name__ = Opener.__qualname__ = original.__name__
    Opener.__module__ = original.__module__
    return Opener
