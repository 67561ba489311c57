"""Where a project stands in its git repository."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from reprobundle.format.record import Fact


@dataclass(frozen=True)
class GitState:
    """Where the project stands in its repository.

    Attributes:
        commit: Full commit hash; empty before the first commit.
        dirty: Whether tracked files differ from the commit.
        diff: The difference as a binary-safe patch.
        remote: Address of ``origin`` without credentials; empty if there is none.
    """

    commit: str
    dirty: bool
    diff: bytes
    remote: str


def read_git_state(root: Path) -> GitState | None:
    """Return the state of the project below `root`, or None outside a repository."""
    if run_git(root, "rev-parse", "--is-inside-work-tree") is None:
        return None
    commit = (run_git(root, "rev-parse", "--verify", "HEAD") or b"").decode().strip()
    diff = difference(root) if commit else b""
    remote = (run_git(root, "remote", "get-url", "origin") or b"").decode().strip()
    return GitState(
        commit=commit,
        dirty=bool(diff),
        diff=diff,
        remote=_without_credentials(remote),
    )


def difference(root: Path, *, without: Iterable[str] = ()) -> bytes:
    """Return how the tracked files below `root` differ from the commit, as a patch.

    Args:
        root: Top of the project.
        without: Names of files that the patch leaves out, relative to `root`.
    """
    # ``literal`` keeps a file called ``*.csv`` from matching others.
    left_out = (f":(exclude,literal){name}" for name in without)
    return run_git(root, "diff", "--binary", "HEAD", "--", ".", *left_out) or b""


def git_facts(git: GitState | None) -> dict[str, Fact]:
    """Return what a record states about the repository."""
    if git is None:
        reason = "the project is not in a git repository"
        return {
            name: Fact(unknown=reason, source="git")
            for name in ("git.commit", "git.dirty")
        }
    commit = (
        Fact(value=git.commit, source="git rev-parse HEAD")
        if git.commit
        else Fact(unknown="the repository has no commit", source="git rev-parse HEAD")
    )
    facts = {
        "git.commit": commit,
        "git.dirty": Fact(value=git.dirty, source="git diff HEAD"),
    }
    if git.remote:
        facts["git.remote"] = Fact(value=git.remote, source="git remote")
    return facts


def run_git(where: Path, *arguments: str) -> bytes | None:
    """Return what git prints, or None if it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-C", str(where), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _without_credentials(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    if separator and "@" in rest.partition("/")[0]:
        rest = rest.partition("@")[2]
    return f"{scheme}{separator}{rest}"
