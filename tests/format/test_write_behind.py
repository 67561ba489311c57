"""Writing in a thread of its own keeps the order, the limit and every error."""

from __future__ import annotations

import errno
import os
import threading

import pytest

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format import archive, write_behind
from reprobundle.format.archive import write_all
from reprobundle.format.write_behind import WriteBehind
from reprobundle.format.writer import Source, write_bundle

from .conftest import make_sources, pseudo_random


def test_what_was_given_is_in_the_file_after_draining(tmp_path):
    path = tmp_path / "x"
    with path.open("wb") as file, WriteBehind(file.fileno(), write_all) as behind:
        behind.write(b"world", 5)
        behind.write(b"hello", 0)
        behind.write(b"W", 5)
        behind.drain()
        assert path.read_bytes() == b"helloWorld"


def test_an_error_is_raised_and_nothing_is_written_after_it():
    written = []

    def put(descriptor, data, offset):
        if offset == 1:
            raise OSError(errno.ENOSPC, "no space left")
        written.append(offset)

    def give():
        with WriteBehind(-1, put) as behind:
            for offset in range(5):
                behind.write(b"x", offset)
            behind.drain()

    with pytest.raises(OSError, match="no space"):
        give()
    assert written == [0]


def test_a_caller_waits_while_too_much_is_queued(monkeypatch):
    monkeypatch.setattr(write_behind, "QUEUED_BYTES", 10)
    free = threading.Event()
    most = 0

    def put(descriptor, data, offset):
        free.wait(5)

    with WriteBehind(-1, put) as behind:
        done = threading.Event()

        def fill():
            for offset in range(4):
                behind.write(b"12345678", offset)
            done.set()

        filling = threading.Thread(target=fill)
        filling.start()
        assert not done.wait(0.05)
        most = behind._queued_bytes
        free.set()
        filling.join(5)
        assert done.is_set()
    assert most <= 10 + 8


def test_a_full_disk_while_packing_is_told_and_leaves_nothing(tmp_path, monkeypatch):
    calls = []

    def full(descriptor, data, offset):
        calls.append(offset)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_all(descriptor, data, offset)

    monkeypatch.setattr("reprobundle.format.writer.write_all", full)
    big = Source("inputs/big.bin", "input", pseudo_random(40 << 20))
    with pytest.raises(EnvironmentUnusableError, match="no space left"):
        write_bundle(tmp_path / "x.rpb.zip", [*make_sources(), big])
    assert not list(tmp_path.iterdir())
    assert len(calls) == 3


def test_without_a_thread_nothing_is_written_later_than_asked_for(tmp_path):
    # Attaching depends on it: the journal has to be there before the first byte is.
    with (tmp_path / "x").open("wb") as file:
        writer = archive.ArchiveWriter(file.fileno())
        writer.begin("a", 1 << 20, aligned=False)
        writer.write(bytes(1 << 20))
        assert os.fstat(file.fileno()).st_size >= 1 << 20
