"""Two parts by the command line: split, verify, paste, join."""

from __future__ import annotations

import json
import random

import pytest

from tests.cli.conftest import make_project, reprobundle
from tests.cli.test_inline import piped


@pytest.fixture(scope="module")
def parts(too_long, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    done = reprobundle("split", too_long, "--for", "pytorch-issue", cwd=folder)
    assert done.status == 0, done.err
    return folder / "points.part1.rpb.zip", folder / "points.part2.rpb.zip"


def test_the_first_part_fits_as_text(parts):
    done = reprobundle("check", parts[0], "--for", "pytorch-issue")
    assert done.status == 0, done.out
    assert len(reprobundle("export", "inline", parts[0]).out) <= 65_536


def test_a_part_verifies_as_incomplete_and_names_the_other(parts):
    done = reprobundle("verify", parts[0], "--json")
    report = json.loads(done.out)
    assert (done.status, report["verdict"]) == (11, "INCOMPLETE")
    assert any("points.part2.rpb.zip" in reason for reason in report["reasons"])
    assert reprobundle("verify", "--integrity", parts[1]).status == 11


def test_inspect_and_issue_say_that_it_is_a_part(parts):
    assert "1 of 2: 1 member in points.part2.rpb.zip" in " ".join(
        reprobundle("inspect", parts[0]).out.split()
    )
    done = reprobundle("issue", parts[0], "--inline")
    assert done.status == 0, done.err
    assert "INCOMPLETE (exit 11)" in done.out
    assert "join - points.part2.rpb.zip -o points.rpb.zip" in done.out
    assert len(done.out.encode()) <= 65_536


def test_a_part_is_replayed_and_the_replay_comes_along(parts, too_long, tmp_path):
    first = tmp_path / "first.rpb.zip"
    first.write_bytes(parts[0].read_bytes())
    done = reprobundle("replay", first, "--yes", "-q")
    assert done.status == 11
    assert "all-parts" in done.out
    whole = tmp_path / "whole.rpb.zip"
    assert reprobundle("join", parts[1], first, "-o", whole).status == 0
    assert reprobundle("verify", whole).status == 0
    assert whole.stat().st_size > too_long.stat().st_size


def test_what_a_replay_needs_and_lies_elsewhere_is_told_before_it_starts(
    parts, tmp_path
):
    project = make_project(tmp_path / "project")
    (project / "data/noise.bin").write_bytes(random.Random(1).randbytes(60_000))
    options = ("--offline", "--passes", "measured", "--input", "data/noise.bin", "-q")
    call = ("pack", "-o", "a.rpb.zip", *options, "--", "python", "train.py")
    assert reprobundle(*call, cwd=project).status == 0
    done = reprobundle("split", "a.rpb.zip", "--for", "pytorch-issue", cwd=project)
    assert done.status == 0, done.err
    told = reprobundle("check", project / "a.part1.rpb.zip", "--for", "pytorch-issue")
    assert "in the other part: inputs/data/noise.bin" in " ".join(told.out.split())
    done = reprobundle("replay", project / "a.part1.rpb.zip", "--yes", "-q")
    assert done.status == 20
    assert "inputs/data/noise.bin: this is one part of a bundle" in done.err
    done = reprobundle("replay", parts[1], "--yes", "-q")
    assert done.status == 20
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "call",
    [
        ("split", "--most", "20KB"),
        ("extract", "--into", "x"),
        ("cat", "runs/1/outputs/out/noise.bin"),
        ("export", "bagit", "-o", "bag"),
        ("export", "ro-crate", "-o", "crate"),
    ],
)
def test_an_intact_part_never_ends_as_an_altered_bundle(parts, call, tmp_path):
    """21 is TAMPERED or UNREADABLE: what is missing here is neither."""
    verb = call[:2] if call[0] == "export" else call[:1]
    done = reprobundle(*verb, parts[0], *call[len(verb) :], cwd=tmp_path)
    assert done.status == 20, done.err
    assert "one part of a bundle" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_second_part_is_not_exported_and_is_not_altered(parts, tmp_path):
    done = reprobundle("export", "bagit", parts[1], "-o", "bag", cwd=tmp_path)
    assert done.status == 20, done.err
    assert "is INCOMPLETE" in done.err
    assert list(tmp_path.iterdir()) == []


def test_joined_it_is_the_same_file(parts, too_long, tmp_path):
    whole = tmp_path / "whole.rpb.zip"
    text = reprobundle("export", "inline", parts[0]).out
    done = piped(text.encode(), "join", "-", str(parts[1]), "-o", str(whole))
    assert done.returncode == 0, done.stderr
    assert whole.read_bytes() == too_long.read_bytes()
    again = reprobundle("join", *parts, "-o", whole)
    assert again.status == 20
    assert "exists already" in again.err


def test_a_pasted_bundle_becomes_a_file_again(replayed, tmp_path):
    text = reprobundle("export", "inline", replayed).out
    target = tmp_path / "points.rpb.zip"
    done = piped(text.encode(), "join", "-", "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == replayed.read_bytes()


def test_one_part_alone_is_not_joined(parts, tmp_path):
    done = reprobundle("join", parts[0], "-o", tmp_path / "w.rpb.zip")
    assert done.status == 20
    assert "points.part2.rpb.zip, blake3" in done.err
    assert not (tmp_path / "w.rpb.zip").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--for or --most"),
        (("--for", "zenodo"), "the bundle fits as it is"),
        (("--most", "1kB"), "what has to stay together"),
    ],
)
def test_what_cannot_be_split_is_told_in_one_line(replayed, tmp_path, options, words):
    done = reprobundle("split", replayed, *options, cwd=tmp_path)
    assert done.status == 20
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


def test_check_offers_the_split(too_long):
    done = reprobundle("check", too_long, "--for", "pytorch-issue")
    assert "reprobundle split points.rpb.zip --for pytorch-issue" in done.out
