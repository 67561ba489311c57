"""Measure how long the phases of a run take.

Work on an accelerator is queued: without waiting for it, a clock measures how fast
Python can ask, not how long the device needs. So the device in use is synchronised
before each reading, and each total says how.
"""

from __future__ import annotations

from _thread import get_ident
from time import monotonic_ns

from .durations import Total

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from .session import Session

# What a step with a closure runs.
_PASSES = ("forward", "backward")
_FLUSH_NS = 1_000_000_000
# A flush sorts the kept durations for their median. Waiting this many times longer
# than the last flush took keeps all of them below a thousandth of the run.
_FLUSH_COST_FACTOR = 1000


# Of a torch that starts no device unseen.
NEVER: Mapping[str, object] = {"_initialized": False}


class Opened:
    """An open span.

    Attributes:
        total: Where its time goes.
        began_ns: When it began.
        nested_ns: Time of spans inside it.
        pend: Appends a duration to the pending ones of `total`.
        thread: The thread for which the quick way is open; 0 for none.
    """

    __slots__ = ("began_ns", "nested_ns", "pend", "thread", "total")

    total: Total
    pend: Callable[[int], None]

    def __init__(self) -> None:
        self.began_ns = self.nested_ns = self.thread = 0


class Clock:
    """Open and close spans, and send the totals at most once a second.

    The recorder's own phases do not nest: inside an open one, further ones belong to
    it (a transform made of modules is part of ``data``). The exception is
    ``optimizer``: a step with a closure runs forward and backward passes, which are
    counted as such and taken from the step's own time. One thread is measured: the
    first that trains.

    Args:
        session: Where events go.
        synchronize: Waits for the device in use; returns ``cpu``, ``cuda``, ``mps``,
            ``none``, or ``capturing`` when work is only being noted down for later:
            that is no entry of a phase.

    Attributes:
        starting: Its ``_initialized`` becomes true once a device may have to be waited
            for that nobody sees being started; until then the question is saved.
        steps: Optimizer steps so far, in all threads; whoever sees one adds it.
    """

    # Spans open and close between kernels, when nothing of ours is in the caches: each
    # attribute and call that is saved here saves more than it seems to.
    __slots__ = (
        "_changed",
        "_claimed",
        "_due_ns",
        "_open",
        "_quick",
        "_sent_steps",
        "_session",
        "_synchronize",
        "_thread",
        "_totals",
        "_waits",
        "starting",
        "steps",
    )

    def __init__(self, session: Session, synchronize: Callable[[], str]) -> None:
        self._session = session
        self._synchronize = synchronize
        self._waits = True
        self.starting: Mapping[str, object] = NEVER
        self._open: list[Opened] = []
        self._quick: list[Opened] = []
        self.continue_in_fork()

    @property
    def waits(self) -> bool:
        """Whether there may be a device to wait for; False saves the question."""
        return self._waits

    @waits.setter
    def waits(self, value: bool) -> None:
        self._waits = value
        self._slow_down()

    @property
    def may_wait(self) -> bool:
        """Tell whether there is, or may come, a device to wait for."""
        return self._waits or self.starting is not NEVER

    def _slow_down(self) -> None:
        for opened in self._quick:
            opened.thread = 0

    def continue_in_fork(self) -> None:
        """Start anew: the parent reports what happened before the fork."""
        self._thread = get_ident()
        self._claimed = False
        self._totals: dict[str, Total] = {}
        # Emptied and not replaced: the quick functions hold it.
        self._open.clear()
        self._slow_down()
        self._due_ns = monotonic_ns() + _FLUSH_NS
        self._changed = False
        self.steps = self._sent_steps = 0

    def measure(self, name: str) -> tuple[Callable[[], bool], Callable[[], None]]:
        """Return `begin` and `end` of one phase, quick where there is no device.

        What they do is what `begin` and `end` of the clock do. They do it themselves
        for a span that lies in no other one, on the thread that is measured, without
        a device to wait for, once the phase has had its first entry.

        Args:
            name: The recorder's own phase that they open and close.
        """
        mine, open_, starting = Opened(), self._open, self.starting
        self._quick.append(mine)

        def begin() -> bool:
            if open_ or mine.thread != get_ident() or starting["_initialized"]:
                return self._begin(name, mine)
            open_.append(mine)
            mine.began_ns = monotonic_ns()
            return True

        def end() -> None:
            now_ns = monotonic_ns()
            if (
                len(open_) != 1
                or not mine.thread
                or mine.nested_ns
                or starting["_initialized"]
            ):
                self.end()
                return
            open_.pop()
            mine.pend(now_ns - mine.began_ns)
            if now_ns > self._due_ns:
                self.flush()

        return begin, end

    def begin(self, name: str) -> bool:
        """Open a span of a phase of ours; tell whether `end` must be called."""
        return self._begin(name, Opened())

    def _begin(self, name: str, opened: Opened) -> bool:
        try:
            if get_ident() != self._thread and not self._claim(name):
                return False
            if self._open and not self._may_nest(name):
                return False
            waits = self._waits or self.starting["_initialized"]
            how = self._synchronize() if waits else "cpu"
            if how == "capturing":
                return False
            total = self._totals.get(name) or self._new_total(name)
            if how != "cpu":
                total.note(how)
            opened.total = total
            opened.pend = total.pending.append
            opened.thread = 0 if waits or not self._claimed else self._thread
            opened.nested_ns = 0
            self._open.append(opened)
            opened.began_ns = monotonic_ns()
        except Exception as error:
            self._session.trouble("phases", error)
            return False
        return True

    def _may_nest(self, name: str) -> bool:
        if self._open[-1].total.name != "optimizer":
            return False
        if name == "optimizer":
            # A step that raised was never closed: torch calls no hook then.
            self._open.pop()
            return True
        return name in _PASSES

    def _claim(self, name: str) -> bool:
        if self._claimed or self._open or name == "import":
            return False
        self._thread = get_ident()
        return True

    def end(self, *, counted: bool = True) -> None:
        """Close the span that was opened last, if this thread is the measured one.

        Args:
            counted: Whether it was an entry; else only its time is added.
        """
        if not self._open or get_ident() != self._thread:
            return
        try:
            opened = self._open.pop()
            total, began_ns, nested_ns = opened.total, opened.began_ns, opened.nested_ns
            opened.nested_ns = 0
            waits = self._waits or self.starting["_initialized"]
            # What a clock that does not wait would have read: the self-check.
            early_ns = monotonic_ns() if waits else 0
            how = self._synchronize() if waits else "cpu"
            now_ns = monotonic_ns()
            if self._open:
                self._open[-1].nested_ns += now_ns - began_ns
            elapsed_ns = now_ns - began_ns - nested_ns
            if how == "cpu":
                total.add(elapsed_ns, counted=counted)
            else:
                total.note(how)
                unwaited_ns = early_ns - began_ns - nested_ns
                total.add(elapsed_ns, counted=counted, unwaited_ns=unwaited_ns)
            self._changed = True
            if now_ns > self._due_ns:
                self.flush()
        except Exception as error:
            self._session.trouble("phases", error)

    @property
    def open_phase(self) -> str:
        """Name of the phase that is open now, in whichever thread; empty for none."""
        return self._open[-1].total.name if self._open else ""

    def span(self, name: str) -> Span:
        """Return a context manager for a phase that the script names."""
        return Span(self, name)

    def add_named(
        self,
        name: str,
        elapsed_ns: int,
        readings: tuple[str, str],
        *,
        unwaited_ns: int | None,
    ) -> None:
        """Count one entry of a phase that the script names.

        Args:
            name: As the script gave it.
            elapsed_ns: Between two waits for the device.
            readings: How the device was waited for, before and after.
            unwaited_ns: Its end read before the last wait; None if nothing was waited
                for, or in between as well.
        """
        total = self._totals.get(name) or self._new_total(name)
        for how in readings:
            total.note(how)
        total.add(elapsed_ns, unwaited_ns=unwaited_ns)
        self._changed = True

    def waits_made(self) -> int:
        """Return how often a device was waited for, for readings of this clock."""
        return sum(total.synchronizations for total in list(self._totals.values()))

    def synchronize(self) -> str:
        """Wait for the device in use and return how."""
        waits = self._waits or self.starting["_initialized"]
        return self._synchronize() if waits else "cpu"

    def flush(self) -> None:
        """Send the totals if any changed."""
        changed = self._changed or any(
            total.pending for total in list(self._totals.values())
        )
        if not changed and self.steps == self._sent_steps:
            return
        began = monotonic_ns()
        self._changed = False
        self._sent_steps = self.steps
        self._session.attempt("phases", self._send)
        now_ns = monotonic_ns()
        self._due_ns = now_ns + max(_FLUSH_NS, _FLUSH_COST_FACTOR * (now_ns - began))

    def _send(self) -> None:
        totals = [total.fields() for total in list(self._totals.values())]
        self._session.emit("phases", phases=totals, steps=self.steps)

    def _new_total(self, name: str) -> Total:
        if name != "import":
            # From here on the measured thread stays the same.
            self._claimed = True
        total = self._totals[name] = Total(name)
        return total


class Span:
    """One entry of a phase that the script names; includes all that happens in it.

    Where phases of ours or others of the script lie inside, our waits for them have
    drained the queue: what a clock without waits would have read is not known then.
    """

    def __init__(self, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._how = "cpu"
        self._began_ns = 0
        self._waits = 0

    def __enter__(self) -> None:
        self._how = self._clock.synchronize()
        self._waits = self._clock.waits_made()
        self._began_ns = monotonic_ns()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        early_ns = monotonic_ns()
        alone = self._clock.waits_made() == self._waits
        how = self._clock.synchronize()
        now_ns = monotonic_ns()
        self._clock.add_named(
            self._name,
            now_ns - self._began_ns,
            (self._how, how),
            unwaited_ns=early_ns - self._began_ns if alone and how != "cpu" else None,
        )
