"""Ask whether foreign code may run on this machine."""

from __future__ import annotations

import sys

import click


def consents(*, what: str) -> bool:
    """Tell whether the user agrees.

    Args:
        what: What runs the code, such as ``a replay``.

    Raises:
        click.UsageError: There is no terminal to ask.
    """
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{what} runs the bundle's code and there is no terminal to ask; "
            "read the command above and add --yes"
        )
    return click.confirm("Run this code on this machine?", err=True)
