"""Files of the project that nothing was seen to read are named, without blame."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import make_project, reprobundle

NOTES = tuple(f"notes/{number}.md" for number in range(4))


@pytest.fixture(scope="module")
def partly_read(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("unread") / "project")
    (project / "notes").mkdir()
    for name in NOTES:
        (project / name).write_text("nothing\n")
    (project / "run.sh").write_text("python train.py\n")
    (project / "data/large.bin").write_bytes(bytes(2 << 20))
    target = project.parent / "x.rpb.zip"
    options = ("-o", target, "-q", "--passes", "measured")
    done = reprobundle("pack", *options, "--", "bash", "run.sh", cwd=project)
    assert done.status == 0, done.err
    return target, done


def words_of(done):
    return " ".join(done.out.split())


def test_pack_counts_them_and_names_some(partly_read):
    told = words_of(partly_read[1])
    assert "unread 4 project files are in the bundle that no Python process" in told
    assert "notes/0.md, notes/1.md, notes/2.md and 1 more" in told
    assert "left out 1 large project file, 2.00 MiB, that nothing was seen" in told
    assert "data/large.bin (2.00 MiB)" in told


def test_what_was_read_or_stands_in_the_command_is_not_among_them(partly_read):
    view = json.loads(reprobundle("inspect", partly_read[0], "--json").out)
    assert view["unread"] == list(NOTES)


def test_inspect_lists_all_on_request(partly_read):
    short = words_of(reprobundle("inspect", partly_read[0]))
    assert "and 1 more (inspect --verbose lists all)" in short
    whole = words_of(reprobundle("inspect", partly_read[0], "--verbose"))
    assert all(name in whole for name in NOTES)
    assert "data/large.bin (2.00 MiB)" in whole


def test_nobody_is_warned_about_them(partly_read):
    done = reprobundle("verify", partly_read[0], "--json")
    assert "notes/" not in done.out
    assert "large.bin" not in done.out


def test_a_bundle_of_which_all_was_read_says_nothing(packed):
    assert "no Python process was seen" not in reprobundle("inspect", packed).out
