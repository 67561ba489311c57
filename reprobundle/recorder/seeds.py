"""Set the given seed before the user's code, and report every seed it sets."""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from _thread import get_ident

from .callers import caller, torch_worker
from .facts import send
from .hardware import device_kinds
from .made_generators import rebind
from .python_generators import PythonGenerators
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .made_generators import MadeGenerators
    from .session import Session

# Data loader workers seed themselves at each start; a long run has thousands.
_MOST_CALLS = 500
_LONGEST_VALUE = 80
_SOURCE = "torch.initial_seed()"


class Seeds:
    """Wrap the public functions that seed the generators.

    Not seen is ``numpy.random.RandomState``, and ``numpy.random.Generator`` made of a
    bit generator: these types cannot be changed, and a class in their place would not
    be the type of what it makes. What ``torch.Generator`` objects were seeded with is
    read from them at the end.
    """

    def __init__(self, session: Session, made: MadeGenerators) -> None:
        self._session = session
        self._made = made
        self._python = PythonGenerators(session, self._report)
        self._calls = 0
        self._inside = 0

    def on_random(self, random: ModuleType) -> None:
        """Seed and watch Python's generator, just after its import."""
        if self._session.seed is not None:
            random.seed(self._session.seed)
        self._watch(random, "seed", "random.seed")
        self._python.watch(random)

    def report_final(self) -> None:
        """Report the states of generators that the user's code made of Python's."""
        self._python.report_final()

    def on_numpy_random(self, module: ModuleType) -> None:
        """Seed and watch numpy's global generator, just after its import."""
        if self._session.seed is not None:
            # numpy takes 32 bits.
            module.seed(self._session.seed % 2**32)
        self._watch(module, "seed", "numpy.random.seed")
        origin = getattr(module, "_generator", module)
        self._watch(module, "default_rng", "numpy.random.default_rng", origin)

    def on_torch(self, torch: Any) -> None:
        """Seed and watch torch's generators, just after its import."""
        if self._session.seed is not None:
            torch.manual_seed(self._session.seed)
        # An unseeded torch starts from a seed of the system's, and tells which.
        read = ("torch.initial_seed", _SOURCE, lambda: str(torch.initial_seed()))
        send(self._session, [read])
        for name in ("manual_seed", "seed"):
            self._watch(torch.random, name, f"torch.{name}", torch)
        for kind in device_kinds(torch):
            module = getattr(torch, kind.type, None)
            for name in kind.seed_functions if module else ():
                origin = getattr(module, "random", module)
                self._watch(module, name, f"torch.{kind.type}.{name}", origin)
        self._made.watch_torch(torch)

    def _watch(self, module: Any, name: str, label: str, *aliases: Any) -> None:
        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*arguments: Any, **named: Any) -> Any:
                if self._inside == get_ident():
                    return original(*arguments, **named)
                # torch.manual_seed seeds CUDA through a wrapped function as well.
                self._inside = get_ident()
                try:
                    result = original(*arguments, **named)
                finally:
                    self._inside = 0
                values = (*arguments, *named.values())
                self._session.attempt("seeds", self._report, label, values, result)
                return result

            return wrapper

        original = replace(module, name, make, *aliases)
        if original is not None:
            rebind(name, original, getattr(module, name))

    def _report(self, function: str, values: tuple[Any, ...], result: Any) -> None:
        if function == "numpy.random.default_rng":
            self._made.add_numpy(result)
        self._calls += 1
        if self._calls > _MOST_CALLS:
            text = f"only the first {_MOST_CALLS} seed calls of a process are recorded"
            self._session.trouble("seeds", text)
            return
        value = _text(values[0]) if values else "None"
        self._session.emit(
            "seed",
            function=function,
            value=value,
            where=torch_worker() or caller(self._session.project),
            drawn=_drawn(result) if value == "None" else "",
        )


def _drawn(result: Any) -> str:
    """Return the seed that the system gave, where the generator tells it."""
    if isinstance(result, int):
        return str(result)
    bits = getattr(result, "bit_generator", None)
    sequence = getattr(bits, "seed_seq", None) or getattr(bits, "_seed_seq", None)
    entropy = getattr(sequence, "entropy", None)
    return str(entropy) if isinstance(entropy, int) else ""


def _text(value: Any) -> str:
    """Return a seed as text; of large things only what they are."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)[:_LONGEST_VALUE]
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():
        return repr(item())[:_LONGEST_VALUE]
    entropy = getattr(value, "entropy", None)
    if isinstance(entropy, int):
        return f"SeedSequence({entropy})"[:_LONGEST_VALUE]
    if isinstance(value, (list, tuple)) and all(isinstance(x, int) for x in value):
        return repr(value)[:_LONGEST_VALUE]
    return f"<{type(value).__module__}.{type(value).__qualname__}>"
