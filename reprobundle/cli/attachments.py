"""``reprobundle attach`` and ``reprobundle detach``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.options import bundle_argument


@click.command()
@bundle_argument
@click.argument("replay_file", type=click.Path(path_type=Path))
@click.option(
    "--as-reference",
    is_flag=True,
    help="Attach it only if it brings the Linux reference that the bundle lacks: a "
    "record that its maker marked with replay --as-reference.",
)
@click.option(
    "--allow-sensitive",
    multiple=True,
    metavar="[KIND@]PATH",
    help="Attach what looks like a secret or personal data there; the record says so. "
    "A replay whose record was refused names the file in which it is kept.",
)
def attach(
    *,
    bundle: Path,
    replay_file: Path,
    as_reference: bool,
    allow_sensitive: tuple[str, ...],
) -> int:
    """Attach a replay that travelled alone (.rpr.zip) to its bundle."""
    from reprobundle.replay.refused import attach_admitted, forget

    if as_reference:
        from reprobundle.verify.linux_reference import require_linux_reference

        require_linux_reference(bundle, replay_file)
    for identifier in attach_admitted(bundle, replay_file, allow_sensitive):
        click.echo(f"attached replay {identifier}")
    if forget(replay_file):
        click.echo(f"deleted {replay_file}, where the record was kept aside")
    return 0


@click.command()
@bundle_argument
@click.argument("replay_id")
def detach(*, bundle: Path, replay_id: str) -> int:
    """Remove the newest attached replay; the sealed part stays as it is."""
    from reprobundle.format.attach import detach_replay

    detach_replay(bundle, replay_id)
    click.echo(f"detached replay {replay_id}")
    return 0
