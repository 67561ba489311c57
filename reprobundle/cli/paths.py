"""Take a bundle by its path, and by its address where that can be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from reprobundle.remote.address import Address

READERS = "inspect, verify, report, cat and extract"
STDIN_READERS = (
    "inspect, verify, report, cat, extract, check, issue, export, split and join"
)
STANDARD = Path("-")


def named(
    _context: click.Context, parameter: click.Parameter, path: Path | None
) -> Path | None:
    """Return a path; standard output takes texts, and one bundle from ``join``.

    Raises:
        click.UsageError: It is ``-``.
    """
    if path == STANDARD:
        raise click.UsageError(
            f"{parameter.opts[0]} names a file or folder and cannot be - (standard "
            "output): name one; a text or, by join, a whole bundle goes there"
        )
    return path


def local_path(text: str) -> Path:
    """Return a path; whoever gives another place is told what can be done with it.

    Raises:
        click.UsageError: It is an address, or ``-``.
        BadCallError: It is an address of a kind that nothing here reads.
    """
    path = path_or_standard_input(text)
    if path == STANDARD:
        raise click.UsageError(
            f"only {STDIN_READERS} read - (standard input): make a file of it first, "
            "reprobundle join - -o BUNDLE"
        )
    return path


def path_or_standard_input(text: str) -> Path:
    """Return a path, also ``-``.

    Raises:
        click.UsageError: It is an address.
        BadCallError: It is an address of a kind that nothing here reads.
    """
    if isinstance(path_or_address(text), Path):
        return Path(text)
    raise click.UsageError(
        f"only {READERS} read a bundle at an address: fetch it first"
    )


def local_name(text: str) -> str:
    """Return ``BUNDLE:RUN`` as it is, unless its bundle is an address.

    Raises:
        click.UsageError: It is an address, or ``-``.
        BadCallError: It is an address of a kind that nothing here reads.
    """
    local_path(text)
    return text


def path_or_address(text: str) -> Path | Address:
    """Return a path, or an address of one of the kinds that are read.

    Raises:
        BadCallError: It is an address of a kind that nothing here reads.
    """
    if "://" not in text:
        return Path(text)
    from reprobundle.remote.address import is_address, parse_address

    return parse_address(text) if is_address(text) else Path(text)
