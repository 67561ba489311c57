"""What is fetched of a remote file: each byte once, and what lies around it."""

from __future__ import annotations

import random
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprobundle.errors import (
    BadCallError,
    ChangedElsewhereError,
    NoSpaceError,
    RemoteFileError,
)
from reprobundle.format.reader import check_digests, open_bundle, open_listing
from reprobundle.remote import ranged_file
from reprobundle.remote.address import is_address, parse_address
from reprobundle.remote.objects import ObjectFetcher
from reprobundle.remote.ranged_file import RangedFile, Stretches
from reprobundle.remote.remote_file import RemoteFile

SIZE = 1 << 20
DATA = random.Random(1).randbytes(SIZE)


class Memory:
    """A fetcher of `DATA` that notes what is asked."""

    watched = True

    def __init__(self):
        self.requests = 0
        self.asked: list[tuple[int, int]] = []

    def begin(self, tail_bytes, sink):
        self.fetch(SIZE - tail_bytes, SIZE, sink)
        return SIZE

    def fetch(self, start, end, sink):
        self.requests += 1
        self.asked.append((start, end))
        sink(start, DATA[start:end])

    def fetch_whole(self, most_bytes, sink):
        raise NotImplementedError

    def settle(self):
        """Nothing to settle."""

    def close(self):
        """Nothing to close."""


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(ranged_file, "TAIL_BYTES", 1000)
    monkeypatch.setattr(ranged_file, "BEFORE_BYTES", 100)
    monkeypatch.setattr(ranged_file, "LEAST_AHEAD_BYTES", 300)
    monkeypatch.setattr(ranged_file, "MOST_AHEAD_BYTES", 1200)


def test_what_is_read_is_what_is_there_and_no_byte_comes_twice(small_steps):
    memory = Memory()
    file = RangedFile(memory)
    rng = random.Random(2)
    for _ in range(300):
        offset, count = rng.randrange(SIZE + 10), rng.randrange(9000)
        assert file.read_at(offset, count) == DATA[offset : offset + count]
    fetched = [place for start, end in memory.asked for place in range(start, end)]
    assert len(fetched) == len(set(fetched)) == file.received_bytes
    file.fetch_all()
    assert file.at_hand
    assert file.received_bytes == SIZE
    assert file.read_at(0, SIZE) == DATA
    file.forget()


def test_reading_on_asks_for_more_each_time(small_steps):
    memory = Memory()
    file = RangedFile(memory)
    for offset in range(5000, 9000, 10):
        file.read_at(offset, 10)
    file.forget()
    lengths = [end - start for start, end in memory.asked[1:]]
    assert lengths[:4] == [400, 600, 1200, 1200]


def test_a_disk_without_room_is_told_before_anything_is_fetched(
    small_steps, monkeypatch
):
    class Usage:
        free = 5000

    memory = Memory()
    file = RangedFile(memory)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage)
    with pytest.raises(NoSpaceError, match="set TMPDIR to a folder with more room"):
        file.fetch_all()
    file.forget()
    assert memory.requests == 1


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40))))
def test_stretches_are_what_a_set_of_bytes_is(spans):
    stretches = Stretches()
    held: set[int] = set()
    for start, end in spans:
        gaps = stretches.missing(start, end)
        missing = {place for low, high in gaps for place in range(low, high)}
        assert missing == set(range(start, end)) - held
        assert all(low < high for low, high in gaps)
        stretches.add(start, end)
        held |= set(range(start, end))


# --- object stores


@pytest.fixture
def stored(bundle, short_tail):
    """The bundle as an object of fsspec's file system in memory."""
    import fsspec

    system = fsspec.filesystem("memory", skip_instance_cache=True)
    system.pipe_file("/bucket/digits.rpb.zip", bundle.read_bytes())
    yield system
    system.store.clear()


def remote(system, path="/bucket/digits.rpb.zip"):
    address = parse_address("s3://bucket/digits.rpb.zip")
    fetcher = ObjectFetcher(system, path, address.shown)
    return RemoteFile(address, fetcher=fetcher)


def test_an_object_is_read_in_parts_and_as_a_whole(stored, bundle):
    with remote(stored) as file:
        with open_listing(file) as listed:
            assert listed.read("project/train.py").startswith(b"import torch")
            assert file.received_bytes < 50_000
        with open_bundle(file) as opened:
            assert file.open().at_hand
            assert check_digests(opened) == []
        assert file.received_bytes == file.size_bytes == bundle.stat().st_size
        assert file.watched


def test_an_object_replaced_meanwhile_is_noticed_before_anything_is_said(
    stored, bundle
):
    with remote(stored) as file:
        opened = open_listing(file)
        stored.pipe_file("/bucket/digits.rpb.zip", bundle.read_bytes())
        opened.read("project/train.py")
        with pytest.raises(ChangedElsewhereError, match="nothing was judged"):
            opened.close()


def test_an_object_that_is_not_there_is_told(stored):
    with (
        remote(stored, "/bucket/none") as file,
        pytest.raises(
            RemoteFileError, match=r"digits\.rpb\.zip: there is no such object"
        ),
    ):
        open_listing(file)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError("AKIA"), "the store does not let you read it; set the"),
        (
            RuntimeError("Unable to\nlocate credentials"),
            "RuntimeError: Unable to locate",
        ),
    ],
)
def test_what_a_store_says_is_one_line(error, told, stored, monkeypatch):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(stored, "info", fail)
    with remote(stored) as file, pytest.raises(RemoteFileError) as caught:
        open_listing(file)
    assert told in str(caught.value)
    assert "AKIA" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_fewer_bytes_than_asked_for_are_an_error(stored, monkeypatch):
    monkeypatch.setattr(stored, "cat_file", lambda *_, **__: b"short")
    with remote(stored) as file, pytest.raises(RemoteFileError, match="got 5"):
        open_listing(file)


# --- addresses


@pytest.mark.parametrize(
    ("url", "shown", "name"),
    [
        ("https://h/a/b.rpb.zip", "https://h/a/b.rpb.zip", "b.rpb.zip"),
        ("https://u:p@h:81/b.zip?k=v#x", "https://h:81/b.zip?…", "b.zip"),
        ("HTTPS://H/a%20b.zip", "https://h/a%20b.zip", "a b.zip"),
        ("https://h/x/..%2F..%2Fetc%2Fb.zip", None, "b.zip"),
        ("https://h/x/%2E%2E", None, "h"),
        ("https://h/", "https://h/", "h"),
        ("https://h/a\x1b[2Jb", "https://h/a?[2Jb", "a[2Jb"),
        ("s3://bucket/k/b.zip", "s3://bucket/k/b.zip", "b.zip"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url, shown, name):
    address = parse_address(url)
    assert shown in {None, address.shown, str(address)}
    assert address.name == name
    assert "p@" not in repr(address)


@pytest.mark.parametrize("url", ["https://", "https://[::1", "s3:///x", "https://h:x/"])
def test_an_address_without_a_host_is_refused_without_repeating_it(url):
    with pytest.raises(BadCallError) as caught:
        parse_address(url)
    assert "::1" not in str(caught.value)


def test_a_path_is_no_address():
    assert not any(map(is_address, ("x.zip", "/a/b", "C:/x", "./https://h", "a:b")))
    assert is_address("ftp://h")
