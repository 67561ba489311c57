"""Run one function over many steps in threads, and give the results in order.

Hashing, compressing and reading all release the interpreter's lock, so threads are
enough, and content never has to be copied between processes.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar, cast

Step = TypeVar("Step")
Result = TypeVar("Result")

LOOKAHEAD = 2
MOST_WORKERS = 32


def core_count() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(
    steps: Iterable[Step],
    work: Callable[[Step], Result],
    *,
    workers: int | None,
) -> Iterator[tuple[Step, Result]]:
    """Yield each step with ``work(step)``, in the order of `steps`.

    At most `workers` + 2 steps are under way or waiting to be taken, so memory is
    bounded by that many results. `steps` is advanced in the calling thread.

    Args:
        steps: What to do, in order.
        work: Called in a thread for each of them.
        workers: Number of threads; None for one per core, 1 for none besides this.
    """
    count = min(workers or core_count(), MOST_WORKERS)
    if count <= 1:
        for step in steps:
            yield step, work(step)
        return
    team = _Team(work, count)
    waiting: deque[_Task[Step, Result]] = deque()
    try:
        for step in steps:
            waiting.append(team.give(step))
            if len(waiting) >= count + LOOKAHEAD:
                yield waiting.popleft().take()
        while waiting:
            yield waiting.popleft().take()
    finally:
        team.dismiss()


class _Task(Generic[Step, Result]):
    """One step, and in time its result or its error."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._done = threading.Lock()
        self._done.acquire()
        self._result: Result | None = None
        self._error: BaseException | None = None

    def run(self, work: Callable[[Step], Result]) -> None:
        """Do the work; called in a thread of the team."""
        try:
            self._result = work(self._step)
        except BaseException as error:  # noqa: BLE001 - raised again by `take`
            self._error = error
        finally:
            self._done.release()

    def take(self) -> tuple[Step, Result]:
        """Wait for the result and return it, or raise what the work raised."""
        self._done.acquire()
        if self._error is not None:
            raise self._error
        return self._step, cast("Result", self._result)


class _Team(Generic[Step, Result]):
    """A few threads that do tasks in the order in which they are given.

    The standard library's pool would do as well, but its import takes longer than to
    check a bundle of 50 MB.
    """

    def __init__(self, work: Callable[[Step], Result], count: int) -> None:
        self._work = work
        self._tasks: SimpleQueue[_Task[Step, Result] | None] = SimpleQueue()
        self._dismissed = False
        self._threads = [threading.Thread(target=self._serve) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def give(self, step: Step) -> _Task[Step, Result]:
        """Have `step` done when a thread is free."""
        task: _Task[Step, Result] = _Task(step)
        self._tasks.put(task)
        return task

    def dismiss(self) -> None:
        """Drop what is not begun, and wait for what is."""
        self._dismissed = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            if not self._dismissed:
                task.run(self._work)
            del task  # its result may be large, and the next one may be far away
