"""Data that stay with their holder: excluded, kept by digest, replaced by a sample."""

from __future__ import annotations

import json
import shutil
import zipfile

import pytest

from tests.cli.conftest import make_project, reprobundle

DATA = "data/points.csv"


def pack(project, *options):
    target = project.parent / "x.rpb.zip"
    done = reprobundle(
        "pack",
        "-o",
        target,
        "--seed",
        "7",
        "-q",
        *options,
        "--",
        "python",
        "train.py",
        cwd=project,
    )
    return target, done


@pytest.fixture(scope="module")
def with_stand_in(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("stand-in") / "project")
    (project.parent / "sample.csv").write_text("x\n0.25\n")
    target, done = pack(project, "--stand-in", f"{DATA}=../sample.csv")
    assert done.status == 0, done.err
    return target, project / DATA, done


@pytest.fixture
def sampled(with_stand_in, tmp_path):
    target, holder, _ = with_stand_in
    return shutil.copy(target, tmp_path / "x.rpb.zip"), holder


def last_line(done):
    return done.out.strip().splitlines()[-1]


def record(bundle, number):
    with zipfile.ZipFile(bundle) as archive:
        return json.loads(archive.read(f"runs/{number}/record.json"))


def test_the_content_is_not_in_the_bundle_its_digest_is(with_stand_in):
    target, holder, _ = with_stand_in
    with zipfile.ZipFile(target) as archive:
        names = archive.namelist()
        assert not any(holder.read_bytes() in archive.read(name) for name in names)
    assert f"inputs/{DATA}" not in names
    assert f"stand-ins/{DATA}" in names
    (withheld,) = record(target, 1)["withheld"]
    assert withheld["name"] == DATA
    assert withheld["size_bytes"] == holder.stat().st_size


def test_pack_says_what_stays_here_and_how_it_is_given(with_stand_in):
    _, _, done = with_stand_in
    assert f"--data {DATA}=FILE" in " ".join(done.out.split())


def test_without_the_data_the_sample_runs_and_the_verdict_is_partial(sampled):
    bundle, _ = sampled
    done = reprobundle("replay", bundle, "--yes", "-q")
    assert last_line(done) == "VERDICT  PARTIAL (exit 11)", done.out + done.err
    assert "standin-data" in done.out
    assert "claim-replayed" in done.out
    assert "samples are in the place of" in done.err


def test_with_the_data_the_verdict_is_full(sampled):
    bundle, holder = sampled
    reprobundle("replay", bundle, "--yes", "-q")
    done = reprobundle("replay", bundle, "--yes", "-q", "--data", f"{DATA}={holder}")
    assert last_line(done) == "VERDICT  REPRODUCED, bit-identical (exit 0)", done.out


def test_other_data_stop_the_replay(sampled, tmp_path):
    bundle, _ = sampled
    (tmp_path / "other.csv").write_text("x\n9\n")
    done = reprobundle(
        "replay", bundle, "--yes", "-q", "--data", f"{DATA}={tmp_path / 'other.csv'}"
    )
    assert last_line(done) == "VERDICT  NOT RUN HERE (exit 11)", done.out + done.err
    assert "is another file" in " ".join(done.out.split())


def test_by_digest_only_nobody_but_the_holder_replays(project):
    target, done = pack(project, "--hash-only", DATA)
    assert done.status == 0, done.err
    without = reprobundle("replay", target, "--yes", "-q")
    assert last_line(without) == "VERDICT  NOT RUN HERE (exit 11)", without.out
    assert f"--data {DATA}=FILE" in " ".join(without.out.split())
    unknown = reprobundle("replay", target, "--yes", "-q", "--data", "x=train.py")
    assert unknown.status == 20
    assert "names no withheld file" in unknown.err
    given = reprobundle(
        "replay", target, "--yes", "-q", "--data", f"data={project / 'data'}"
    )
    assert last_line(given) == "VERDICT  REPRODUCED WITH WARNINGS (exit 12)", given.out
    assert "has-input-sample" in given.out


def test_an_excluded_file_that_the_command_needs_is_found_by_the_repeat_pass(project):
    target, done = pack(project, "--exclude", DATA)
    assert done.status == 20
    assert "the repeat pass ended with status 1" in done.err
    assert not target.exists()


def test_a_copy_of_withheld_data_is_refused(project):
    shutil.copy(project / DATA, project / "copy.csv")
    target, done = pack(project, "--hash-only", DATA)
    assert done.status == 20
    assert f"copy.csv has the same content as {DATA}" in done.err
    assert not target.exists()


def test_a_sample_on_which_the_command_fails_is_refused(project):
    (project.parent / "bad.csv").write_text("y\n1\n")
    target, done = pack(project, "--stand-in", f"{DATA}=../bad.csv")
    assert done.status == 20
    assert "on the stand-in data the command ended with status 1: KeyError" in done.err
    assert not target.exists()


def test_first_batches_of_withheld_data_are_not_kept_either(project):
    target, done = pack(project, "--hash-only", DATA, "--rng", "recorded")
    assert done.status == 20
    assert f"keeps first weights and batches, and {DATA}" in done.err
    assert not target.exists()


def test_a_printed_number_cannot_be_withheld(project):
    options = ("--metric", r"w=final weight (\S+)", "--hash-only", "metric:w")
    target, done = pack(project, *options)
    assert done.status == 20
    assert "stands in what the command prints" in done.err
    assert "measured pass" not in done.err
    assert not target.exists()
