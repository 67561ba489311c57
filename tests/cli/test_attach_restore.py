"""A bundle whose change was cut off, on the command line."""

from __future__ import annotations

import shutil

import pytest

from reprobundle.cli.group import run
from reprobundle.format.attach import attach_replay
from reprobundle.format.journal import journal_path
from reprobundle.format.reader import open_bundle
from reprobundle.format.writer import Source, write_bundle
from tests.format.replayed_writes import killed_states, recorded


@pytest.fixture
def cut_off(tmp_path):
    """A bundle whose first attach was killed behind its first written byte."""
    before = tmp_path / "before"
    before.mkdir()
    write_bundle(before / "b.rpb.zip", [Source("policy.json", "policy", b"{}\n")])
    shutil.copytree(before, tmp_path / "after")
    after = tmp_path / "after" / "b.rpb.zip"
    steps = recorded(after.parent, lambda: attach_replay(after, b"{}", []))
    for state in killed_states(before, steps):
        if state.files["b.rpb.zip"] != (before / "b.rpb.zip").read_bytes():
            return state.put_into(tmp_path / "cut") / "b.rpb.zip", before / "b.rpb.zip"
    raise AssertionError


def test_it_is_restored_byte_for_byte(cut_off, capsys):
    path, before = cut_off
    assert path.read_bytes() != before.read_bytes()
    assert run(["attach", str(path), "--restore"]) == 0
    assert "again as before the change" in capsys.readouterr().out
    assert path.read_bytes() == before.read_bytes()
    assert not journal_path(path).exists()
    assert run(["attach", str(path), "--restore"]) == 0
    assert "no change" in capsys.readouterr().out


def test_verify_reads_it_and_says_so(cut_off, capsys):
    path, _ = cut_off
    state = path.read_bytes()
    run(["verify", "--integrity", "--json", str(path)])
    found = capsys.readouterr().out
    assert "as before a change that was cut off (attach --restore)" in found
    assert path.read_bytes() == state
    with open_bundle(path) as bundle:
        assert bundle.interrupted


def test_without_a_file_and_without_restore_it_is_a_bad_call(cut_off, capsys):
    assert run(["attach", str(cut_off[0])]) == 20
    assert "name the file to attach" in capsys.readouterr().err
