"""What a run left in its folder that is no output: links, pipes, sockets."""

from __future__ import annotations

import stat
from collections.abc import Container, Iterator
from pathlib import Path

from reprobundle.format.record import Remark
from reprobundle.run.project import walked

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


def left_aside(folder: Path, staged: Container[str]) -> Iterator[Remark]:
    """Yield a remark for everything below a folder that is neither file nor folder.

    Args:
        folder: Where the command ran.
        staged: Names of the files that were there before; large ones are links.
    """
    for name in walked(folder, with_links=True):
        told = "" if name in staged else _told(folder, folder / name)
        if told:
            yield Remark(id="left-aside", severity="gap", where=name, text=told)


def _told(folder: Path, path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return ""
    if stat.S_ISLNK(mode):
        return _of_link(folder, path)
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "")
    return f"the run left {kind} here, which is no output" if kind else ""


def _of_link(folder: Path, path: Path) -> str:
    """Return what to say of a link; one within the folder leads to what is kept."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return "the run left a link here that leads nowhere; it is no output"
    if target.is_relative_to(folder.resolve()):
        return ""
    return "the run left a link here that leads out of the project; it is no output"
