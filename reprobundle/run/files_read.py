"""Which files a finished run read, and which of them are its sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reprobundle.format.record import FileRead
from reprobundle.run import facts
from reprobundle.run.accessed import Accesses
from reprobundle.run.events import End, EventFile
from reprobundle.run.finished import FinishedRun


def files_read(
    run: FinishedRun, access: Accesses, externals: Mapping[Path, FileRead]
) -> tuple[FileRead, ...]:
    """Return every file that the run read, those of the project first.

    Args:
        run: The finished run.
        access: Which files it read and wrote.
        externals: Files outside the project that the bundle holds or names.
    """
    inside = [
        FileRead(
            path=f"project:{name}",
            member=run.members.get(name, ""),
            size_bytes=_size(run.places.scratch / name),
            blake3=run.staged[name],
        )
        for name in sorted(access.read)
        if name in run.staged
    ]
    outside = [
        externals.get(
            path, FileRead(path=f"missing:{path.name}", size_bytes=0, blake3="")
        )
        for path in sorted(access.read_outside)
    ]
    return (*inside, *outside)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def sources(files: tuple[EventFile, ...], scratch: Path) -> tuple[str, ...]:
    """Return the files below `scratch` that Python loaded as source code."""
    found = {
        Path(source)
        for _, event in facts.events_of(files, End)
        for source in event.sources
    }
    return tuple(
        sorted(
            path.relative_to(scratch).as_posix()
            for path in found
            if path.is_relative_to(scratch)
        )
    )
