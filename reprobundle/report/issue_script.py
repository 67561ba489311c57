"""The script that an issue shows: the user's minimal one, or the one that was run."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import BundleError
from reprobundle.format.atomic import explained
from reprobundle.format.reader import Bundle
from reprobundle.format.record import Record

SCRIPT_BYTES = 1 << 20


class Snippet(NamedTuple):
    """What somebody runs to see it.

    Attributes:
        name: File name.
        text: Its content.
        needs: Project files and inputs that it needs besides; empty for a script that
            stands alone.
        stated: Whether the user passed it in place of the script that was run.
    """

    name: str
    text: str
    needs: tuple[str, ...] = ()
    stated: bool = False


def stated_snippet(path: Path) -> Snippet:
    """Return the minimal script at `path`.

    Raises:
        EnvironmentUnusableError: It cannot be read.
    """
    with explained(f"cannot read {str(path)!r}"), path.open("rb") as file:
        data = file.read(SCRIPT_BYTES)
    return Snippet(path.name, data.decode(errors="replace"), stated=True)


def script_of(bundle: Bundle, record: Record) -> Snippet | None:
    """Return the script that the command of `record` started, or None.

    Raises:
        BundleError: Its content is not what was sealed.
    """
    for name in dict.fromkeys(_candidates(record)):
        member = bundle.members.get(f"project/{name}")
        if member is None or not name.endswith(".py"):
            continue
        if member.size_bytes > SCRIPT_BYTES:
            return None
        data = bundle.read(member.path)
        needs = tuple(_needs(bundle, record, name))
        return Snippet(name, data.decode(errors="replace"), needs)
    return None


def _candidates(record: Record) -> Iterator[str]:
    """Yield the project files that the command may have started, likeliest first."""
    calls: list[Sequence[str]] = [record.command.argv]
    calls += [process.argv for process in record.processes]
    folder = record.command.working_directory
    for argv in calls:
        for place, argument in enumerate(argv):
            if argument == "-m" and place + 1 < len(argv):
                module = argv[place + 1].replace(".", "/")
                yield from (f"{module}.py", f"{module}/__main__.py")
                yield from (f"src/{module}.py", f"src/{module}/__main__.py")
            elif argument.startswith("{project}/"):
                yield argument.removeprefix("{project}/")
            else:
                yield posixpath.normpath(posixpath.join(folder, argument))
    yield from record.sources[:1]


def _needs(bundle: Bundle, record: Record, script: str) -> Iterator[str]:
    yield from (source for source in record.sources if source != script)
    for read in record.reads:
        if read.member.startswith(("inputs/", "external/")):
            yield read.member.partition("/")[2]
        elif not read.member and read.blake3:
            yield f"{read.origin or read.path} (not in the bundle)"


def stderr_of(bundle: Bundle, number: int) -> str:
    """Return what a sealed run wrote to its error stream; empty if that is not there.

    Only its last mebibyte is read.
    """
    try:
        with bundle.open(f"runs/{number}/stderr.txt") as stream:
            size_bytes = stream.seek(0, 2)
            stream.seek(max(0, size_bytes - SCRIPT_BYTES))
            return stream.read(SCRIPT_BYTES).decode(errors="replace")
    except BundleError:
        return ""
