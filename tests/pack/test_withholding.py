"""Which files of a project stay out of a bundle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reprobundle.errors import BadCallError, PackRefusedError
from reprobundle.format.record import WithheldFile
from reprobundle.pack.contents import choose
from reprobundle.pack.options import PackOptions
from reprobundle.pack.withholding import (
    refuse_copies,
    stand_in_samples,
    withholding,
)
from reprobundle.run.git_state import difference
from reprobundle.run.project import digest_stage, make_stage


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    (folder / "data").mkdir(parents=True)
    for name in ("train.py", "data/a.csv", "data/b.csv", "sample.csv"):
        (folder / name).write_text(name)
    return folder


@pytest.fixture
def stage(root, tmp_path):
    names = ("data/a.csv", "data/b.csv", "sample.csv", "train.py")
    return make_stage(root, names, tmp_path / "stage")


def of(stage, root, samples=(), *, exclude=(), hash_only=()):
    call = PackOptions(
        argv=("python",),
        output=root / "x.rpb.zip",
        working_directory=root,
        exclude=tuple(map(Path, exclude)),
        hash_only=tuple(map(Path, hash_only)),
    )
    return withholding(call, stage, root=root, samples=dict(samples))


def test_an_excluded_file_is_no_member(stage, root):
    chosen = of(stage, root, exclude=("data/b.csv",)).applied(
        choose(stage, {"data/a.csv", "data/b.csv"}, set())
    )
    assert "data/a.csv" in chosen.members
    assert "data/b.csv" not in chosen.members


def test_a_folder_stands_for_all_files_below_it(stage, root):
    found = of(stage, root, hash_only=("data",))
    assert found.hashed == {"data/a.csv", "data/b.csv"}


def test_a_hashed_file_keeps_name_size_and_digest(stage, root):
    found = of(stage, root, hash_only=("data/a.csv",))
    digests = digest_stage(stage, ["data/a.csv"])
    (file,) = found.files(stage, digests)
    assert file == WithheldFile(
        name="data/a.csv", size_bytes=10, blake3=digests["data/a.csv"]
    )


def test_a_path_that_names_nothing_is_refused(stage, root):
    with pytest.raises(BadCallError, match=r"--exclude 'data/c\.csv' names no file"):
        of(stage, root, exclude=("data/c.csv",))


def test_two_ways_for_one_file_are_refused(stage, root):
    with pytest.raises(BadCallError, match="both excluded and kept by digest"):
        of(stage, root, exclude=("data",), hash_only=("data/a.csv",))


def test_a_sample_is_copied_at_once(root, tmp_path):
    keep = tmp_path / "keep"
    samples = stand_in_samples(
        ["data/a.csv=sample.csv"], root=root, folder=root, keep=keep
    )
    (root / "sample.csv").write_text("changed later")
    assert samples["data/a.csv"].read_text() == "sample.csv"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data/a.csv", "not of the form PATH=SAMPLE"),
        ("data/c.csv=gone.csv", "not of the form PATH=SAMPLE"),
        ("data/a.csv=gone.csv", "is no file"),
        ("data/a.csv=data/a.csv", "cannot stand in for itself"),
    ],
)
def test_a_stand_in_that_cannot_be_meant_is_refused(root, tmp_path, text, words):
    with pytest.raises(BadCallError, match=words):
        stand_in_samples([text], root=root, folder=root, keep=tmp_path / "keep")


def test_a_copy_of_a_withheld_file_is_refused_by_both_names():
    file = WithheldFile(name="data/a.csv", size_bytes=1, blake3="a" * 64)
    with pytest.raises(PackRefusedError, match=r"copy\.csv has the same .*data/a\.csv"):
        refuse_copies([file], [("x.csv", "b" * 64), ("copy.csv", "a" * 64)])


def test_an_empty_file_is_no_copy_of_another_empty_file():
    file = WithheldFile(name="a", size_bytes=0, blake3="a" * 64)
    refuse_copies([file], [("b", "a" * 64)])


def test_a_withheld_file_does_not_come_in_as_a_difference(root):
    def git(*arguments):
        settings = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", "-C", root, *settings, *arguments], check=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (root / "data/a.csv").write_text("private")
    (root / "train.py").write_text("public")
    assert b"private" in difference(root)
    assert b"private" not in difference(root, without=["data/a.csv"])
    assert b"public" in difference(root, without=["data/a.csv"])
