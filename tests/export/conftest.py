"""Bundles of every kind of verdict, verified once and not to be changed."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

from reprobundle.export.verified import verified
from tests.sign.conftest import keys, listed
from tests.verify.builder import FAILED, FAR, Bench, Run, outputs

__all__ = ["keys", "listed"]


def other_reader(name):
    """Import a package that reads what we write; a missing one fails where it must."""
    if os.environ.get("REPROBUNDLE_REQUIRE_TOOLS"):
        return __import__(name)
    return pytest.importorskip(name)


def _reproduced(bench):
    bench.pack().replay()


def _not_reproduced(bench):
    bench.pack().replay()
    bench.replay(Run(outputs=outputs(**{"out/logits.npy": FAR})))


def _not_replayed(bench):
    bench.pack()


def _incomplete(bench):
    # It ended with status 0 and nobody watched it.
    bench.pack().replay(processes=())


def _failing(bench):
    bench.reference = bench.repeat = Run(changes={"outcome": FAILED})
    bench.pack().replay(outcome=FAILED)


KINDS = {
    "reproduced": _reproduced,
    "not reproduced": _not_reproduced,
    "not replayed": _not_replayed,
    "incomplete": _incomplete,
    "failing": _failing,
}


@pytest.fixture(scope="session")
def benches(tmp_path_factory):
    """Return a bundle of each kind of verdict, not to be changed."""
    made = {}
    for kind, make in KINDS.items():
        made[kind] = Bench(tmp_path_factory.mktemp("exported"))
        make(made[kind])
    return made


@pytest.fixture(scope="session")
def opened(benches):
    """Return what verifies one of them and gives it open."""

    @contextmanager
    def give(kind, **options):
        with verified(benches[kind].path, **options) as what:
            yield what

    return give
