"""Extraction gives exactly the sealed files in a new folder, or nothing at all."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

from reprobundle.errors import (
    BadCallError,
    DigestError,
    EnvironmentUnusableError,
    MissingMemberError,
    StructureError,
)
from reprobundle.format.digests import digest_file
from reprobundle.format.reader import extract, open_bundle

from .conftest import CONTENTS


def run(path, into, **options):
    with open_bundle(path) as bundle:
        extract(bundle, into, **options)


def test_all_members_and_the_manifest_are_written(sealed, tmp_path):
    into = tmp_path / "x"
    run(sealed[0], into)
    found = {
        path.relative_to(into).as_posix(): path.read_bytes()
        for path in into.rglob("*")
        if path.is_file()
    }
    for name, content in CONTENTS.items():
        assert found.pop(name) == content
    assert digest_file(into / "manifest.json") == sealed[1].id
    assert set(found) == {"README.txt", "B3SUMS", "manifest.json"}


def test_only_the_paths_asked_for_are_written(sealed, tmp_path):
    run(sealed[0], tmp_path / "x", paths=["policy.json", "inputs/metrics.csv"])
    found = [p.name for p in (tmp_path / "x").rglob("*") if p.is_file()]
    assert sorted(found) == ["metrics.csv", "policy.json"]


def test_the_execute_bit_follows_the_manifest(sealed, tmp_path):
    before = os.umask(0o022)
    try:
        run(sealed[0], tmp_path / "x")
    finally:
        os.umask(before)

    def mode(name):
        return stat.S_IMODE((tmp_path / "x" / name).stat().st_mode)

    assert (mode("project/train.py"), mode("policy.json")) == (0o755, 0o644)
    assert (mode("."), mode("project")) == (0o755, 0o755)


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_refuses_to_write_over_something(sealed, tmp_path, kind):
    into = tmp_path / "x"
    if kind == "folder":
        into.mkdir()
    elif kind == "file":
        into.touch()
    else:
        into.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadCallError, match="exists already"):
        run(sealed[0], into)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x"]


@pytest.mark.parametrize("member", ["policy.json", "inputs/metrics.csv"])
def test_damaged_content_leaves_nothing_behind(bundle_path, tmp_path, member):
    with open_bundle(bundle_path) as bundle:
        entry = bundle.content(member).entry
    data = bytearray(bundle_path.read_bytes())
    data[entry.data_offset + entry.size_bytes // 2] ^= 1
    bundle_path.write_bytes(data)
    with pytest.raises((DigestError, StructureError)):
        run(bundle_path, tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == [bundle_path.name]


def test_an_unknown_path_leaves_nothing_behind(sealed, tmp_path):
    with pytest.raises(MissingMemberError, match="no member 'gone'"):
        run(sealed[0], tmp_path / "x", paths=["policy.json", "gone"])
    assert list(tmp_path.iterdir()) == []


def test_the_room_on_the_disk_is_asked_for_first(sealed, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(EnvironmentUnusableError, match="1,000 are free"):
        run(sealed[0], tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_says_when_the_folder_above_does_not_exist(sealed, tmp_path):
    with pytest.raises(EnvironmentUnusableError, match="cannot extract"):
        run(sealed[0], tmp_path / "no" / "x")


def test_a_link_put_in_the_way_is_not_followed(sealed, tmp_path, monkeypatch):
    # Somebody who can write there races the extraction: the file must not be
    # written through the link.
    victim = tmp_path / "victim"
    victim.write_text("mine")
    real = os.open
    raced = threading.Event()

    def race(path, flags, mode=0o777, **options):
        if str(path).endswith("policy.json") and not raced.is_set():
            raced.set()
            Path(path).symlink_to(victim)
        return real(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", race)
    with pytest.raises(EnvironmentUnusableError):
        run(sealed[0], tmp_path / "x", paths=["policy.json"])
    assert victim.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["victim"]


def test_progress_adds_up_to_what_was_written(sealed, tmp_path):
    seen: list[int] = []
    run(sealed[0], tmp_path / "x", progress=seen.append)
    files = [p for p in (tmp_path / "x").rglob("*") if p.is_file()]
    assert sum(seen) == sum(p.stat().st_size for p in files)
