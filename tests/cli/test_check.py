"""Does a bundle fit where it is to go, by the command line."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.cli.conftest import reprobundle

LARGE = """\
import random
open("noise.bin", "wb").write(random.Random(1).randbytes(26_000_000))
open("result.csv", "w").write("x\\n1.0\\n")
print(open("readme.txt").read())
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A bundle that GitHub does not take, and how packing it ended."""
    folder = tmp_path_factory.mktemp("large") / "project"
    folder.mkdir()
    (folder / "make.py").write_text(LARGE)
    (folder / "readme.txt").write_text("read by the run\n")
    (folder / "unused.bin").write_bytes(b"never read" * 10)
    done = reprobundle(
        *("pack", "--for", "github-issue", "-q", "--passes", "measured,repeat"),
        *("--output-budget", "1GiB", "--offline", "-o", "../large.rpb.zip"),
        *("--", "python", "make.py"),
        cwd=folder,
    )
    return folder.parent / "large.rpb.zip", done


def test_pack_writes_the_bundle_and_says_that_it_does_not_fit(large):
    path, done = large
    assert path.stat().st_size > 26_000_000
    assert done.status == 10
    assert "refused for file-bytes" in done.out
    assert "--hash-only noise.bin" in done.out


def test_what_is_offered_is_enough(large):
    path, _ = large
    done = reprobundle("check", path, "--for", "github-issue", "--json")
    assert done.status == 10
    (place,) = json.loads(done.out)["destinations"]
    chosen = [one for one in place["offers"] if one["chosen"]]
    assert [one["option"] for one in chosen] == ["--hash-only noise.bin"]
    assert 26_000_000 <= chosen[0]["saves_bytes"] < 26_010_000
    assert place["enough"]


def test_the_option_that_is_offered_gives_a_bundle_that_fits(large, tmp_path):
    path, _ = large
    done = reprobundle("check", path, "--for", "github-issue", "--json")
    (place,) = json.loads(done.out)["destinations"]
    options = [shlex.split(one["option"]) for one in place["offers"] if one["chosen"]]
    project = path.parent / "project"
    done = reprobundle(
        *("pack", "--for", "github-issue", "-q", "--passes", "measured", "--offline"),
        *("-o", tmp_path / "small.rpb.zip"),
        *(part for option in options for part in option),
        *("--", "python", "make.py"),
        cwd=project,
    )
    assert done.status == 0, done.out + done.err
    assert "FITS" in done.out
    assert (tmp_path / "small.rpb.zip").stat().st_size < 25_000_000


def test_every_destination_is_asked_without_for(packed):
    done = reprobundle("check", packed, "-v")
    for name in ("github-issue", "pytorch-issue", "zenodo", "huggingface", "paper"):
        assert name in done.out
    text = " ".join(done.out.split())
    assert "not checked doi" in text
    assert "github/docs, attaching-files.md at 02ac71cd (read 2026-12-03)" in text


def test_replays_and_the_lock_are_offered_for_a_text(too_long):
    done = reprobundle("check", too_long, "--for", "pytorch-issue", "--json")
    (place,) = json.loads(done.out)["destinations"]
    options = [one["option"] for one in place["offers"]]
    assert any(one.startswith("reprobundle detach points.rpb.zip ") for one in options)
    assert all(one["saves_characters"] > 0 for one in place["offers"])


def test_an_unknown_destination_and_no_bundle_are_one_line(packed, tmp_path):
    assert reprobundle("check", packed, "--for", "moon").status == 20
    (tmp_path / "x.zip").write_bytes(b"no zip")
    done = reprobundle("check", tmp_path / "x.zip")
    assert done.status == 21
    assert done.err.count("\n") == 1
