"""Run the observers of an evidence pass: what only a traced run can tell.

An evidence pass runs the command once more with tracing on. Its times and memory are
thrown away, so an observer may cost; it must not change a result, and the outputs of
the pass are compared with the measured ones to prove that it did not.

To add an observer, write a class with the methods of `Observer` (those it does not
need may do nothing), and add it to `make_observers`. Each call is guarded: an observer
that raises is reported as trouble, taken off, and leaves the others working.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .operators import OperatorCall, OperatorStream
    from .phases import Clock
    from .session import Session


class Observer:
    """One kind of evidence.

    Attributes:
        name: For messages about it.
        sees_operators: Whether `operator` is to be called.
    """

    name = "observer"
    sees_operators = False

    def start(self, torch: Any) -> None:
        """Begin: torch was just imported, and no user code has seen it yet."""

    def operator(self, call: OperatorCall) -> None:
        """Look at an operator that just ran, in the thread that ran it.

        Operators that the observer itself runs here are not reported.
        """

    def refused(self, call: OperatorCall) -> None:
        """Look at an operator that its device has no kernel for; it has no result."""

    def starved(self, call: OperatorCall) -> None:
        """Look at an operator that its device had no memory for; it has no result."""

    def step(self, number: int) -> None:
        """Look at the end of an optimizer step; the first has number 1."""

    def continue_in_fork(self) -> bool:
        """Begin anew in a fork; tell whether to go on there at all."""
        return False

    def finish(self) -> None:
        """Send what is left: the process ends, or becomes another program."""


def make_observers(session: Session, clock: Clock) -> list[Observer]:
    """Return the observers of this process, in the order they are called in.

    Args:
        session: Where their events go.
        clock: Knows the number of steps and the open phase.
    """
    from .census import Census
    from .fingerprints import Fingerprints
    from .float64_sites import Float64Sites
    from .operator_forms import OperatorForms
    from .profiler_witness import ProfilerWitness

    return [
        ProfilerWitness(session),
        Census(session),
        Float64Sites(session, clock),
        OperatorForms(session, clock),
        Fingerprints(session, clock),
    ]


class Evidence:
    """Start the observers and pass on what happens; does nothing when not traced."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._observers: list[Observer] = []
        self._stream: OperatorStream | None = None

    def start(self, torch: Any) -> None:
        """Start all observers on a torch that was just imported."""
        forecast: Any = None
        if self._session.forecasts:
            from .forecasting import Forecasting

            forecast = Forecasting(self._session, self._clock)
            self._observers = forecast.observers
        else:
            self._observers = make_observers(self._session, self._clock)
        self._each("start", torch)
        if any(observer.sees_operators for observer in self._observers):
            # Imported here: a run that is not traced must not pay for it.
            from .operators import OperatorStream

            self._stream = OperatorStream(self._session, self._clock, self._see)
            self._stream.refused = self._see_refused
            self._stream.starved = self._see_starved
            if forecast is not None:
                forecast.attach(self._stream)
            self._stream.start(torch)

    def after_step(self, number: int) -> None:
        """Tell the observers about the end of an optimizer step."""
        self._each("step", number)

    def finish(self) -> None:
        """Let the observers send what is left."""
        self._each("finish")
        if self._stream is not None:
            self._session.attempt("evidence", self._stream.stop)

    def continue_in_fork(self) -> None:
        """Keep the observers that look at forks: most loads data, some compute."""
        self._observers = [one for one in self._observers if one.continue_in_fork()]

    def _see(self, call: OperatorCall) -> None:
        for observer in self._observers:
            if observer.sees_operators:
                self._call(observer, "operator", call)

    def _see_refused(self, call: OperatorCall) -> None:
        for observer in self._observers:
            if observer.sees_operators:
                self._call(observer, "refused", call)

    def _see_starved(self, call: OperatorCall) -> None:
        for observer in self._observers:
            if observer.sees_operators:
                self._call(observer, "starved", call)

    def _each(self, method: str, *arguments: Any) -> None:
        for observer in list(self._observers):
            self._call(observer, method, *arguments)

    def _call(self, observer: Observer, method: str, *arguments: Any) -> None:
        try:
            getattr(observer, method)(*arguments)
        except Exception as error:
            self._session.trouble(f"evidence: {observer.name}", error)
            self._observers = [one for one in self._observers if one is not observer]
