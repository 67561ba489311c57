"""Run one function over many steps in threads, and give the results in order.

Hashing, compressing and reading all release the interpreter's lock, so threads are
enough, and content never has to be copied between processes.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

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
    from concurrent.futures import Future, ThreadPoolExecutor

    pool = ThreadPoolExecutor(count, thread_name_prefix="reprobundle")
    waiting: deque[tuple[Step, Future[Result]]] = deque()
    try:
        for step in steps:
            waiting.append((step, pool.submit(work, step)))
            if len(waiting) >= count + LOOKAHEAD:
                first, future = waiting.popleft()
                yield first, future.result()
                del first, future
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
            del first, future
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
