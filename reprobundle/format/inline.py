"""A small bundle as text that survives a clipboard, and back (spec.md, 4.8).

Clipboards and issue forms change line ends, add blanks, indent, quote with ``>``, put
prose around a text and lose parts of it. So the text is a row of words: each line has
its number, its letters and a checksum of both, and nothing depends on blanks or on
where a line ends. What is lost is named by its place; what is there is proven by the
digest of the file.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from reprobundle.errors import EnvironmentUnusableError, InlineTextError
from reprobundle.format.atomic import explained
from reprobundle.format.digests import digest_bytes
from reprobundle.format.source import read_exactly

if TYPE_CHECKING:
    from reprobundle.format.reader import Bundle

BEGIN = "==== BEGIN REPROBUNDLE INLINE 1 ===="
END = "==== END REPROBUNDLE INLINE ===="
TEXT_BYTES = 16 << 20
"""Most text that is searched for a bundle."""

BUNDLE_BYTES = 64 << 20
"""Largest bundle that travels as text."""

LINE_LETTERS = 128
"""Letters of one line. Shorter ones cost an issue a tenth of its room."""

MOST_LINES = 99_999
DECODER_BYTES = 64 << 20
"""Memory that a text may ask its reader for."""

_FIELDS = ("name", "id", "blake3", "bytes", "lines")
_BEGIN = re.compile(r"BEGIN REPROBUNDLE INLINE(?: (\d{1,3}))?")
_END = re.compile(r"END REPROBUNDLE INLINE")
# What quoting and indenting put before a line; none of ours starts like this.
_MARGIN = re.compile(r"^(?:[\s>|*]|&gt;)+")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"), "")
_BLANKS = dict.fromkeys(map(ord, "\t\u00a0\u2007\u202f"), " ")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NUMBER = re.compile(r"[0-9]{1,8}")
_LETTERS = re.compile(r"[A-Za-z0-9+/]{1,128}={0,2}")
# xz makes a text 4 % shorter than zstd at its highest level. Text has no alignment, so
# no bits are spent on it.
_FILTERS = [{"id": 0x21, "preset": 9 | 1 << 31, "dict_size": 8 << 20, "pb": 0, "lc": 3}]


class Inline(NamedTuple):
    """What an inline text holds.

    Attributes:
        name: The file's name, safe on every system.
        bundle_id: The id that the text states; a reader of the file proves it.
        data: The file, byte for byte.
    """

    name: str
    bundle_id: str
    data: bytes


class _Word(NamedTuple):
    """One word between the markers, and the line of the text in which it stands."""

    text: str
    line: int


def encode_inline(inline: Inline) -> str:
    """Return the text; it depends on the file and on the release of xz alone.

    Raises:
        InlineTextError: The file is larger than a text may be.
    """
    if len(inline.data) > BUNDLE_BYTES:
        raise _too_large(len(inline.data))
    lzma = _lzma()
    packed = lzma.compress(inline.data, check=lzma.CHECK_CRC32, filters=_FILTERS)
    letters = base64.b64encode(packed).decode()
    rows = [
        letters[start : start + LINE_LETTERS]
        for start in range(0, len(letters), LINE_LETTERS)
    ]
    head = (
        safe_name(inline.name),
        inline.bundle_id,
        digest_bytes(inline.data),
        str(len(inline.data)),
        str(len(rows)),
    )
    return "\n".join(
        [
            BEGIN,
            *(f"{key} {value}" for key, value in zip(_FIELDS, head, strict=True)),
            *(_row(number, row) for number, row in enumerate(rows, 1)),
            END,
            "",
        ]
    )


def bundle_text(bundle: Bundle) -> str:
    """Return an open bundle, with all that is attached, as an inline text.

    Raises:
        InlineTextError: It is larger than a text may be.
        EnvironmentUnusableError: It cannot be read.
    """
    if bundle.size_bytes > BUNDLE_BYTES:
        raise _too_large(bundle.size_bytes)
    with explained(f"cannot read {bundle.path.name!r}"):
        data = read_exactly(bundle.anchor.file, 0, bundle.size_bytes)
    return encode_inline(Inline(bundle.path.name, bundle.id, data))


def text_characters(data: bytes) -> int:
    """Return how many characters `data` alone takes as the lines of a text."""
    lzma = _lzma()
    packed = lzma.compress(data, check=lzma.CHECK_CRC32, filters=_FILTERS)
    letters = -(-len(packed) // 3) * 4
    return letters + -(-letters // LINE_LETTERS) * len("00000  0000\n")


def _wrong(message: str, *, where: str = "", advice: str = "") -> InlineTextError:
    return InlineTextError(message, rule="R-4.40", where=where, advice=advice)


def _too_large(size_bytes: int) -> InlineTextError:
    message = f"{size_bytes:,} bytes, at most {BUNDLE_BYTES:,} travel as text"
    return _wrong(message, advice="attach the file itself")


def safe_name(name: str) -> str:
    """Return `name` with every character replaced that a text or shell could change."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-100:].lstrip(".-")
    return safe or "bundle.rpb.zip"


def decode_inline(text: str) -> Inline:
    """Return what the one inline bundle in `text` holds, proven by its digest.

    Raises:
        InlineTextError: There is none or more than one, a line is missing, cut or
            changed, or the whole is not what was written.
    """
    words = list(_words(text))
    stated = _stated(words)
    letters = "".join(_rows(words[2 * len(_FIELDS) :], int(stated["lines"])))
    return Inline(stated["name"], stated["id"], _unpacked(letters, stated))


def holds_inline(text: str) -> bool:
    """Return whether an inline bundle starts somewhere in `text`."""
    return _BEGIN.search(text) is not None


