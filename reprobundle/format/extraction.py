"""Write members of a bundle as plain files into a new folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from blake3 import blake3

from reprobundle.errors import (
    BadCallError,
    DigestError,
    EnvironmentUnusableError,
)
from reprobundle.format.atomic import explained
from reprobundle.format.content import Content
from reprobundle.format.creatable import check_creatable, this_system
from reprobundle.format.frames import Span
from reprobundle.format.manifest import MANIFEST_PATH
from reprobundle.format.parallel import in_order
from reprobundle.format.positions import flags

if TYPE_CHECKING:
    from reprobundle.format.reader import Bundle

INLINE_BYTES = 4 << 20
_FLAGS = flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW")


def extract(
    bundle: Bundle,
    into: Path,
    *,
    paths: Iterable[str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write sealed members as plain files into the new folder `into`.

    Digests are checked while writing. The folder appears whole: on any failure nothing
    is left behind. Files get the permissions 0644, executable ones 0755, less what the
    umask takes away.

    Args:
        bundle: An open bundle.
        into: A folder that does not exist yet.
        paths: The members wanted; None for all of them and the manifest.
        progress: Called in this thread with the number of plain bytes just written.

    Raises:
        BadCallError: `into` exists.
        MissingMemberError: A path is not in the bundle.
        DigestError: Content is not what was sealed.
        StructureError: Content cannot be decompressed.
        EnvironmentUnusableError: There is not enough room, or writing failed.
    """
    wanted = [*bundle.members, MANIFEST_PATH] if paths is None else dict.fromkeys(paths)
    contents = [bundle.content(path) for path in wanted]
    with explained(f"cannot extract into {str(into)!r}"):
        temporary = into.parent / f".reprobundle-{os.urandom(8).hex()}.part"
        for folder in (temporary, into):
            check_creatable(wanted, folder.absolute(), this_system())
        # Only now: a name that is too long cannot even be looked at.
        if into.is_symlink() or into.exists():
            raise BadCallError(
                f"{str(into)!r} exists already", advice="name a folder that does not"
            )
        _check_room(into.parent, sum(content.size_bytes for content in contents))
        temporary.mkdir(mode=0o700)
        try:
            _write_files(bundle, contents, temporary, progress or (lambda _: None))
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o755 & ~umask)
            temporary.rename(into)
        except BaseException:
            import shutil

            shutil.rmtree(temporary, ignore_errors=True)
            raise


def _check_room(folder: Path, size_bytes: int) -> None:
    import shutil

    free_bytes = shutil.disk_usage(folder).free
    if size_bytes > free_bytes:
        raise EnvironmentUnusableError(
            f"{size_bytes:,} bytes do not fit on the disk of {str(folder)!r}, "
            f"{free_bytes:,} are free",
            advice="make room or extract elsewhere",
        )


class _Piece(NamedTuple):
    """One chunk of a content; an empty content has one without a span."""

    content: Content
    span: Span | None
    is_last: bool


def _pieces(contents: Sequence[Content]) -> Iterator[_Piece]:
    for content in contents:
        left = content.size_bytes
        if not left:
            yield _Piece(content, None, True)
        for span in content.spans():
            left -= span.plain_bytes
            yield _Piece(content, span, left == 0)


def _load(piece: _Piece) -> bytes:
    return b"" if piece.span is None else piece.content.load(piece.span)


def _write_files(
    bundle: Bundle,
    contents: Sequence[Content],
    folder: Path,
    report: Callable[[int], None],
) -> None:
    workers = (
        1 if sum(content.size_bytes for content in contents) < INLINE_BYTES else None
    )
    stream: BinaryIO | None = None
    hasher = blake3()
    try:
        for piece, plain in in_order(_pieces(contents), _load, workers=workers):
            if stream is None:
                stream = _create(bundle, piece.content.name, folder)
                hasher = blake3()
            stream.write(plain)
            hasher.update(plain)
            report(len(plain))
            if piece.is_last:
                stream.close()
                stream = None
                _check_digest(piece.content, str(hasher.hexdigest()))
    finally:
        if stream is not None:
            stream.close()


def _create(bundle: Bundle, name: str, folder: Path) -> BinaryIO:
    path = folder / name
    # Every folder here was made by this call, so none of them can be a link.
    path.parent.mkdir(parents=True, exist_ok=True)
    member = bundle.members.get(name)
    mode = 0o755 if member is not None and member.executable else 0o644
    return os.fdopen(os.open(path, _FLAGS, mode), "wb", buffering=0)


def _check_digest(content: Content, got: str) -> None:
    if got != content.digest:
        raise DigestError(content.name, expected=content.digest, got=got, rule="R-4.25")
