"""Files outside the project: pinned, given at replay, refused."""

from __future__ import annotations

import zipfile

import pytest

from tests.cli.conftest import reprobundle

SCRIPT = """\
import pathlib, sys
pathlib.Path("out.txt").write_text(open(sys.argv[1]).read().upper())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("externals")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(SCRIPT)
    (folder / "hub").mkdir()
    (folder / "hub/words.txt").write_text("alpha\n")
    return folder


def pack(place, *options):
    target = place / "x.rpb.zip"
    return target, reprobundle(
        "pack",
        "-o",
        target,
        "-q",
        *options,
        "--",
        "python",
        "train.py",
        place / "hub/words.txt",
        cwd=place / "project",
    )


@pytest.fixture(scope="module")
def pinned(place):
    """Return a bundle that pins its input, which is not there any more."""
    target, done = pack(place, "--pin", place / "hub")
    assert done.status == 0, done.err
    (place / "hub/words.txt").rename(place / "mine.txt")
    return target.rename(place / "pinned.rpb.zip")


def words_of(done):
    return " ".join(done.out.split())


def test_a_pinned_file_is_not_in_the_bundle(pinned):
    names = zipfile.ZipFile(pinned).namelist()
    assert "project/train.py" in names
    assert not [name for name in names if name.startswith("external/")]


def test_without_the_file_it_is_not_run(pinned, place):
    done = reprobundle("replay", pinned, "--yes", "-q", "--record", place / "a.rpr.zip")
    assert done.status == 11, done.out + done.err
    assert "NOT RUN HERE" in done.out
    assert f"--data {place / 'hub/words.txt'}=FILE" in words_of(done)


def test_with_another_file_it_is_not_run(pinned, place):
    (place / "other.txt").write_text("beta\n")
    given = f"{place / 'hub/words.txt'}={place / 'other.txt'}"
    done = reprobundle(
        "replay",
        pinned,
        "--yes",
        "-q",
        "--record",
        place / "b.rpr.zip",
        "--data",
        given,
    )
    assert done.status == 11, done.out + done.err
    assert "other.txt is not the" in words_of(done)


def test_with_the_pinned_content_it_is_reproduced(pinned, place):
    given = f"{place / 'hub/words.txt'}={place / 'mine.txt'}"
    done = reprobundle(
        "replay",
        pinned,
        "--yes",
        "-q",
        "--record",
        place / "c.rpr.zip",
        "--data",
        given,
    )
    assert "bit-identical" in done.out, done.out + done.err
    assert "NOT RUN HERE" not in done.out


def test_reading_outside_can_be_refused(place):
    (place / "hub/words.txt").write_text("alpha\n")
    target, done = pack(place, "--external", "refuse")
    (place / "hub/words.txt").unlink()
    assert done.status == 20
    assert not target.exists()
    assert f"the run read '{place / 'hub/words.txt'}' outside the project" in done.err
