"""Decide which files a bundle holds, and as what."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from reprobundle.errors import BadCallError, PackRefusedError
from reprobundle.format.digests import digest_file
from reprobundle.format.record import FileRead
from reprobundle.run.project import Stage

# Files nobody read are kept up to this size: a reader wants the whole source, not the
# data sets beside it.
UNREAD_LIMIT_BYTES = 1 << 20
# Files read outside the project are included up to this size, above it only pinned
# by their digest.
EXTERNAL_LIMIT_BYTES = 256 << 20

ExternalChoice = Literal["include", "pin", "refuse"]

# What is read as part of the program rather than as its data.
PROGRAM_SUFFIXES = frozenset(
    {
        ".bash",
        ".c",
        ".cc",
        ".cfg",
        ".conf",
        ".cpp",
        ".cu",
        ".cuh",
        ".h",
        ".hpp",
        ".ini",
        ".ipynb",
        ".jinja",
        ".json",
        ".lock",
        ".md",
        ".metal",
        ".py",
        ".pyi",
        ".pyx",
        ".rst",
        ".sh",
        ".toml",
        ".yaml",
        ".yml",
    }
)


@dataclass
class Contents:
    """Which staged files go into the bundle.

    Attributes:
        members: Staged name → member name, for every file that is included.
        roles: Staged name → ``project`` or ``input``.
        left_out: Staged names that are not included: large, and never read.
    """

    members: dict[str, str] = field(default_factory=dict)
    roles: dict[str, Literal["project", "input"]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def choose(stage: Stage, read: set[str], declared: set[str]) -> Contents:
    """Return what the bundle holds of the staged files.

    Args:
        stage: The pristine copies.
        read: Names the measured pass read.
        declared: Names given with ``--input``.
    """
    contents = Contents()
    for name in stage.names:
        is_input = name in declared or (
            name in read and Path(name).suffix.lower() not in PROGRAM_SUFFIXES
        )
        needed = is_input or name in read
        if not needed and stage.path(name).stat().st_size > UNREAD_LIMIT_BYTES:
            contents.left_out.append(name)
            continue
        contents.roles[name] = "input" if is_input else "project"
        contents.members[name] = f"{'inputs' if is_input else 'project'}/{name}"
    return contents


def externals(
    paths: Iterable[Path],
    *,
    pinned: Iterable[Path] = (),
    choice: ExternalChoice = "include",
    opened_as: Mapping[Path, Path] = MappingProxyType({}),
) -> dict[Path, FileRead]:
    """Return an entry for each file that was read outside the project.

    Args:
        paths: Absolute paths.
        pinned: Files or folders of which only sizes and digests are kept.
        choice: What happens to all others.
        opened_as: Path → the link by which the program came to it.

    Raises:
        PackRefusedError: A file vanished after it was read, or none may be read.
        BadCallError: `pinned` names nothing that was read.
    """
    # What may not be read was tried only; the record keeps it without a content.
    read = sorted(path for path in paths if not _is_denied(path))
    if choice == "refuse" and read:
        more = f" and {len(read) - 1} more files" if len(read) > 1 else ""
        raise PackRefusedError(
            f"the run read {str(read[0])!r}{more} outside the project",
            advice="copy it into the project, or pack with --external include or pin",
        )
    pins = [(path.absolute(), path.resolve()) for path in pinned]
    for pin in pins:
        if not any(_is_below(path, pin, opened_as) for path in read):
            raise BadCallError(
                f"--pin {str(pin[1])!r} names no file that the run read outside the "
                "project",
                advice="use --hash-only for files of the project",
            )
    return {
        path: _external(
            number,
            path,
            opened_as=opened_as.get(path, path),
            is_pinned=choice == "pin"
            or any(_is_below(path, pin, opened_as) for pin in pins),
        )
        for number, path in enumerate(read, start=1)
    }


def _is_denied(path: Path) -> bool:
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return not os.access(path, os.R_OK)


def _is_below(
    path: Path, pin: tuple[Path, Path], opened_as: Mapping[Path, Path]
) -> bool:
    """Whether `path`, or the link that led to it, lies below either name of a pin."""
    places = (path, opened_as.get(path, path))
    return any(place.is_relative_to(name) for place in places for name in pin)


def _external(number: int, path: Path, *, opened_as: Path, is_pinned: bool) -> FileRead:
    try:
        size_bytes = path.stat().st_size
        digest = digest_file(path)
    except OSError as error:
        raise PackRefusedError(
            f"input {str(path)!r} was read but cannot be read now: {error.strerror}",
            advice="keep the inputs until pack has ended",
        ) from error
    included = size_bytes <= EXTERNAL_LIMIT_BYTES and not is_pinned
    return FileRead(
        path=f"external:{number}/{opened_as.name}",
        member=f"external/{number}/{opened_as.name}" if included else "",
        origin=_origin(path),
        opened_as="" if opened_as == path else _origin(opened_as),
        size_bytes=size_bytes,
        blake3=digest,
    )


def _origin(path: Path) -> str:
    home = Path.home()
    if path.is_relative_to(home):
        return f"~/{path.relative_to(home).as_posix()}"
    return path.as_posix()
