"""Follow the generators of Python's own that the user's code makes: ``random.Random``.

Its constructor calls ``seed``, which is a plain function of the class. So that one
function is wrapped: no class takes another's place, ``isinstance``, derived classes and
pickles are as ever, and whatever ``super().seed()`` leads to is seen as well. A class
that has a ``seed`` of its own and does not call this one is not seen.
"""

# ruff: noqa: ANN401 -- objects of the user's program pass through here
from __future__ import annotations

from _weakref import ref as weak_reference

from .callers import calling_frame, is_installed, is_ours, is_standard
from .generators import fingerprint
from .replace import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

    from .session import Session

    Report = Callable[[str, tuple[Any, ...], Any], None]

# A library may make one generator for each name, sample or test case.
_MOST = 16
_MOST_AT_ONE_PLACE = 16


class PythonGenerators:
    """Report the seeds of ``random.Random`` objects, and their states at the end."""

    def __init__(self, session: Session, report: Report) -> None:
        self._session = session
        self._report = report
        self._made: list[Callable[[], Any]] = []
        self._at: dict[tuple[str, int], int] = {}
        self._file = ""
        self._plain: Any = None

    def watch(self, random: ModuleType) -> None:
        """See every seed of a ``random.Random``, just after its module was imported."""
        self._plain = random.Random
        self._file = str(random.__file__)

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def seed(generator: Any, *arguments: Any, **named: Any) -> Any:
                result = original(generator, *arguments, **named)
                values = (*arguments, *named.values())
                self._session.attempt("generators", self._seeded, generator, values)
                return result

            return seed

        replace(random.Random, "seed", make)

    def _seeded(self, generator: Any, values: tuple[Any, ...]) -> None:
        frame = calling_frame()
        is_new = False
        while frame is not None and frame.f_code.co_filename == self._file:
            is_new = is_new or frame.f_code.co_name == "__init__"
            frame = frame.f_back
        if frame is None or not self._counts(frame):
            return
        if is_new:
            self._add(generator)
        self._report("random.Random" if is_new else "random.Random.seed", values, None)

    def _counts(self, frame: FrameType) -> bool:
        """Whether a call made here is to be told: ours and the library's are not.

        ``tempfile`` makes a generator for its names in each process, ``copy`` one for
        each copy that it fills afterwards, and sympy several when it is imported.
        """
        file, line = frame.f_code.co_filename, frame.f_lineno
        if is_ours(file) or is_standard(file):
            return False
        if _is_importing(frame):
            return False
        count = self._at[file, line] = self._at.get((file, line), 0) + 1
        if count == _MOST_AT_ONE_PLACE + 1:
            text = (
                f"only the first {_MOST_AT_ONE_PLACE} seeds of random.Random at one "
                "place are recorded"
            )
            self._session.trouble("seeds", text)
        return count <= _MOST_AT_ONE_PLACE

    def _add(self, generator: Any) -> None:
        if len(self._made) >= _MOST:
            return
        if type(generator) is self._plain:
            self._made.append(lambda: generator)
        else:
            # An object of the user's class must not live longer because of us.
            self._made.append(weak_reference(generator))
        states = {f"python.Random#{len(self._made)}": self._state(generator)}
        self._session.emit("generators", when="initial", fingerprints=states)

    def report_final(self) -> None:
        """Report the states of those that are still there."""
        states = {
            f"python.Random#{number}": self._state(generator)
            for number, made in enumerate(self._made, 1)
            if (generator := made()) is not None
        }
        if states:
            self._session.emit("generators", when="final", fingerprints=states)

    def _state(self, generator: Any) -> str:
        # By the class's own function: a derived class may do anything in its own.
        return fingerprint(repr(self._plain.getstate(generator)).encode())


def _is_importing(frame: FrameType | None) -> bool:
    """Whether an installed package is being imported by what runs here."""
    while frame is not None and is_installed(frame.f_code.co_filename):
        if frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False
