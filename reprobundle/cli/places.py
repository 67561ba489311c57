"""Take a bundle by its path or by its address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import note, used
from reprobundle.cli.options import say, size_bytes
from reprobundle.cli.paths import path_or_address
from reprobundle.cli.standard_input import bundle_file

if TYPE_CHECKING:
    from reprobundle.format.source import Place
    from reprobundle.remote.address import Address
    from reprobundle.remote.remote_file import RemoteFile

    Given = Path | Address


def _limit(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> int | None:
    return None if text is None else size_bytes(text)


def place_argument(command: Callable[..., int]) -> Callable[..., int]:
    """Take a bundle here or elsewhere, and how much of it may be fetched."""
    option = click.option(
        "--download-limit",
        metavar="SIZE",
        callback=_limit,
        help="For a bundle at an address whose server gives no parts: fetch all of it, "
        "if it is no larger.",
    )
    argument = click.argument("bundle", type=path_or_address)
    return argument(option(command))


@contextmanager
def reached(
    given: Given, download_limit: int | None, *, whole: bool, override: str = ""
) -> Iterator[Path | Place]:
    """Give what can be opened: a file here, or the one at the address.

    At the end it says on standard error how much was fetched from there, whatever
    happened.

    Args:
        given: The argument.
        download_limit: The option, in bytes.
        whole: Whether all of the bundle is going to be read: it is fetched now.
        override: Why its policy's rules about data are not followed; they are asked
            before it is fetched.

    Raises:
        DataRuleError: The rules are against it, and nobody overrides them.
    """
    if isinstance(given, Path):
        with bundle_file(given) as path:
            yield path
        return
    from reprobundle.remote.remote_file import RemoteFile

    with RemoteFile(given, download_limit_bytes=download_limit) as remote:
        try:
            if whole:
                _fetch(remote, override)
            yield remote
        finally:
            _tell(remote)


def _fetch(remote: RemoteFile, override: str) -> None:
    from reprobundle.errors import BundleError
    from reprobundle.format.reader import open_listing
    from reprobundle.report.progress import progress

    # What is no bundle is not fetched; the caller will say so in its own way.
    with suppress(BundleError), open_listing(remote) as listed:
        use = used(listed, override, what="fetching it")
        note(use, "bundle", f"a nameless temporary file, of {remote.address}")
        with progress("fetching", listed.size_bytes) as advance:
            remote.progress = advance
            remote.open().fetch_all()
        remote.progress = lambda _: None


def _tell(remote: RemoteFile) -> None:
    from reprobundle.report import text

    if not remote.requests:
        return
    size = "" if remote.size_bytes is None else f" of {text.size(remote.size_bytes)}"
    requests = text.plural(remote.requests, "request")
    got = text.size(remote.received_bytes)
    say(f"fetched from {remote.address}: {requests}, {got}{size}")
    if remote.size_bytes is not None and remote.requests > 1 and not remote.watched:
        say(
            "NOT CHECKED: whether the file stayed the same between these requests: "
            "its server names no version of it (ETag, Last-Modified)"
        )
