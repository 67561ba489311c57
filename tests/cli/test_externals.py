"""Files outside the project: pinned, given at replay, refused."""

from __future__ import annotations

import json
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
    assert "other.txt' is another file: its blake3 is" in words_of(done)


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


def replay(bundle, place, name, *options):
    target = place / name
    return reprobundle("replay", bundle, "--yes", "-q", "--record", target, *options)


def test_in_a_folder_the_pinned_file_is_found_by_its_digest(pinned, place):
    (place / "shelf/deep").mkdir(parents=True)
    (place / "shelf/words.txt").write_text("gamma\n")
    (place / "shelf/deep/renamed").write_text("alpha\n")
    done = replay(pinned, place, "d.rpr.zip", "--data", place / "shelf")
    assert "bit-identical" in done.out, done.out + done.err
    assert "NOT RUN HERE" not in done.out
    assert "reduced-input" not in done.out


def test_a_file_of_the_name_and_another_digest_is_told_with_both(pinned, place):
    (place / "wrong").mkdir()
    (place / "wrong/words.txt").write_text("gamma\n")
    done = replay(pinned, place, "e.rpr.zip", "--data", place / "wrong")
    assert done.status == 11
    told = words_of(done)
    assert "wrong/words.txt' is another file: its blake3 is" in told
    assert "the reference read" in told


def test_a_folder_without_the_file_says_so(pinned, place):
    (place / "empty").mkdir(exist_ok=True)
    done = replay(pinned, place, "f.rpr.zip", "--data", place / "empty")
    assert done.status == 11
    assert "no file below" in words_of(done)


def test_a_folder_may_stand_for_the_folder_that_it_had(pinned, place):
    (place / "hers").mkdir()
    (place / "hers/words.txt").write_text("alpha\n")
    given = f"{place / 'hub'}={place / 'hers'}"
    done = replay(pinned, place, "g.rpr.zip", "--data", given)
    assert "bit-identical" in done.out, done.out + done.err


def test_reading_outside_can_be_refused(place):
    (place / "hub/words.txt").write_text("alpha\n")
    target, done = pack(place, "--external", "refuse")
    (place / "hub/words.txt").unlink()
    assert done.status == 20
    assert not target.exists()
    assert f"the run read '{place / 'hub/words.txt'}' outside the project" in done.err


CACHED = """\
import json, pathlib
hub = pathlib.Path.home() / ".cache/huggingface/hub/models--lab--tiny/snapshots"
settings = json.loads((hub / ("a" * 40) / "config.json").read_text())
pathlib.Path("out.json").write_text(json.dumps({"width": settings["width"]}))
"""


def cached_home(folder, *, links=True):
    """Make a hub's cache below a new home, with links as its library makes them."""
    model = folder / ".cache/huggingface/hub/models--lab--tiny"
    snapshot = model / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    if not links:
        (snapshot / "config.json").write_text('{"width": 3}')
        return folder
    (model / "blobs").mkdir()
    (model / "blobs/0123abcd").write_text('{"width": 3}')
    (snapshot / "config.json").symlink_to("../../blobs/0123abcd")
    return folder


def test_a_cached_file_keeps_its_name_and_revision_beside_the_blob(place):
    home = cached_home(place / "home")
    project = place / "cached"
    project.mkdir()
    (project / "use.py").write_text(CACHED)
    target = place / "cached.rpb.zip"
    command = ("-o", target, "-q", "--external", "pin", "--", "python", "use.py")
    done = reprobundle("pack", *command, cwd=project, env={"HOME": str(home)})
    assert done.status == 0, done.err
    with zipfile.ZipFile(target) as archive:
        record = json.loads(archive.read("runs/1/record.json"))
    (read,) = (one for one in record["reads"] if one["path"].startswith("external:"))
    top = "~/.cache/huggingface/hub/models--lab--tiny"
    assert read["path"] == "external:1/config.json"
    assert read["origin"] == f"{top}/blobs/0123abcd"
    assert read["opened_as"] == f"{top}/snapshots/{'a' * 40}/config.json"
    told = " ".join(reprobundle("inspect", target).out.split())
    assert f"{top}/snapshots" in told.replace(" ", "")
    # A cache without links holds the same file under the same name.
    flat = cached_home(place / "flat", links=False)
    options = ("--yes", "-q", "--record", place / "h.rpr.zip")
    done = reprobundle("replay", target, *options, env={"HOME": str(flat)})
    assert "bit-identical" in done.out, done.out + done.err
    assert "reduced-input" not in done.out
    empty = place / "nobody"
    empty.mkdir()
    (place / "empty").mkdir(exist_ok=True)
    options = ("--yes", "-q", "--record", place / "i.rpr.zip")
    done = reprobundle("replay", target, *options, env={"HOME": str(empty)})
    assert "config.json is not on this machine" in words_of(done)
    # A folder is of no use for what the program looks for by itself.
    options = ("--yes", "-q", "--data", place / "empty")
    record = ("--record", place / "j.rpr.zip")
    done = reprobundle("replay", target, *options, *record, env={"HOME": str(empty)})
    assert "put it there, for the program looks for it by itself" in words_of(done)
