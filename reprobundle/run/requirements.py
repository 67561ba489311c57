"""Write a lock as pip requirements, and find the lock files a project has itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reprobundle.format.lock import Distribution, Lock
from reprobundle.run import package_origin

# Not installed again: the installer, which an environment can do without, and this
# program, whose recording functions come with the recorder.
TOOLS = frozenset({"pip", "reprobundle"})

ALLOWED_SCHEMES = (
    "https",
    "http",
    "git+https",
    "git+http",
    "git+ssh",
    "hg+https",
    "svn+https",
)

LOCK_FILE_PATTERNS = (
    "requirements*.txt",
    "requirements*.in",
    "constraints*.txt",
    "pyproject.toml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
    "pylock.toml",
    "pylock.*.toml",
    "Pipfile",
    "Pipfile.lock",
    "environment*.yml",
    "environment*.yaml",
    "conda-lock*.yml",
    "conda-lock*.yaml",
    "*.conda-lock.yml",
    "conda-*.lock",
    "pixi.toml",
    "pixi.lock",
)
REQUIREMENTS_FOLDERS = ("requirements", "requirement", "reqs")
SEARCH_DEPTH = 2


@dataclass(frozen=True)
class LeftOut:
    """A distribution of the lock that is not installed, and why."""

    name: str
    version: str
    reason: str


@dataclass(frozen=True)
class Requirements:
    """A lock as it is handed to an installer.

    Attributes:
        pins: Lines for index and address origins, exact versions.
        hashed: Lines with ``--hash``, for archives that came from a local file.
        unhashed: Exact versions that only a folder of wheels may serve: they were
            built from a source folder, so an index can only hold something else.
        left_out: What is not installed.
    """

    pins: tuple[str, ...]
    hashed: tuple[str, ...]
    unhashed: tuple[str, ...]
    left_out: tuple[LeftOut, ...]


def requirements(
    lock: Lock, *, without: frozenset[str] = frozenset(), folder_only: bool = False
) -> Requirements:
    """Sort the distributions of `lock` by how they can be installed.

    Args:
        lock: From a bundle.
        without: Names to leave out because they do not exist on this platform.
        folder_only: Whether a folder of wheels is the only source: addresses are then
            not asked either.
    """
    pins: list[str] = []
    hashed: list[str] = []
    unhashed: list[str] = []
    left_out: list[LeftOut] = []
    for item in lock.distributions:
        pin = f"{item.name}=={item.version}"
        reason = _reason_left_out(item, without)
        if reason:
            left_out.append(LeftOut(item.name, item.version, reason))
        elif _is_reachable(item) and not folder_only:
            pins.append(f"{item.name} @ {_with_digest(item)}")
        elif item.origin == "index":
            pins.append(pin)
        elif item.sha256:
            hashed.append(f"{pin} --hash=sha256:{item.sha256}")
        else:
            unhashed.append(pin)
    return Requirements(tuple(pins), tuple(hashed), tuple(unhashed), tuple(left_out))


def _reason_left_out(item: Distribution, without: frozenset[str]) -> str:
    if item.name in TOOLS:
        return "is no part of what is run"
    if item.detail.startswith(package_origin.PROJECT):
        return "is the project itself, whose files are in the bundle"
    if item.name in without:
        return "is not published for this platform"
    return ""


def _is_reachable(item: Distribution) -> bool:
    if item.origin not in ("url", "vcs"):
        return False
    scheme = item.detail.partition("://")[0]
    return scheme in ALLOWED_SCHEMES and not package_origin.is_private(item.detail)


def _with_digest(item: Distribution) -> str:
    if not item.sha256 or "sha256=" in item.detail:
        return item.detail
    joint = "&" if "#" in item.detail else "#"
    return f"{item.detail}{joint}sha256={item.sha256}"


def requirements_text(lock: Lock) -> str:
    """Return `lock` as a requirements file that pip installs with ``--no-deps``."""
    sorted_out = requirements(lock)
    lines = [
        f"# environment of Python {lock.python.version} on {lock.python.platform}",
        "# complete: install with --no-deps",
        *sorted_out.pins,
    ]
    lines += _section("installed from a local file", sorted_out.hashed)
    lines += _section("built from a local folder", sorted_out.unhashed)
    lines += [
        f"# left out: {item.name}=={item.version} {item.reason}"
        for item in sorted_out.left_out
    ]
    return "\n".join(lines) + "\n"


def _section(what: str, pins: tuple[str, ...]) -> list[str]:
    """Return pins as comments, since one line with a digest demands one in each."""
    if not pins:
        return []
    title = f"# {what}, to be had from a folder of wheels only:"
    return [title, *(f"# {pin}" for pin in pins)]


def find_lock_files(project: Path) -> list[Path]:
    """Return the files in `project` that describe an environment, sorted.

    They are looked for in its top folder, two levels below it, and in any
    ``requirements`` folder there; hidden folders and environments are skipped.
    """
    return sorted(_lock_files(project, SEARCH_DEPTH))


def _lock_files(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = list(folder.iterdir())
    except PermissionError:
        return  # What the user cannot read, the run did not use either.
    for path in entries:
        if path.is_file() and _is_lock_file(path):
            yield path
        elif depth > 0 and path.is_dir() and not _is_foreign(path):
            yield from _lock_files(path, depth - 1)


def _is_lock_file(path: Path) -> bool:
    inside = path.parent.name.lower() in REQUIREMENTS_FOLDERS and path.suffix in (
        ".txt",
        ".in",
    )
    return inside or any(path.match(pattern) for pattern in LOCK_FILE_PATTERNS)


def _is_foreign(folder: Path) -> bool:
    return (
        folder.is_symlink()
        or folder.name.startswith(".")
        or folder.name in ("node_modules", "site-packages", "__pycache__")
        or (folder / "pyvenv.cfg").exists()
    )
