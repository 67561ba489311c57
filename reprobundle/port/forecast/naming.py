"""Tell whether a command names MPS itself, so that the CPU has to stand for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from reprobundle.run.command import DEVICE

# Where a program may have its device from: code and settings.
_SUFFIXES = frozenset(
    {".py", ".ipynb", ".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".sh"}
)
_MOST_BYTES = 4 << 20
# `nvidia-cuda-mps-control` is another MPS.
_WORD = re.compile(rb"(?<![A-Za-z0-9_-])mps(?![A-Za-z0-9_-])")
_DEVICE = re.compile(r"mps(:\d+)?")


def takes_device(argv: Iterable[str]) -> bool:
    """Tell whether a command is told its device: whether ``{device}`` stands in it."""
    return any(DEVICE in word for word in argv)


def names_mps(folder: Path, argv: Iterable[str], variables: Mapping[str, str]) -> bool:
    """Tell whether ``mps`` is a word of the command, its files or its variables.

    A comment counts too: where nothing names MPS while it runs, nothing is replaced.

    Args:
        folder: The project's files.
        argv: The command.
        variables: Of which one may be the device's name and no more.
    """
    words = [word.encode() for word in argv]
    return (
        any(map(_DEVICE.fullmatch, variables.values()))
        or any(map(_WORD.search, words))
        or any(map(_holds_it, _files(folder)))
    )


def _files(folder: Path) -> Iterable[Path]:
    for path in folder.rglob("*"):
        if path.suffix in _SUFFIXES and path.is_file():
            yield path


def _holds_it(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return bool(_WORD.search(file.read(_MOST_BYTES)))
    except OSError:
        return False
