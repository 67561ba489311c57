"""What a distribution's RECORD says about its files, whoever installed it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from blake3 import blake3

# Written by the installer, not by the wheel: they differ between two installations.
INSTALLER_FILES = frozenset(
    {
        "INSTALLER",
        "REQUESTED",
        "RECORD",
        "direct_url.json",
        "uv_cache.json",
        "uv_build.json",
    }
)
SCRIPT_FOLDERS = frozenset({"bin", "Scripts"})


@dataclass(frozen=True)
class InstalledFiles:
    """The files of one distribution.

    Attributes:
        digest: BLAKE3 over the sorted ``path,hash`` lines, 64 hexadecimal digits; None
            when it cannot be told.
        unknown: Why not; empty when it is known.
        size_bytes: Sum of the sizes in the RECORD; None when it cannot be told.
    """

    digest: str | None
    unknown: str
    size_bytes: int | None


def read_record(metadata_folder: Path) -> InstalledFiles:
    """Read the RECORD in `metadata_folder`, a ``.dist-info`` folder.

    Scripts are left out, since their first line names the interpreter, and so are
    compiled files and those the installer adds: what remains is the wheel's content.
    """
    if metadata_folder.suffix != ".dist-info":
        return InstalledFiles(None, "it was installed without a RECORD", None)
    try:
        text = (metadata_folder / "RECORD").read_text(encoding="utf-8")
        rows = sorted(_content_rows(text, metadata_folder.name))
        size_bytes = sum(int(size) for _, _, size in rows if size)
    except FileNotFoundError:
        return InstalledFiles(None, "its RECORD is missing", None)
    except (OSError, ValueError, csv.Error) as error:
        return InstalledFiles(None, f"its RECORD cannot be read: {error}", None)
    lines = "".join(f"{path},{digest}\n" for path, digest, _ in rows)
    return InstalledFiles(str(blake3(lines.encode()).hexdigest()), "", size_bytes)


def _content_rows(text: str, metadata_name: str) -> Iterator[tuple[str, str, str]]:
    for row in csv.reader(text.splitlines()):
        if not row:
            continue
        path, digest, size = (*row, "", "")[:3]
        parts = PurePosixPath(path)
        added = parts.parent.name == metadata_name and parts.name in INSTALLER_FILES
        script = ".." in parts.parts and parts.parent.name in SCRIPT_FOLDERS
        if not (added or script or parts.suffix == ".pyc"):
            yield path, digest, size


def damaged_files(metadata_folder: Path) -> tuple[str, ...]:
    """Return the files of a RECORD that are missing or have another size now.

    A distribution whose own RECORD is missing counts as damaged whole.
    """
    try:
        text = (metadata_folder / "RECORD").read_text(encoding="utf-8")
    except OSError:
        return (f"{metadata_folder.name}/RECORD",)
    root = metadata_folder.parent
    damaged = []
    for path, _, size in _content_rows(text, metadata_folder.name):
        if not _is_whole(root / path, size):
            damaged.append(path)
    return tuple(damaged)


def _is_whole(path: Path, size: str) -> bool:
    try:
        return not size or path.stat().st_size == int(size)
    except (OSError, ValueError):
        return False
