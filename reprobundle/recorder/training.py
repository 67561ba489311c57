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
_POINTS = ("first batch", "model ready", "first backward")
_NEVER = sys.maxsize


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


class _Calls:
    """The outermost calls of modules.

    Attributes:
        count: How many there were.
        look_at: Before which one the devices are looked at.
        sample_at: After which one a memory sample is taken, without an optimizer.
    """

    __slots__ = ("count", "look_at", "sample_at")

    count: int
    look_at: int
    sample_at: int


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
        # Each is called with an iterator and its batch until it returns false.
        self.on_batch: list[Callable[[Any, Any], bool]] = []
        self.after_step: Callable[[int], None] | None = None
        self._calls = _Calls()
        self._unseen: set[str] = set()
        self.continue_in_fork()

    def continue_in_fork(self) -> None:
        """Count anew: a fork reports for itself."""
        self._rounds = Rounds()
        self._call_rounds = Rounds()
        calls = self._calls
        calls.count, calls.look_at, calls.sample_at = 0, 1, self._call_rounds.next
        # Emptied point by point; once nothing is left, asking costs nothing.
        self._unseen.update(_POINTS)

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
        begin, end = self._clock.measure("forward")
        calls, count = self._calls, self._shapes.count
        before, after = self._before_call, self._after_call
        inside = 0

        def make(original: Function) -> Function:
            is_usual = _only_passes_on(original)

            def call(module: Any, /, *arguments: Any, **named: Any) -> Any:
                nonlocal inside
                # The compiler must see nothing else of this function: reading a
                # clock would break its graph.
                if is_compiling():
                    return original(module, *arguments, **named)
                if inside == get_ident():
                    # The usual original has nothing to do but this: a module inside
                    # another one costs no further call then.
                    if is_usual and module._compiled_call_impl is None:
                        if named:
                            return module._call_impl(*arguments, **named)
                        return module._call_impl(*arguments)
                    return original(module, *arguments, **named)
                calls.count += 1
                if calls.count >= calls.look_at:
                    before(module, arguments, named)
                if not begin():
                    return original(module, *arguments, **named)
                inside = get_ident()
                try:
                    return original(module, *arguments, **named)
                finally:
                    inside = 0
                    end()
                    count(arguments, named)
                    if calls.count >= calls.sample_at:
                        after()

            return call

        kind = torch.nn.Module
        original = replace(kind, "__call__", make)
        # The compiler knows the function by this name.
        kind.__call__.__name__ = getattr(original, "__name__", "__call__")

    def _before_call(self, module: Any, arguments: Any, named: Any) -> None:
        """Look at the devices before the clock is read.

        Only a device that was seen is waited for.
        """
        count = self._calls.count
        self._calls.look_at = count + 1 if count < _LOOKS_IN_A_ROW else 2 * count
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

    def _after_call(self) -> None:
        """Take a sample: without an optimizer the calls of the model are the rounds."""
        if self._clock.steps:
            self._calls.sample_at = _NEVER
            return
        self._call_rounds.advance()
        self._calls.sample_at = self._call_rounds.next
        self._memory.sample(f"call {self._calls.count}")

    def _at_first(self, point: str) -> None:
        if point in self._unseen:
            self._unseen.discard(point)
            self._memory.sample(point, whole=True)

    def _watch_optimizer(self, torch: Any) -> None:
        is_compiling = torch.compiler.is_compiling
        clock = self._clock
        begin, end = clock.measure("optimizer")
        thread = 0

        def before(optimizer: Any, arguments: Any, named: Any) -> None:
            nonlocal thread
            if not is_compiling() and begin():
                thread = get_ident()

        def after(optimizer: Any, arguments: Any, named: Any) -> None:
            nonlocal thread
            if is_compiling():
                return
            if thread == get_ident():
                thread = 0
                end()
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
        begin, end = self._clock.measure("backward")
        unseen = self._unseen

        def make(original: Function) -> Function:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                if is_compiling() or not begin():
                    return original(*arguments, **named)
                try:
                    return original(*arguments, **named)
                finally:
                    end()
                    if unseen:
                        self._at_first("first backward")

            return wrapper

        # Tensor.backward calls the first of these by its name.
        for name in ("backward", "grad"):
            replace(torch.autograd, name, make)

    def _watch_data(self, torch: Any) -> None:
        begin, end = self._clock.measure("data")
        end_without = self._clock.end
        unseen, looks = self._unseen, self.on_batch

        def make(original: Function) -> Function:
            def wrapper(iterator: Any) -> Any:
                if begin():
                    try:
                        batch = original(iterator)
                    except BaseException:
                        # The call that finds no further batch takes time, gives none.
                        end_without(counted=False)
                        raise
                    end()
                    if unseen:
                        self._at_first("first batch")
                else:
                    batch = original(iterator)
                if looks:
                    self._look_at_batch(iterator, batch)
                return batch

            return wrapper

        loader: Any = sys.modules["torch.utils.data.dataloader"]
        replace(loader._BaseDataLoaderIter, "__next__", make)

    def _look_at_batch(self, iterator: Any, batch: Any) -> None:
        for look in list(self.on_batch):
            if not self._session.attempt("beginnings", look, iterator, batch):
                self.on_batch.remove(look)


def _only_passes_on(call: Any) -> bool:
    """Tell whether ``Module.__call__`` is torch's, which chooses between two functions.

    ``torch/nn/modules/module.py``, ``_wrapped_call_impl``, the same since torch 2.1.
    """
    code = getattr(call, "__code__", None)
    found = (getattr(code, "co_name", ""), *getattr(code, "co_names", ()))
    return found == ("_wrapped_call_impl", "_compiled_call_impl", "_call_impl")


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
