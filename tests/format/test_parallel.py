"""Work in threads comes back in order, in bounded memory, with its errors."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from reprobundle.format import parallel
from reprobundle.format.parallel import core_count, in_order


@pytest.mark.parametrize("workers", [None, 1, 2, 7])
def test_results_come_in_the_order_of_the_steps(workers):
    found = list(in_order(range(50), lambda n: n * n, workers=workers))
    assert found == [(n, n * n) for n in range(50)]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_no_more_steps_are_begun_than_may_wait(workers):
    begun = []

    def steps():
        for number in range(40):
            begun.append(number)
            yield number

    for taken, _ in in_order(steps(), lambda n: n, workers=workers):
        assert len(begun) - taken <= workers + parallel.LOOKAHEAD


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_of_the_work_ends_it(workers):
    def work(number):
        if number == 5:
            raise KeyError(number)
        return number

    taken: list[int] = []
    with pytest.raises(KeyError):
        taken.extend(step for step, _ in in_order(range(99), work, workers=workers))
    assert taken == [0, 1, 2, 3, 4]


def test_no_thread_is_left_when_the_results_are_not_taken_to_the_end():
    before = threading.active_count()
    results: Any = in_order(range(99), lambda n: n, workers=3)
    next(results)
    results.close()
    assert threading.active_count() == before


def test_no_more_threads_are_made_than_this_process_has_cores(monkeypatch):
    seen = set()

    def work(_):
        seen.add(threading.get_ident())

    monkeypatch.setattr(parallel, "core_count", lambda: 2)
    list(in_order(range(200), work, workers=None))
    assert len(seen) <= 2
    assert 1 <= core_count() <= (os.cpu_count() or 1)


def test_no_more_is_begun_after_an_error_has_been_taken():
    begun = []

    def work(number):
        begun.append(number)
        if number == 0:
            raise KeyError(number)

    results: Any = in_order(range(99), work, workers=2)
    with pytest.raises(KeyError):
        next(results)
    assert len(begun) <= 2 + parallel.LOOKAHEAD
    assert list(results) == []


def test_the_standard_librarys_slower_pool_is_not_imported():
    script = (
        "import sys\n"
        "from reprobundle.format.parallel import in_order\n"
        "assert len(list(in_order(range(9), str, workers=3))) == 9\n"
        "print(sorted({'concurrent.futures', 'logging'} & sys.modules.keys()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
