"""Options and small steps that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click

EXIT_INCOMPLETE = 11
DEVICES = ("as-is", "cpu", "cuda", "mps")

bundle_argument = click.argument("bundle", type=click.Path(path_type=Path))
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="Accept a warning by name; the verdict says so. CPU fallback, stand-in "
    "devices and reduced input can never be accepted.",
)


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def say(line: str) -> None:
    """Show one line of progress; results alone go to stdout."""
    click.echo(line, err=True)
