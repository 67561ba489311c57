"""Which kind of output a file is, told by its content first and its name second.

The kind decides how two outputs are compared (spec.md, "Comparison"). A magic number
beats a suffix: a file named ``x.npy`` that holds text is text. Among texts only the
name tells a table from a document, since nearly every text is a legal CSV.
"""

from __future__ import annotations

from typing import NamedTuple

from reprobundle.format.record import OutputKind

HEAD_BYTES = 4096

_TEXT_SUFFIXES: dict[str, tuple[OutputKind, str]] = {
    ".csv": ("table", "csv"),
    ".tsv": ("table", "tsv"),
    ".json": ("document", "json"),
    ".jsonl": ("document", "jsonl"),
    ".ndjson": ("document", "jsonl"),
    ".ipynb": ("document", "notebook"),
    ".log": ("log", "text"),
}
_CHECKPOINT_SUFFIXES = (".pt", ".pth", ".ckpt", ".bin", ".tar")
_RECORDED = ("record:", "metric:")
_LARGEST_SAFETENSORS_HEADER = 100_000_000


class Kind(NamedTuple):
    """How an output is compared, and the format of its content."""

    kind: OutputKind
    format: str


BYTES = Kind("bytes", "bytes")
TEXT = Kind("text", "text")


def detect(name: str, head: bytes) -> Kind:
    """Return the kind and format of the output called `name`.

    Args:
        name: Output name as in the record: a path, ``record:<name>`` or
            ``metric:<name>``.
        head: The first `HEAD_BYTES` bytes of the content, or all of it if shorter.

    Returns:
        Where the content matches no known format: ``text`` for UTF-8 without NUL,
        otherwise ``bytes``. Images are bytes.
    """
    return _binary(name, head) or _textual(name, head) or BYTES


def _binary(name: str, head: bytes) -> Kind | None:
    if head.startswith(b"\x93NUMPY"):
        return Kind("arrays", "npy")
    if head.startswith(b"PK\x03\x04"):
        return _zipped(name, head)
    if _is_safetensors(head):
        return Kind("arrays", "safetensors")
    if _is_pickle(head) and name.lower().endswith(_CHECKPOINT_SUFFIXES):
        return Kind("arrays", "checkpoint")
    return None


def _zipped(name: str, head: bytes) -> Kind:
    """Tell numpy's and torch's ZIP files from all others by their first entry."""
    length = int.from_bytes(head[26:28], "little")
    first_entry = head[30 : 30 + length]
    if first_entry.endswith(b".npy"):
        return Kind("arrays", "npz")
    if first_entry.endswith(b"/data.pkl"):
        return Kind("arrays", "checkpoint")
    if name.lower().endswith(_CHECKPOINT_SUFFIXES):
        return Kind("arrays", "checkpoint")
    return BYTES


def _is_safetensors(head: bytes) -> bool:
    length = int.from_bytes(head[:8], "little")
    return head[8:9] == b"{" and 2 <= length <= _LARGEST_SAFETENSORS_HEADER


def _is_pickle(head: bytes) -> bool:
    return len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5


def _textual(name: str, head: bytes) -> Kind | None:
    if not _is_text(head):
        return None
    if name.startswith(_RECORDED):
        # A recorded value that is no tensor, and a printed number, are stored as JSON.
        return Kind("document", "json")
    for suffix, kind in _TEXT_SUFFIXES.items():
        if name.lower().endswith(suffix):
            return Kind(*kind)
    return TEXT


def _is_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        # A head of full length may end within a character; anything earlier is
        # not UTF-8.
        return len(head) == HEAD_BYTES and error.start >= HEAD_BYTES - 3
    return True
