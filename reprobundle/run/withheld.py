"""Files that a run needs and its bundle holds by digest only: who supplies them?

Whoever holds such a file names it with ``--data PATH=FILE``; its digest decides
whether it is the right one. A file that nobody supplies, or a wrong one, stops the
replay for the reason ``data``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.digests import digest_file
from reprobundle.format.record import WithheldFile

MOST_NAMED = 5


def supplied(texts: Sequence[str], withheld: Iterable[WithheldFile]) -> dict[str, Path]:
    """Return which local file stands for which withheld one.

    Args:
        texts: Values of ``--data``: ``PATH=FILE``, or ``FOLDER=FOLDER`` for all that
            is withheld below a folder. The last one given for a file counts.
        withheld: What the bundle holds by digest only.

    Returns:
        Name of the withheld file → absolute path. Contents are not read.

    Raises:
        BadCallError: A value is not of that form, names nothing that is withheld, or
            a local file is not there.
    """
    names = tuple(one.name for one in withheld)
    found: dict[str, Path] = {}
    for text in texts:
        found.update(_matches(text, names))
    return found


def _matches(text: str, names: Sequence[str]) -> dict[str, Path]:
    for path, file in _splits(text):
        if path in names:
            return {path: _existing(file, text)}
        folder = f"{path.rstrip('/')}/"
        below = [name for name in names if name.startswith(folder)]
        if below:
            top = Path(file)
            return {
                name: _existing(str(top / name.removeprefix(folder)), text)
                for name in below
            }
    if "=" not in text:
        raise BadCallError(
            f"--data {text!r} is not of the form PATH=FILE",
            advice="PATH is the name in the bundle, FILE your own copy of it",
        )
    known = ", ".join(names[:MOST_NAMED]) or "nothing"
    raise BadCallError(
        f"--data {text!r} names no withheld file",
        advice=f"this bundle withholds {known}",
    )


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
            f"replay with --data {withheld.name}=FILE"
        )
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
