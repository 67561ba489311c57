"""Follow the random generators that the user's code makes: numpy's and torch's.

They have no hooks of their own, and their types cannot be changed. So the makers are
watched, and what they made is kept until the end, when its state is read once more.
"""

# ruff: noqa: ANN401, N805 -- objects of the user's libraries pass through here; the
# first argument of a metaclass's method is a class
from __future__ import annotations

import os
import sys

from .callers import caller, direct_caller
from .generators import fingerprint, torch_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .session import Session

# A data set may make one generator for each sample.
_MOST = 16


class MadeGenerators:
    """Keep what was made, and report its states when made and at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._numpy: list[Any] = []
        self._torch: list[tuple[Any, str]] = []
        self._torch_folder = ""

    def add_numpy(self, generator: Any) -> None:
        """Report a ``numpy.random.Generator`` that was just made."""
        made = self._numpy
        if len(made) < _MOST and not any(known is generator for known in made):
            made.append(generator)
            self._send("initial", {_name("numpy", made): numpy_state(generator)})

    @property
    def of_numpy(self) -> tuple[Any, ...]:
        """The generators of numpy that are known."""
        return tuple(self._numpy)

    def add_torch(self, generator: Any) -> None:
        """Report a ``torch.Generator`` that was just made.

        Those that torch makes for itself, a sampler at each shuffle for instance, are
        seeded from another generator and tell nothing new.
        """
        if direct_caller().startswith(self._torch_folder):
            return
        if len(self._torch) < _MOST:
            self._torch.append((generator, caller(self._session.project)))
            name = _name("torch", self._torch)
            self._send("initial", {name: torch_state(generator)})

    def watch_torch(self, torch: Any) -> None:
        """See every call of ``torch.Generator``."""
        self._torch_folder = os.path.join(os.path.dirname(torch.__file__), "")
        torch.Generator = watched_class(torch.Generator, self.made_torch)
        # TorchScript knows the class by its identity.
        register = getattr(torch.jit._builtins, "_register_builtin", None)
        if register is not None:
            register(torch.Generator, "aten::Generator")

    def made_torch(self, generator: Any) -> None:
        """Report one, whatever goes wrong with that."""
        self._session.attempt("generators", self.add_torch, generator)

    def report_final(self) -> None:
        """Report the states at the end, and the seeds that torch's own ones hold."""
        states = {
            f"numpy.Generator#{number}": numpy_state(generator)
            for number, generator in enumerate(self._numpy, 1)
        }
        for number, (generator, where) in enumerate(self._torch, 1):
            states[f"torch.Generator#{number}"] = torch_state(generator)
            seed = str(generator.initial_seed())
            self._session.emit(
                "seed", function="torch.Generator", value=seed, where=where
            )
        if states:
            self._send("final", states)

    def _send(self, when: str, states: dict[str, str]) -> None:
        self._session.emit("generators", when=when, fingerprints=states)


def _name(library: str, made: list[Any]) -> str:
    return f"{library}.Generator#{len(made)}"


def numpy_state(generator: Any) -> str:
    """Return the fingerprint of the state of a ``numpy.random.Generator``."""
    return fingerprint(*flat(generator.bit_generator.state))


def flat(state: Any) -> Iterator[bytes]:
    """Yield what a generator's state holds, in an order that never changes."""
    if isinstance(state, dict):
        for key in sorted(state):
            yield str(key).encode()
            yield from flat(state[key])
    elif hasattr(state, "tobytes"):
        yield state.tobytes()
    else:
        yield repr(state).encode()


def watched_class(original: Any, made: Callable[[Any], None]) -> Any:
    """Return a class that makes an `original` and shows it to `made`.

    What comes out is of the original type: torch's compiler refuses generators of a
    type derived from it. The class itself equals the original, answers ``isinstance``
    as the original does, and can be derived from.
    """
    kind: Any = type(original)

    class Meta(kind):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            if cls is watched:
                return isinstance(instance, original)
            return bool(super().__instancecheck__(instance))

        def __subclasscheck__(cls, other: type) -> bool:
            if cls is watched:
                return issubclass(other, original)
            return bool(super().__subclasscheck__(other))

        def __eq__(cls, other: object) -> bool:
            return other is cls or (cls is watched and other is original)

        def __hash__(cls) -> int:
            return hash(original) if cls is watched else int(super().__hash__())

        def __repr__(cls) -> str:
            return repr(original) if cls is watched else str(super().__repr__())

    def new(cls: Any, *arguments: Any, **named: Any) -> Any:
        if cls is not watched:
            return original.__new__(cls, *arguments, **named)
        result = original(*arguments, **named)
        made(result)
        return result

    content = {
        "__new__": new,
        "__doc__": original.__doc__,
        "__module__": "torch",
        "__slots__": (),
    }
    watched: Any = Meta(original.__name__, (original,), content)
    return watched


def rebind(name: str, original: Any, wrapper: Any) -> None:
    """Give `wrapper` to every module that holds `original` under `name`.

    Needed for a module that took the function before we could wrap it. Modules are
    not asked for the attribute: some load their content when they are.
    """
    for module in list(sys.modules.values()):
        content = getattr(module, "__dict__", None)
        if isinstance(content, dict) and content.get(name) is original:
            content[name] = wrapper
