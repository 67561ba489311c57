"""Files that a run needs and its bundle holds by digest only: who supplies them?

Whoever holds such a file names it with ``--data PATH=FILE``; its digest decides
whether it is the right one. A file that nobody supplies, or a wrong one, stops the
replay for the reason ``data``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from reprobundle.errors import BadCallError
from reprobundle.format.digests import digest_file
from reprobundle.format.record import WithheldFile

MOST_NAMED = 5


def supplied(
    texts: Sequence[str],
    withheld: Iterable[WithheldFile],
    *,
    also_called: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Path]:
    """Return which local file stands for which withheld one.

    Args:
        texts: Values of ``--data``: ``PATH=FILE``, or ``FOLDER=FOLDER`` for all that
            is withheld below a folder (the last one given for a file counts), or
            ``FOLDER`` alone, in which files are found by their digests.
        withheld: What the bundle holds by digest only; the name of a file from outside
            the project is the path it had.
        also_called: Another name → one of these names.

    Returns:
        Name of the withheld file → absolute path. A folder gives a file of the right
        digest, else one of the right name or itself, of which `problem` then tells
        what it is.

    Raises:
        BadCallError: A value is not of that form, names nothing that is withheld, or
            a local file is not there.
    """
    known = tuple(withheld)
    names = {**{one.name: one.name for one in known}, **also_called}
    found: dict[str, Path] = {}
    folders: list[Path] = []
    for text in texts:
        matches = _matches(text, names)
        if not matches:
            folders.append(_folder(text, tuple(one.name for one in known)))
        found.update(matches)
    for folder in folders:
        lacking = [one for one in known if one.name not in found]
        found.update(in_folder(folder, lacking))
    return found


def _matches(text: str, names: Mapping[str, str]) -> dict[str, Path]:
    for path, file in _splits(text):
        if path in names:
            return {names[path]: _existing(file, text)}
        folder = f"{path.rstrip('/')}/"
        below = [name for name in names if name.startswith(folder)]
        if below:
            top = Path(file)
            return {
                names[name]: _existing(str(top / name.removeprefix(folder)), text)
                for name in below
            }
    return {}


def _folder(text: str, names: Sequence[str]) -> Path:
    path = Path(text).expanduser()
    if path.is_dir():
        return path.resolve()
    if "=" not in text:
        raise BadCallError(
            f"--data {text!r} is not of the form PATH=FILE, and no folder",
            advice="PATH is the name in the bundle, FILE your own copy of it",
        )
    known = ", ".join(names[:MOST_NAMED]) or "nothing"
    raise BadCallError(
        f"--data {text!r} names no withheld file",
        advice=f"this bundle withholds {known}",
    )


def in_folder(folder: Path, lacking: Sequence[WithheldFile]) -> dict[str, Path]:
    """Return what below `folder` stands for each of `lacking`.

    Only files of the right size are read.

    Returns:
        Name → a file of its content, else a file of its name, else `folder` itself.
    """
    by_size: dict[int, list[WithheldFile]] = {}
    by_name: dict[str, list[WithheldFile]] = {}
    for one in lacking:
        by_size.setdefault(one.size_bytes, []).append(one)
        by_name.setdefault(PurePosixPath(one.name).name, []).append(one)
    found: dict[str, Path] = {}
    alike: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        for one in by_name.get(path.name, ()):
            alike.setdefault(one.name, path.resolve())
        of_size = by_size.get(path.stat().st_size, ())
        digest = _digest(path) if of_size else ""
        for one in of_size:
            if digest == one.blake3:
                found.setdefault(one.name, path.resolve())
    return {**{one.name: folder for one in lacking}, **alike, **found}


def _digest(path: Path) -> str:
    try:
        return digest_file(path)
    except OSError:
        return ""


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """Yield every way to cut at a ``=``: both sides may hold that sign themselves."""
    parts = text.split("=")
    for count in range(1, len(parts)):
        yield "=".join(parts[:count]), "=".join(parts[count:])


def _existing(file: str, text: str) -> Path:
    path = Path(file).expanduser().resolve()
    if not path.is_file():
        raise BadCallError(f"--data {text!r}: {str(path)!r} is no file")
    return path


def problem(withheld: WithheldFile, found: Mapping[str, Path]) -> str:
    """Return why the run cannot have this file here, or an empty string.

    Args:
        withheld: What the bundle states about it.
        found: From `supplied`.
    """
    path = found.get(withheld.name)
    if path is None:
        return (
            f"{withheld.name} is in the bundle by digest only; whoever holds it can "
            f"replay with --data {withheld.name}=FILE or --data FOLDER"
        )
    if path.is_dir():
        return f"{withheld.name}: no file below {str(path)!r} has its digest"
    try:
        digest = digest_file(path)
    except OSError as error:
        return f"{withheld.name}: {str(path)!r} cannot be read: {error.strerror}"
    if digest != withheld.blake3:
        return (
            f"{withheld.name}: {str(path)!r} is another file: its blake3 is "
            f"{digest[:12]}…, the reference read {withheld.blake3[:12]}…"
        )
    return ""
