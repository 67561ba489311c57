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
    from .memory import Memory
    from .phases import Clock
    from .session import Session
    from .shapes import Shapes

    Function = Callable[..., Any]

# Looking at the devices of inputs costs about a microsecond; most runs never change
# them after the first steps.
_LOOKS_IN_A_ROW = 16
# So many rounds are sampled one after the other, then as many with twice the distance,
# and so on: their number grows with the logarithm of the run's length.
_SAMPLES_PER_DISTANCE = 32


class Rounds:
    """Say which steps of a loop get a memory sample."""

    def __init__(self) -> None:
        self.next = 1
        self._distance = 1
        self._taken = 0

    def advance(self) -> None:
        """Move on to the next one."""
        self._taken += 1
        if self._taken % _SAMPLES_PER_DISTANCE == 0:
            self._distance *= 2
        self.next += self._distance


class Training:
    """Measure the phases of a training loop, its memory, and see its tensors."""

    def __init__(
        self,
        session: Session,
        clock: Clock,
        devices: Devices,
        memory: Memory,
        shapes: Shapes,
    ) -> None:
        self._session = session
        self._clock = clock
        self._devices = devices
        self._memory = memory
        self._shapes = shapes
        self.on_call: Callable[[Any, Any, dict[str, Any]], None] | None = None
        self.after_step: Callable[[int], None] | None = None
        self.continue_in_fork()

    def continue_in_fork(self) -> None:
        """Count anew: a fork reports for itself."""
        self._calls = 0
        self._rounds = Rounds()
        self._call_rounds = Rounds()
        self._seen: set[str] = set()

    def install(self, torch: Any) -> None:
        """Attach to a torch that was just imported."""
        parts: tuple[tuple[str, Callable[[Any], None]], ...] = (
            ("forward hooks", self._watch_forward),
            ("optimizer hooks", self._watch_optimizer),
            ("backward", self._watch_backward),
            ("data loader", self._watch_data),
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
        begin, end = self._clock.begin, self._clock.end
        before, after = self._before_call, self._after_call
        inside = 0

        def make(original: Function) -> Function:
            def call(module: Any, /, *arguments: Any, **named: Any) -> Any:
                nonlocal inside
                # The compiler must see nothing else of this function: reading a
                # clock would break its graph.
                if is_compiling() or inside == get_ident():
                    return original(module, *arguments, **named)
                before(module, arguments, named)
                if not begin("forward"):
                    return original(module, *arguments, **named)
                inside = get_ident()
                try:
                    return original(module, *arguments, **named)
                finally:
                    inside = 0
                    end()
                    after(arguments, named)

            return call

        kind = torch.nn.Module
        original = replace(kind, "__call__", make)
        # The compiler knows the function by this name.
        kind.__call__.__name__ = getattr(original, "__name__", "__call__")

    def _before_call(self, module: Any, arguments: Any, named: Any) -> None:
        """Look at the devices before the clock is read.

        Only a device that was seen is waited for.
        """
        calls = self._calls = self._calls + 1
        if calls > _LOOKS_IN_A_ROW and calls & (calls - 1):
            return
        values = (*arguments, *named.values())
        self._session.attempt("devices", self._look, module, values)
        self._at_first("model ready")
        if self.on_call is not None:
            self._session.attempt("first call", self.on_call, module, arguments, named)

    def _look(self, module: Any, inputs: Any) -> None:
        devices = self._devices
        devices.note_tensors(inputs, "module input")
        for parameter in module.parameters():
            devices.note(parameter.device.type, "module parameter")
            break

    def _after_call(self, arguments: Any, named: Any) -> None:
        self._shapes.count(arguments, named)
        calls = self._calls
        if calls >= self._call_rounds.next and not self._clock.steps:
            # Without an optimizer the calls of the model are the rounds.
            self._call_rounds.advance()
            self._memory.sample(f"call {calls}")

    def _at_first(self, point: str) -> None:
        if point not in self._seen:
            self._seen.add(point)
            self._memory.sample(point, whole=True)

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
            if steps >= self._rounds.next:
                self._rounds.advance()
                self._look_at_step(optimizer, steps)
            if self.after_step is not None:
                self.after_step(steps)

        hooks: Any = sys.modules["torch.optim.optimizer"]
        hooks.register_optimizer_step_pre_hook(before)
        hooks.register_optimizer_step_post_hook(after)

    def _look_at_step(self, optimizer: Any, steps: int) -> None:
        held: dict[str, int] = {}
        self._session.attempt("devices", self._look_at_parameters, optimizer)
        if steps == 1:
            self._session.attempt("optimizer state", _add_held, optimizer, held)
        self._memory.sample(f"step {steps}", held=held)
        if steps & (steps - 1) == 0:
            self._shapes.send()

    def _look_at_parameters(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._devices.note(parameter.device.type, "optimized parameter")
                break

    def _watch_backward(self, torch: Any) -> None:
        is_compiling = torch.compiler.is_compiling
        begin, end, first = self._clock.begin, self._clock.end, self._at_first

        def make(original: Function) -> Function:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                if is_compiling() or not begin("backward"):
                    return original(*arguments, **named)
                try:
                    return original(*arguments, **named)
                finally:
                    end()
                    first("first backward")

            return wrapper

        # Tensor.backward calls the first of these by its name.
        for name in ("backward", "grad"):
            replace(torch.autograd, name, make)

    def _watch_data(self, torch: Any) -> None:
        begin, end, first = self._clock.begin, self._clock.end, self._at_first

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
                first("first batch")
                return result

            return wrapper

        loader: Any = sys.modules["torch.utils.data.dataloader"]
        replace(loader._BaseDataLoaderIter, "__next__", make)


def _add_held(optimizer: Any, held: dict[str, int]) -> None:
    """Add the bytes of parameters, gradients and optimizer state, on any device."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    gradients = [p.grad for p in parameters if p.grad is not None]
    state = [
        value
        for values in optimizer.state.values()
        for value in values.values()
        if hasattr(value, "nbytes")
    ]
    for name, tensors in (
        ("parameters", parameters),
        ("gradients", gradients),
        ("optimizer_state", state),
    ):
        held[name] = sum(tensor.nbytes for tensor in tensors)
