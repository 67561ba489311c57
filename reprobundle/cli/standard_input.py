"""A bundle from standard input: the file itself, or a text out of a clipboard."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from reprobundle.cli.paths import STANDARD, path_or_standard_input

_ZIP = b"PK\x03\x04"
_PIECE_BYTES = 1 << 20


@contextlib.contextmanager
def bundle_file(bundle: Path) -> Iterator[Path]:
    """Give the file of a bundle; for ``-`` one that is there as long as this lasts.

    Raises:
        InlineTextError: Standard input holds no bundle, or not all of one.
        EnvironmentUnusableError: There is no room for it.
    """
    if bundle != STANDARD:
        yield bundle
        return

    from reprobundle.format.atomic import explained
    from reprobundle.temporary.guarded import owned_folder

    with owned_folder("reprobundle-stdin-") as folder:
        with explained("cannot keep the bundle of standard input"):
            path = _received(sys.stdin.buffer, folder)
        yield path


def bundle_or_standard_input(command: Callable[..., int]) -> Callable[..., int]:
    """Take a bundle by its path or from standard input; the command gets a file."""

    @functools.wraps(command)
    def with_file(*, bundle: Path, **given: Any) -> int:  # noqa: ANN401 -- its options
        with bundle_file(bundle) as path:
            return command(bundle=path, **given)

    return click.argument("bundle", type=path_or_standard_input)(with_file)


def send(file: Path) -> None:
    """Write a file to standard output as it is."""
    out = sys.stdout.buffer
    with file.open("rb") as content:
        while piece := content.read(_PIECE_BYTES):
            out.write(piece)
    out.flush()


def _received(stream: BinaryIO, folder: Path) -> Path:
    if sys.stdin.isatty():
        click.echo("paste the text of the bundle, then press Ctrl-D", err=True)
    start = stream.read(len(_ZIP))
    if start == _ZIP:
        return _copied(start, stream, folder)
    from reprobundle.errors import InlineTextError
    from reprobundle.format.inline import TEXT_BYTES, decode_inline

    text = start + stream.read(TEXT_BYTES)
    if len(text) > TEXT_BYTES:
        message = f"standard input holds more than {TEXT_BYTES:,} bytes of text"
        advice = "give the bundle as a file"
        raise InlineTextError(message, rule="R-4.40", advice=advice)
    inline = decode_inline(_decoded(text))
    path = folder / inline.name
    path.write_bytes(inline.data)
    _check_id(path, inline.bundle_id)
    return path


def _decoded(text: bytes) -> str:
    """Return text in the encodings of clipboards: UTF-8, or UTF-16 with a BOM."""
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return text.decode("utf-16", errors="replace")
    return text.decode("utf-8", errors="replace")


def _copied(start: bytes, stream: BinaryIO, folder: Path) -> Path:
    path = folder / "standard-input.rpb.zip"
    with path.open("wb") as file:
        file.write(start)
        while piece := stream.read(_PIECE_BYTES):
            file.write(piece)
    return path


def _check_id(path: Path, stated: str) -> None:
    """Refuse a text that names another bundle than it holds.

    Raises:
        InlineTextError: The ids differ.
        BundleError: The file is no bundle.
    """
    from reprobundle.errors import InlineTextError
    from reprobundle.format.reader import open_bundle

    with open_bundle(path) as bundle:
        if bundle.id != stated:
            raise InlineTextError(
                f"it states the bundle id {stated[:12]}…, "
                f"its file is {bundle.id[:12]}…",
                rule="R-4.40",
                advice="export it again",
            )
