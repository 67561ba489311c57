"""The texts of a project, one by one, from a folder, a file or a sealed bundle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from reprobundle.errors import (
    AbsentMemberError,
    BadCallError,
    DigestError,
    StructureError,
)
from reprobundle.format.limits import DOCUMENT_BYTES
from reprobundle.format.reader import Bundle, open_bundle
from reprobundle.format.scan_report import NotRead
from reprobundle.run.project import CACHE_FOLDERS

LONGEST_BYTES = 4 << 20
MOST_FILES = 50_000
_ENVIRONMENTS = frozenset({"site-packages", ".venv", "venv", ".eggs"})
_CODE = frozenset({".py", ".pyi", ".pyx", ".ipynb", ".sh", ".bash", ".toml", ".cfg"})
_PROJECT = "project/"
# What says how the program was run; a bundle in which it is damaged is not whole.
_DOCUMENTS = frozenset({"readme", "lock", "policy", "record", "checksums"})


class Source(NamedTuple):
    """One text.

    Attributes:
        path: Relative to what is scanned, with ``/``.
        text: Its content.
        cell: Cell of a notebook, from 1; 0 elsewhere.
    """

    path: str
    text: str
    cell: int = 0

    @property
    def name(self) -> str:
        """The file's name in lower case."""
        return PurePosixPath(self.path).name.lower()

    @property
    def suffix(self) -> str:
        """The end of its name, such as ``.py``; a cell is Python."""
        return ".py" if self.cell else PurePosixPath(self.path).suffix.lower()


def read_sources(target: Path) -> Iterator[Source | NotRead]:
    """Yield every text below `target`, and every file that is none.

    Args:
        target: A folder, a file, or a bundle, whose ``project/`` is read. Records and
            locks of a bundle are looked at as well, for damage alone.

    Raises:
        BadCallError: There is no such path, or it holds no file.
        BundleError: The bundle cannot be read.
    """
    files = list(_files(target)) if not _is_bundle(target) else None
    if files is not None and not files:
        raise BadCallError(
            f"{str(target)!r} holds no file to scan",
            advice="name the top folder of the project",
        )
    pairs = _bundle(target) if files is None else _contents(files)
    for path, content in pairs:
        if isinstance(content, NotRead):
            yield content
        else:
            yield from _texts(path, content)


def bundle_id(target: Path) -> str:
    """Return the id of a bundle; empty for a folder or another file.

    Raises:
        BadCallError: There is no such path.
        BundleError: The bundle cannot be read.
    """
    if not _is_bundle(target):
        return ""
    with open_bundle(target) as bundle:
        return bundle.id


def _is_bundle(target: Path) -> bool:
    if target.is_dir():
        return False
    if not target.is_file():
        raise BadCallError(f"there is no {str(target)!r}", advice="name a project")
    with target.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _files(target: Path) -> Iterator[tuple[str, Path]]:
    if target.is_file():
        yield target.name, target
        return
    count = 0
    for folder, folders, names in os.walk(target, followlinks=False):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if _is_entered(here / name))
        for name in sorted(names):
            count += 1
            if count > MOST_FILES:
                raise BadCallError(
                    f"{str(target)!r} holds more than {MOST_FILES:,} files",
                    advice="name the folder of the code alone",
                )
            yield (here / name).relative_to(target).as_posix(), here / name


def _is_entered(folder: Path) -> bool:
    if folder.name in CACHE_FOLDERS or folder.name in _ENVIRONMENTS:
        return False
    return not folder.is_symlink() and not (folder / "pyvenv.cfg").exists()


def _contents(
    files: list[tuple[str, Path]],
) -> Iterator[tuple[str, bytes | NotRead]]:
    for name, path in files:
        try:
            if not path.is_file():
                yield name, _not_read(name, "no regular file")
            elif (size := path.stat().st_size) > LONGEST_BYTES:
                yield name, _not_read(name, f"{size:,} bytes are more than the limit")
            else:
                yield name, path.read_bytes()
        except OSError as error:
            yield name, _not_read(name, (error.strerror or str(error)).lower())


def _bundle(target: Path) -> Iterator[tuple[str, bytes | NotRead]]:
    with ExitStack() as stack:
        bundle = stack.enter_context(open_bundle(target))
        for member, facts in bundle.members.items():
            inside = member.startswith((_PROJECT, "lock/project/"))
            if not inside and facts.role not in _DOCUMENTS:
                continue
            name = member.removeprefix(_PROJECT)
            limit = LONGEST_BYTES if inside else DOCUMENT_BYTES
            if facts.size_bytes > limit:
                size = f"{facts.size_bytes:,} bytes are more than the limit"
                yield name, _not_read(name, size)
                continue
            content = _member(bundle, member, name, limit)
            if inside or isinstance(content, NotRead):
                yield name, content


def _member(bundle: Bundle, member: str, name: str, limit: int) -> bytes | NotRead:
    """Return a member's content; one that is not what was sealed matters always."""
    try:
        return bundle.read(member, limit_bytes=limit)
    except AbsentMemberError as error:
        return NotRead(path=name, reason=str(error), matters=True)
    except (DigestError, StructureError):
        reason = "damaged: not what was sealed; reprobundle verify says more"
        return NotRead(path=name, reason=reason, matters=True)


def _not_read(name: str, reason: str) -> NotRead:
    suffix = PurePosixPath(name).suffix.lower()
    return NotRead(path=name, reason=reason, matters=suffix in _CODE)


def _texts(path: str, content: bytes) -> Iterator[Source | NotRead]:
    if content.startswith(b"\x7fELF"):
        yield NotRead(path=path, reason="compiled for Linux", matters=True)
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Old sources are Latin-1 now and then; it maps every byte.
        text = content.decode("latin-1")
    if "\0" in text:
        yield _not_read(path, "not a text")
    elif path.lower().endswith(".ipynb"):
        yield from _cells(path, text)
    else:
        yield Source(path, text)


def _cells(path: str, text: str) -> Iterator[Source | NotRead]:
    """Yield the code cells of a notebook; its magics become comments."""
    try:
        cells = json.loads(text)["cells"]
        codes = [
            (number, "".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        yield NotRead(path=path, reason="no notebook of version 4", matters=True)
        return
    for number, code in codes:
        yield Source(path, code, number)
