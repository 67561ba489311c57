"""``reprobundle attach`` and ``reprobundle detach``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.options import bundle_argument
from reprobundle.cli.paths import local_path


@click.command()
@bundle_argument
@click.argument("replay_file", type=local_path, required=False)
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
@click.option(
    "--restore",
    is_flag=True,
    help="Attach nothing: put a bundle right whose change was cut off, by a kill or a "
    "loss of power. Any change does so first.",
)
def attach(
    *,
    bundle: Path,
    replay_file: Path | None,
    as_reference: bool,
    allow_sensitive: tuple[str, ...],
    restore: bool,
) -> int:
    """Attach a replay (.rpr.zip) or an acceptance record (.json) that travelled alone.

    It has to be of this bundle. The sealed part and the bundle id stay as they are.
    """
    if restore:
        return _restore(bundle)
    if replay_file is None:
        raise click.UsageError("name the file to attach, or --restore")
    document = _document(replay_file)
    if document:
        return _attach_acceptance(bundle, replay_file, document)
    from reprobundle.replay.refused import attach_admitted, forget

    if as_reference:
        from reprobundle.verify.linux_reference import require_linux_reference

        require_linux_reference(bundle, replay_file)
    attached = attach_admitted(bundle, replay_file, allow_sensitive)
    for identifier in attached:
        click.echo(f"attached replay {identifier}")
    if not attached:
        click.echo("its replays were attached before, and so are its signatures now")
    if forget(replay_file):
        click.echo(f"deleted {replay_file}, where the record was kept aside")
    return 0


def _restore(bundle: Path) -> int:
    from reprobundle.format.attach import restore_bundle

    undone = restore_bundle(bundle)
    click.echo(
        f"{bundle} is again as before the change that was cut off"
        if undone
        else f"no change of {bundle} was cut off"
    )
    return 0


def _document(path: Path) -> bytes:
    """Return a file's content if it is a JSON document, else nothing."""
    from reprobundle.format import limits
    from reprobundle.format.atomic import explained

    with explained(f"cannot read {str(path)!r}"), path.open("rb") as file:
        if file.read(1) != b"{":
            return b""
        file.seek(0)
        return file.read(limits.DOCUMENT_BYTES + 1)


def _attach_acceptance(bundle: Path, path: Path, document: bytes) -> int:
    from reprobundle.format.attach import attach_acceptance
    from reprobundle.verify.acceptance_records import decode_acceptance

    decode_acceptance(document, where=path.name)
    click.echo(f"attached acceptance record {attach_acceptance(bundle, document)}")
    return 0


@click.command()
@bundle_argument
@click.argument("what", metavar="ID|SIGNATURE")
def detach(*, bundle: Path, what: str) -> int:
    """Remove a replay or acceptance record, or one signature by its name.

    What is removed takes its signatures along; the sealed part stays as it is.
    `inspect` lists all of them.
    """
    from reprobundle.format.attach import detach_replay, detach_signature

    if what.startswith("signatures/"):
        detach_signature(bundle, what)
        click.echo(f"detached {what}")
        return 0
    detach_replay(bundle, what)
    click.echo(f"detached {what}")
    return 0
