from __future__ import annotations

import os
import subprocess

import pytest

from reprobundle.errors import BadCallError, PackRefusedError
from reprobundle.run.project import (
    changed_files,
    find_project,
    list_files,
    make_scratch,
    make_stage,
    snapshot,
)


def git(folder, *arguments):
    subprocess.run(
        [
            "git",
            "-C",
            str(folder),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            *arguments,
        ],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    (root / "sub").mkdir(parents=True)
    (root / "train.py").write_text("print(1)\n")
    (root / "sub/tracked.csv").write_text("1\n")
    (root / ".gitignore").write_text("ignored/\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    (root / "untracked.py").write_text("2\n")
    (root / "ignored").mkdir()
    (root / "ignored/data.csv").write_text("3\n")
    return root


def test_the_project_is_the_git_root(repository):
    assert find_project(repository / "sub", None).root == repository.resolve()


def test_without_git_the_project_is_the_working_directory(tmp_path):
    project = find_project(tmp_path, None)
    assert project.root == tmp_path.resolve()
    assert project.git is None


def test_a_named_project_must_hold_the_working_directory(repository, tmp_path):
    with pytest.raises(BadCallError, match="is not inside the project folder"):
        find_project(tmp_path, repository)


def test_lists_tracked_and_untracked_files_but_not_ignored_ones(repository):
    project = find_project(repository, None)
    assert list_files(project, exclude=frozenset()) == (
        ".gitignore",
        "sub/tracked.csv",
        "train.py",
        "untracked.py",
    )


def test_a_subfolder_of_a_repository_can_be_the_project(repository):
    project = find_project(repository / "sub", repository / "sub")
    assert list_files(project, exclude=frozenset()) == ("tracked.csv",)
    assert project.git is not None
    assert len(project.git.commit) == 40


def test_a_changed_tracked_file_makes_the_state_dirty_and_gives_a_diff(repository):
    (repository / "train.py").write_text("print(2)\n")
    state = find_project(repository, None).git
    assert state is not None
    assert state.dirty
    assert b"+print(2)" in state.diff


def test_a_clean_repository_is_not_dirty(repository):
    state = find_project(repository, None).git
    assert state is not None
    assert not state.dirty
    assert state.diff == b""


def test_a_remote_is_recorded_without_credentials(repository):
    git(repository, "remote", "add", "origin", "https://me:token@host.example/r.git")
    state = find_project(repository, None).git
    assert state is not None
    assert state.remote == "https://host.example/r.git"


def test_environments_and_caches_are_no_project_files(tmp_path):
    for name in ("env/pyvenv.cfg", "env/x.py", "__pycache__/a.pyc", "a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    project = find_project(tmp_path, None)
    assert list_files(project, exclude=frozenset()) == ("a.py",)


def test_a_declared_input_is_staged_even_where_git_ignores_it(repository, tmp_path):
    stage = make_stage(
        repository, ("train.py",), tmp_path / "stage", (repository / "ignored",)
    )
    assert stage.names == ["ignored/data.csv", "train.py"]
    assert stage.path("ignored/data.csv").read_text() == "3\n"


def test_a_declared_input_that_vanished_is_refused(repository, tmp_path):
    with pytest.raises(PackRefusedError, match="does not exist"):
        make_stage(repository, (), tmp_path / "stage", (repository / "gone.csv",))


def test_links_are_resolved_when_staged(repository, tmp_path):
    outside = tmp_path / "outside.csv"
    outside.write_text("out\n")
    (repository / "link.csv").symlink_to(outside)
    stage = make_stage(repository, ("link.csv",), tmp_path / "stage")
    assert not stage.path("link.csv").is_symlink()
    assert stage.path("link.csv").read_text() == "out\n"


def test_a_dangling_link_is_refused_by_name(repository, tmp_path):
    (repository / "broken").symlink_to(repository / "nowhere")
    with pytest.raises(PackRefusedError, match="'broken' cannot be copied"):
        make_stage(repository, ("broken",), tmp_path / "stage")


def test_the_execute_bit_survives(repository, tmp_path):
    (repository / "run.sh").write_text("#!/bin/sh\n")
    (repository / "run.sh").chmod(0o755)
    stage = make_stage(repository, ("run.sh", "train.py"), tmp_path / "stage")
    make_scratch(stage, stage.names, tmp_path / "scratch")
    assert os.access(tmp_path / "scratch/run.sh", os.X_OK)
    assert not os.access(tmp_path / "scratch/train.py", os.X_OK)


def test_large_files_are_linked_and_a_change_is_seen(repository, tmp_path, monkeypatch):
    monkeypatch.setattr("reprobundle.run.project.COPY_LIMIT_BYTES", 1)
    monkeypatch.setattr("reprobundle.run.project._share_blocks", lambda *_: False)
    stage = make_stage(repository, ("sub/tracked.csv",), tmp_path / "stage")
    assert stage.path("sub/tracked.csv").is_symlink()
    assert stage.changed_links() == ()
    (repository / "sub/tracked.csv").write_text("changed\n")
    assert stage.changed_links() == ("sub/tracked.csv",)


def test_changed_files_are_new_and_rewritten_ones(repository, tmp_path):
    stage = make_stage(repository, ("train.py", "sub/tracked.csv"), tmp_path / "stage")
    scratch = tmp_path / "scratch"
    make_scratch(stage, stage.names, scratch)
    before = snapshot(scratch)
    (scratch / "out").mkdir()
    (scratch / "out/metrics.json").write_text("{}")
    (scratch / "sub/tracked.csv").write_text("longer\n")
    assert changed_files(scratch, before) == ("out/metrics.json", "sub/tracked.csv")


def test_what_a_run_writes_into_its_copies_changes_nothing_else(tmp_path):
    root, names = tmp_path / "project", ("deep/down/a.py", "deep/b.py")
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("before\n")
    stage = make_stage(root, names, tmp_path / "stage")
    make_scratch(stage, stage.names, tmp_path / "scratch")
    for name in names:
        with (tmp_path / "scratch" / name).open("r+") as file:
            file.write("AFTER!")
        assert (root / name).read_text() == "before\n"
        assert stage.path(name).read_text() == "before\n"
    assert {path.stat().st_nlink for path in root.rglob("*.py")} == {1}


def test_a_name_that_leads_to_no_file_is_no_project_file(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "link.py").symlink_to("nowhere.py")
    project = find_project(tmp_path, None)
    assert list_files(project, exclude=frozenset()) == ("a.py",)
    assert list_files(project, exclude=frozenset({project.root / "a.py"})) == ()
