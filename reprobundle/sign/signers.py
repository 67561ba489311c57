"""Files that say whose keys are whose.

Two forms are read: OpenSSH's allowed_signers, and a plain list of public keys as a code
host publishes them for one person, whose name is then that of the file.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from reprobundle.errors import BadCallError
from reprobundle.format.atomic import explained
from reprobundle.format.signature import fingerprint

_LIMIT_BYTES = 4 << 20
_KEY_TYPES = ("ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-")


class Signers(NamedTuple):
    """Whose keys are whose, according to the caller.

    Attributes:
        document: In the form of allowed_signers.
        revoked: List of keys that were withdrawn, or None.
        at: When a key must be valid, ``YYYYMMDD[HHMM[SS]]``; empty for now.
    """

    document: bytes
    revoked: Path | None = None
    at: str = ""


def stated_signers(
    paths: Iterable[Path], *, revoked: Path | None = None, at: str = ""
) -> Signers:
    """Return what the caller says about keys, read and checked.

    Args:
        paths: Lists of whose keys are whose.
        revoked: List of keys that were withdrawn.
        at: When a key must be valid, ``YYYYMMDD[HHMM[SS]]``; empty for now.

    Raises:
        BadCallError: A list names no key, `revoked` is no file, or `at` is no time.
        EnvironmentUnusableError: A list cannot be read.
    """
    if at and (len(at) not in (8, 12, 14) or not at.isdecimal()):
        raise BadCallError(f"{at!r} is no time", advice="write it YYYYMMDD[HHMM[SS]]")
    if revoked is not None and not revoked.is_file():
        raise BadCallError(f"no list of withdrawn keys at {str(revoked)!r}")
    return Signers(read_signers(paths), revoked, at)


def names_of_key(document: bytes, key: str) -> list[str]:
    """Return every name that a list gives one key, on whatever line.

    It tells who is the same person; whether the key counts, only ssh-keygen says.

    Args:
        document: In the form of allowed_signers.
        key: Fingerprint of the key.
    """
    names: list[str] = []
    for line in _lines(document):
        listed, found = _names_and_key(line)
        if found and _fingerprint_of(found) == key:
            names += [name.strip() for name in listed.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _names_and_key(line: str) -> tuple[str, str]:
    """Return the names and the key of a line of allowed_signers, if it has them."""
    if line.startswith('"'):
        listed, _, rest = line[1:].partition('"')
    else:
        listed, _, rest = line.replace("\t", " ").partition(" ")
    words = rest.split()
    for kind, key in pairwise(words):
        if kind.startswith(_KEY_TYPES):
            return listed, key
    return listed, ""


def _lines(document: bytes) -> list[str]:
    """Return the lines as ssh-keygen counts them.

    Python would end a line at a form feed or a Unicode separator too, and what stands
    behind one in a comment would become a line of its own: another person's key.
    """
    return document.decode("utf-8", "replace").split("\n")


def _fingerprint_of(key: str) -> str:
    try:
        return fingerprint(base64.b64decode(key, validate=True))
    except ValueError:
        return ""


def read_signers(paths: Iterable[Path]) -> bytes:
    """Return the files at `paths` as one document in the form of allowed_signers.

    Raises:
        BadCallError: One of them names no key, or is too large.
        EnvironmentUnusableError: One of them cannot be read.
    """
    return b"".join(_read(path) for path in paths)


def _read(path: Path) -> bytes:
    with explained(f"cannot read {str(path)!r}"):
        size_bytes = path.stat().st_size
        if size_bytes > _LIMIT_BYTES:
            raise BadCallError(
                f"{path.name}: {size_bytes:,} bytes, a list of signers has at most "
                f"{_LIMIT_BYTES:,}"
            )
        lines = [line.strip() for line in _lines(path.read_bytes())]
    kept = [_allowed(line, path) for line in lines if line and not line.startswith("#")]
    if not kept:
        raise BadCallError(
            f"{path.name} names no signer",
            advice="give lines 'NAME KEYTYPE KEY', or a file of public keys named "
            "after their owner",
        )
    return "".join(f"{line}\n" for line in kept).encode()


def _allowed(line: str, path: Path) -> str:
    """Return one line in the form of allowed_signers."""
    if _is_key(line):
        kind, key, *_ = line.split()
        return f'"{_owner(path)}" namespaces="reprobundle" {kind} {key}'
    if any(word.startswith(_KEY_TYPES) for word in line.split()[1:]):
        return line
    raise BadCallError(
        f"{path.name}: no key in the line {line[:60]!r}",
        advice="write 'NAME KEYTYPE KEY'",
    )


def _is_key(line: str) -> bool:
    return line.startswith(_KEY_TYPES) and len(line.split()) > 1


def _owner(path: Path) -> str:
    """Return whose keys a plain list holds: the file's name without its endings."""
    name = path.name.removesuffix(".pub").removesuffix(".keys")
    return "".join("_" if letter in ' ",\t*?!' else letter for letter in name) or "?"
