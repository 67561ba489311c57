"""Scan one content: what of it is read, and which places look sensitive.

Text is read whole up to 64 MiB, beyond that in sixteen windows of 1 MiB at even
distances. Of other content only the first MiB is searched, for known tokens: settings
and metadata stand at the start, and numbers do not look like tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from reprobundle.format.digests import digest_bytes
from reprobundle.run.secrets.assignments import found_assignments
from reprobundle.run.secrets.drawn import found_drawn, suffix_of
from reprobundle.run.secrets.personal import personal_columns
from reprobundle.run.secrets.shapes import found_shapes

WHOLE_BYTES = 64 << 20
WINDOW_BYTES = 1 << 20
WINDOWS = 16
DOCUMENT_BYTES = 8 << 20

PERSONAL = "personal-column"
HOME = "home-path"

_SETTINGS = frozenset(
    {
        ".bash",
        ".cfg",
        ".conf",
        ".config",
        ".env",
        ".envrc",
        ".ini",
        ".log",
        ".netrc",
        ".npmrc",
        ".properties",
        ".pypirc",
        ".sh",
        ".tfvars",
        ".toml",
        ".txt",
        ".yaml",
        ".yml",
    }
)


class Sensitive(NamedTuple):
    """One place that looks sensitive; never what stands there.

    Attributes:
        kind: Such as ``github-token`` or ``personal-column``.
        path: Where, as a user names it.
        line: From 1; 0 where lines mean nothing.
        detail: Name of a personal column, else empty.
    """

    kind: str
    path: str
    line: int
    detail: str = ""


def scan_text(path: str, text: bytes, *, first_line: int = 1) -> list[Sensitive]:
    """Return the sensitive places in `text`, in order.

    Args:
        path: Its name, which also tells whether values there need quotes.
        text: Content or a window of it.
        first_line: Number of its first line.
    """
    named = sensitive_spans(text, is_settings=_is_settings(path))
    spans = _merged(chain(named, found_drawn(path, text)))
    found = []
    line, seen = first_line, 0
    for kind, start, _ in spans:
        line += text.count(b"\n", seen, start)
        seen = start
        found.append(Sensitive(kind, path, line))
    return list(dict.fromkeys(found))


def sensitive_spans(
    text: bytes, *, is_settings: bool
) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of everything in `text` that looks like a secret."""
    yield from found_shapes(text)
    yield from found_assignments(text, is_settings=is_settings)


def _merged(spans: Iterator[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Return the spans in order; of two that overlap the more specific one."""
    kept: list[tuple[str, int, int]] = []
    for kind, start, end in spans:
        if not any(start < other[2] and other[1] < end for other in kept[-200:]):
            kept.append((kind, start, end))
    return sorted(kept, key=lambda span: span[1])


def redacted(text: str) -> str:
    """Return `text` with every known token and telling value replaced by its kind."""
    data = text.encode(errors="replace")
    for kind, start, end in reversed(_merged(sensitive_spans(data, is_settings=True))):
        data = data[:start] + f"[{kind}]".encode() + data[end:]
    return data.decode(errors="replace")


def scan_bytes(path: str, data: bytes) -> list[Sensitive]:
    """Return the sensitive places of a content that is in memory."""
    if is_text(data):
        return [*scan_text(path, data), *_personal(path, data)]
    return _scan_binary(path, data[:WINDOW_BYTES])


Scan = Callable[[str, bytes], list[Sensitive]]


class Remembered:
    """`scan_bytes` that does not look a second time through the same content.

    The same is what has the same name and the same BLAKE3 digest, wherever it lies and
    whatever its times say.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[Sensitive]] = {}

    def __call__(self, path: str, data: bytes) -> list[Sensitive]:
        """Return the sensitive places of a content that is in memory."""
        key = (path, digest_bytes(data))
        if key not in self._found:
            self._found[key] = scan_bytes(path, data)
        return self._found[key]


def scan_file(
    path: str, file: Path, *, home: bytes = b"", scan: Scan = scan_bytes
) -> list[Sensitive]:
    """Return the sensitive places of a file.

    Args:
        path: Its name as the user knows it.
        file: Where its content lies.
        home: A folder whose name is a place of the kind ``home-path``, the first time
            it stands in a text; empty for none.
        scan: Looks through a content that is in memory.
    """
    size_bytes = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(WINDOW_BYTES)
        if not is_text(start):
            return _scan_binary(path, start)
        if size_bytes <= WHOLE_BYTES:
            data = start + stream.read()
            return [*scan(path, data), *_home(path, data, home)]
        found = [*scan_text(path, start), *_personal(path, start)]
        last = size_bytes - WINDOW_BYTES
        for number in range(1, WINDOWS):
            stream.seek(number * last // (WINDOWS - 1))
            window = scan_text(path, stream.read(WINDOW_BYTES))
            found += [place._replace(line=0) for place in window]
    return list(dict.fromkeys(found))


def _home(path: str, data: bytes, home: bytes) -> list[Sensitive]:
    start = data.find(home) if home else -1
    if start < 0 or data[start + len(home) :][:1].isalnum():
        return []
    return [Sensitive(HOME, path, 1 + data.count(b"\n", 0, start))]


def is_text(data: bytes) -> bool:
    """Whether `data` is text: no NUL byte in its first 8 KiB."""
    return b"\0" not in data[:8192]


def _scan_binary(path: str, data: bytes) -> list[Sensitive]:
    kinds = dict.fromkeys(kind for kind, _, _ in found_shapes(data))
    return [Sensitive(kind, path, 0) for kind in kinds]


def _personal(path: str, data: bytes) -> list[Sensitive]:
    whole = path.lower().endswith(".json") and len(data) <= DOCUMENT_BYTES
    text = (data if whole else data[:WINDOW_BYTES]).decode(errors="replace")
    return [
        Sensitive(PERSONAL, path, line, column)
        for column, line in personal_columns(path, text)
    ]


def _is_settings(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return suffix_of(name) in _SETTINGS or name.startswith((".env", ".netrc"))
