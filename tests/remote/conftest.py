"""A bundle on a server of this machine."""

from __future__ import annotations

import os

import pytest

from reprobundle.cli import run
from reprobundle.format.writer import Source
from reprobundle.remote import ranged_file
from tests.remote.server import serving
from tests.remote.sparse import write_sparse
from tests.verify.builder import Bench

if os.environ.get("REPROBUNDLE_REQUIRE_TOOLS") != "1":
    pytest.importorskip("aiohttp", reason="not installed: reprobundle[remote]")

TAIL_BYTES = 30_000
"""Read first in these tests, so that their small bundles are larger."""


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    """A bundle of 300 KB with one replay, which reproduced."""
    made = Bench(tmp_path_factory.mktemp("remote"))
    noise = os.urandom(250_000)
    made.extra = (Source("project/noise.bin", "project", noise),)
    made.pack().replay()
    return made.path


@pytest.fixture(scope="session")
def huge(bundle, tmp_path_factory):
    """A bundle of 20 GiB, two holes of 10 GiB in it."""
    path = tmp_path_factory.mktemp("huge") / "huge.rpb.zip"
    write_sparse(bundle, path)
    yield path
    path.unlink()


@pytest.fixture
def short_tail(monkeypatch):
    """Read less at once."""
    monkeypatch.setattr(ranged_file, "TAIL_BYTES", TAIL_BYTES)
    monkeypatch.setattr(ranged_file, "BEFORE_BYTES", 2048)
    monkeypatch.setattr(ranged_file, "LEAST_AHEAD_BYTES", 8192)


@pytest.fixture
def served(bundle, short_tail):
    """The bundle, served."""
    with serving(bundle) as server:
        yield server


@pytest.fixture
def call(capsys):
    """Call the command line; return status, stdout and stderr."""

    def called(*arguments: str) -> tuple[int, str, str]:
        status = run([*arguments])
        seen = capsys.readouterr()
        return status, seen.out, seen.err

    return called
