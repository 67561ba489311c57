from __future__ import annotations

from pathlib import Path

import pytest

from reprobundle.errors import BadCallError, PackRefusedError
from reprobundle.pack.contents import UNREAD_LIMIT_BYTES, choose, externals
from reprobundle.run.project import make_stage


@pytest.fixture
def stage(tmp_path):
    root = tmp_path / "project"
    (root / "data").mkdir(parents=True)
    (root / "train.py").write_text("x")
    (root / "config.json").write_text("{}")
    (root / "data/x.csv").write_text("1")
    (root / "data/unread.bin").write_bytes(bytes(UNREAD_LIMIT_BYTES + 1))
    names = ("train.py", "config.json", "data/x.csv", "data/unread.bin")
    return make_stage(root, names, tmp_path / "stage")


def test_data_that_was_read_is_an_input_and_code_is_not(stage):
    chosen = choose(stage, {"train.py", "data/x.csv", "config.json"}, set())
    assert chosen.members["data/x.csv"] == "inputs/data/x.csv"
    assert chosen.members["train.py"] == "project/train.py"
    assert chosen.members["config.json"] == "project/config.json"


def test_a_large_file_nobody_read_is_left_out_and_named(stage):
    chosen = choose(stage, {"train.py"}, set())
    assert chosen.left_out == ["data/unread.bin"]
    assert "data/unread.bin" not in chosen.members


def test_a_small_file_nobody_read_is_kept(stage):
    assert choose(stage, set(), set()).members["data/x.csv"] == "project/data/x.csv"


def test_a_declared_input_is_kept_whatever_its_size(stage):
    chosen = choose(stage, set(), {"data/unread.bin"})
    assert chosen.members["data/unread.bin"] == "inputs/data/unread.bin"
    assert chosen.left_out == []


def test_an_external_file_is_included_with_its_origin(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / "set.csv").write_text("abc")
    (read,) = externals([tmp_path / "set.csv"]).values()
    assert read.member == "external/1/set.csv"
    assert read.origin == "~/set.csv"
    assert read.size_bytes == 3


def test_a_large_external_file_is_pinned_by_its_digest_only(tmp_path, monkeypatch):
    monkeypatch.setattr("reprobundle.pack.contents.EXTERNAL_LIMIT_BYTES", 2)
    (tmp_path / "set.csv").write_text("abc")
    (read,) = externals([tmp_path / "set.csv"]).values()
    assert read.member == ""
    assert len(read.blake3) == 64


def test_an_input_that_vanished_is_refused_by_name(tmp_path):
    with pytest.raises(PackRefusedError, match=r"gone\.csv' was read but cannot"):
        externals([tmp_path / "gone.csv"])


@pytest.fixture
def outside(tmp_path):
    for name in ("hub/model.bin", "hub/config.json", "data/set.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def test_pinned_folders_keep_size_and_digest_only(outside):
    paths = [outside / "hub/model.bin", outside / "data/set.csv"]
    found = externals(paths, pinned=[outside / "hub"])
    pinned, included = (found[path] for path in paths)
    assert (pinned.member, pinned.size_bytes) == ("", 13)
    assert len(pinned.blake3) == 64
    assert included.member == "external/1/set.csv"


def test_all_can_be_pinned(outside):
    paths = [outside / "hub/model.bin", outside / "data/set.csv"]
    found = externals(paths, choice="pin")
    assert [read.member for read in found.values()] == ["", ""]


def test_reading_outside_can_be_refused_by_name(outside):
    paths = [outside / "hub/model.bin", outside / "hub/config.json"]
    with pytest.raises(PackRefusedError, match=r"config\.json' and 1 more files"):
        externals(paths, choice="refuse")
    assert externals([], choice="refuse") == {}


def test_a_pin_that_names_nothing_is_a_bad_call(outside):
    with pytest.raises(BadCallError, match="names no file that the run read"):
        externals([outside / "hub/model.bin"], pinned=[outside / "hup"])