def _row(number: int, letters: str) -> str:
    return f"{number:05d} {letters} {_checksum(number, letters)}"


def _checksum(number: int, letters: str) -> str:
    """Return the low 16 bits of a CRC-32: for slips; the digest finds the rest."""
    return f"{zlib.crc32(f'{number:05d} {letters}'.encode()) & 0xFFFF:04x}"


def _words(text: str) -> Iterator[_Word]:
    """Yield the words between the markers.

    Raises:
        InlineTextError: There is not exactly one pair of markers.
    """
    lines = text.translate(_INVISIBLE | _BLANKS).splitlines()
    starts = [number for number, line in enumerate(lines) if _BEGIN.search(line)]
    if not starts:
        raise _wrong(
            "no inline bundle is in this text",
            advice=f"copy it from the line {BEGIN!r} on",
        )
    if len(starts) > 1:
        places = ", ".join(str(number + 1) for number in starts[:5])
        raise _wrong(
            f"{len(starts)} inline bundles start in this text, at lines {places}",
            advice="paste one of them",
        )
    first = starts[0]
    match = _check_version(lines[first], first + 1)
    # Where somebody joined the lines, the rest stands behind the marker.
    lines[first] = lines[first][match.end() :]
    for number, line in enumerate(lines[first:], first + 1):
        end = _END.search(line)
        yield from _split(line[: end.start()] if end else line, number)
        if end:
            return
    yield _Word("", len(lines))


def _check_version(line: str, number: int) -> re.Match[str]:
    match = _BEGIN.search(line)
    if match is None or match[1] != "1":
        raise _wrong(
            "it starts like an inline bundle of another version",
            where=f"line {number}",
            advice="update reprobundle, or copy that line whole",
        )
    return match


def _split(line: str, number: int) -> Iterator[_Word]:
    for word in _MARGIN.sub("", line).split():
        if word.strip("="):
            yield _Word(word, number)


def _stated(words: Sequence[_Word]) -> dict[str, str]:
    """Return the fields that stand before the lines."""
    patterns = (_NAME, _DIGEST, _DIGEST, _NUMBER, _NUMBER)
    stated = {}
    for place, (key, pattern) in enumerate(zip(_FIELDS, patterns, strict=True)):
        pair = words[2 * place : 2 * place + 2]
        if len(pair) < 2 or pair[0].text != key or not pattern.fullmatch(pair[1].text):
            raise _wrong(
                f"{key!r} and its value are due here, got "
                f"{' '.join(word.text for word in pair)[:80]!r}",
                where=_where(pair),
                advice="copy the text again, whole",
            )
        stated[key] = pair[1].text
    size_bytes, lines = int(stated["bytes"]), int(stated["lines"])
    if not 0 < size_bytes <= BUNDLE_BYTES or not 0 < lines <= MOST_LINES:
        message = f"{size_bytes:,} bytes in {lines:,} lines are more than a text holds"
        raise _wrong(message, where=_where(words[:10]))
    return stated


def _where(words: Sequence[_Word]) -> str:
    return f"line {words[0].line}" if words else "the end of the text"


def _rows(words: Sequence[_Word], count: int) -> Iterator[str]:
    """Yield the letters of each line, in order.

    Raises:
        InlineTextError: It names the first line that is not as it was written.
    """
    for number in range(1, count + 1):
        three = words[3 * number - 3 : 3 * number]
        due = f"line {number} of {count} of the bundle"
        if not three or not three[0].text:
            raise _wrong(
                f"it ends where {due} is due: the text was cut off",
                where=_where(three),
                advice="copy it again, to its last line",
            )
        got = " ".join(word.text for word in three)
        if three[0].text != f"{number:05d}":
            raise _wrong(
                f"{due} is missing or cut, got {got[:40]!r}",
                where=_where(three),
                advice="copy the text again, whole",
            )
        if len(three) < 3 or got != _row(number, three[1].text):
            raise _wrong(
                f"{due} is cut or was changed: its checksum is another",
                where=_where(three),
                advice="copy the text again, whole",
            )
        if not _LETTERS.fullmatch(three[1].text):
            message = f"{due} holds other characters than base64"
            raise _wrong(message, where=_where(three))
        yield three[1].text
    rest = [word for word in words[3 * count :] if word.text]
    if rest:
        message = f"{rest[0].text[:40]!r} stands behind the last line of the bundle"
        raise _wrong(message, where=_where(rest))
    if words[3 * count :]:
        # Only the end of the text gives an empty word: the closing line is not there.
        message = f"the closing line {END!r} is missing"
        raise _wrong(message, where=_where(words[3 * count :]))


def _unpacked(letters: str, stated: dict[str, str]) -> bytes:
    lzma = _lzma()
    size_bytes = int(stated["bytes"])
    decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, DECODER_BYTES)
    try:
        packed = base64.b64decode(letters, validate=True)
        data: bytes = decoder.decompress(packed, max_length=size_bytes + 1)
    except (ValueError, EOFError, lzma.LZMAError) as error:
        message = f"its lines do not decode: {str(error)[:80]}"
        raise _wrong(message, advice="export it again") from error
    if len(data) != size_bytes or digest_bytes(data) != stated["blake3"]:
        raise _wrong(
            "the file that it holds does not have the digest that it states",
            advice="copy or export the text again",
        )
    return data


def _lzma() -> ModuleType:
    """Return the standard library's xz, which a Python built by hand may lack.

    Raises:
        EnvironmentUnusableError: This one lacks it.
    """
    try:
        return import_module("lzma")
    except ImportError as error:
        raise EnvironmentUnusableError(
            "this Python was built without lzma, which inline texts need",
            advice="use another Python, or give the bundle as a file",
        ) from error
