"""``reprobundle wheels``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.options import bundle_argument
from reprobundle.cli.paths import named


@click.command()
@bundle_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    callback=named,
    help="Folder for the wheels.",
)
@click.option(
    "--target",
    metavar="NAME",
    required=True,
    help="Machine they are for: linux-x86_64, linux-aarch64 or macos-arm64.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="PACKAGE",
    help="Leave a package of the lock out.",
)
def wheels(*, bundle: Path, output: Path, target: str, without: tuple[str, ...]) -> int:
    """Fetch the wheels that a bundle's lock installs on another machine.

    That machine then needs no network: copy the folder there and call
    reprobundle replay --env fresh --wheels DIRECTORY. Every file has the locked
    digest. Where one is missing the call ends with status 20 and says which.
    """
    from reprobundle.format.reader import open_bundle
    from reprobundle.replay.wheel_folder import fetch_wheels
    from reprobundle.report import text
    from reprobundle.run.bundle_lock import locked_selection
    from reprobundle.run.package_origin import normalised

    with open_bundle(bundle) as opened:
        wanted, selection, _ = locked_selection(opened, target)
    fetched = fetch_wheels(
        selection,
        wanted,
        output,
        without=frozenset(map(normalised, without)),
        say=click.echo,
    )
    count = len(fetched.fetched) + len(fetched.present)
    click.echo(
        f"{text.plural(count, 'wheel')} for {wanted.name}, "
        f"{text.size(fetched.size_bytes)}, in {output} "
        f"({len(fetched.present)} lay there already)"
    )
    return 0
