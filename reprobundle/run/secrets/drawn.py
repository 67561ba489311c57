"""Values that look drawn although no telling name stands beside them.

A whole quoted text, or a whole value of a settings file, of 32 to 100 characters of
base64 that changes between capitals, small letters and digits as only chance does:
random ones change at three of five places, words written together at one of five. What
a digest, a checksum or an address of content introduces is left alone, as hexadecimal
is: neither can be told from a key by its looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from reprobundle.run.secrets.assignments import entropy
from reprobundle.run.secrets.runs import Words
from reprobundle.run.secrets.shapes import DOCUMENTED, is_placeholder

DRAWN = "high-entropy"
LEAST_ENTROPY = 4.2
LEAST_CHANGES = 0.4
LEAST_OF_A_KIND = 2
BEFORE_BYTES = 32

_PROGRAMS = frozenset({".py", ".ipynb", ".json", ".jsonl", ".sh", ".bash"})
_SETTINGS = frozenset(
    {".cfg", ".conf", ".env", ".envrc", ".ini", ".toml", ".yaml", ".yml"}
)
_LONG = Words(b"+-/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", 32)
_VALUE = rb"(?P<value>[A-Za-z0-9+/_-]{32,100}={0,2})"
_QUOTED = re.compile(rb"\\?[\"']" + _VALUE + rb"\\?[\"']")
_SET = re.compile(rb"(?:[:=][ \t]{0,4})" + _VALUE + rb"[ \t\r]{0,4}$", re.MULTILINE)
_ALONE = re.compile(rb"^" + _VALUE + rb"$", re.MULTILINE)
# Of each of these the value is a whole long word, at most so far behind its start.
_MOST_BEFORE = 5
_OTHER_THING = re.compile(
    rb"(?i)sha\d|digest|hash|integrity|checksum|etag|fingerprint|blake|md5|crc|base64,|"
    rb"public|signature|cell_?id|iVBORw0"
)


def found_drawn(path: str, text: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each value in a program or its settings.

    Args:
        path: Its name, or ``command`` for arguments, one a line.
        text: What stands there.
    """
    patterns = _patterns(path)
    words = list(_LONG.places(text)) if patterns else []
    for pattern in patterns:
        for match in _matches(pattern, text, words):
            start, end = match.span("value")
            before = text[max(0, start - BEFORE_BYTES) : start].rpartition(b"\n")[2]
            if not _OTHER_THING.search(before) and looks_drawn(match["value"]):
                yield DRAWN, start, end


def _matches(
    pattern: re.Pattern[bytes], text: bytes, words: list[tuple[int, int]]
) -> Iterator[re.Match[bytes]]:
    """Yield what ``pattern.finditer(text)`` does, looking at the long words alone."""
    position = 0
    for start, _ in words:
        for first in range(max(position, start - _MOST_BEFORE), start + 1):
            match = pattern.match(text, first)
            if match is not None:
                yield match
                position = match.end()
                break


def _patterns(path: str) -> tuple[re.Pattern[bytes], ...]:
    name = path.rpartition("/")[2].lower()
    if path == "command":
        return (_ALONE, _SET)
    suffix = suffix_of(name) or (".env" if name == ".env" else "")
    if suffix in _SETTINGS or name.startswith(".env"):
        return (_QUOTED, _SET)
    return (_QUOTED,) if suffix in _PROGRAMS else ()


def suffix_of(name: str) -> str:
    """Return the last suffix of a file's name, as `pathlib` has it, but quickly."""
    dot = name.rfind(".")
    return name[dot:] if 0 < dot < len(name) - 1 else ""


def looks_drawn(value: bytes) -> bool:
    """Whether all three kinds of characters change places as chance has it."""
    if is_placeholder(value) or _OTHER_THING.match(value):
        return False
    if any(example in value for example in DOCUMENTED):
        return False
    kinds = [_kind(character) for character in value.rstrip(b"=")]
    if min(map(kinds.count, "Aa0")) < LEAST_OF_A_KIND:
        return False
    changes = sum(one != other for one, other in pairwise(kinds) if one != "-" != other)
    return changes >= LEAST_CHANGES * len(kinds) and entropy(value) >= LEAST_ENTROPY


def _kind(character: int) -> str:
    one = chr(character)
    if one.isdigit():
        return "0"
    return "A" if one.isupper() else "a" if one.islower() else "-"
