"""``reprobundle sign``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.paths import local_path


@click.command()
@click.argument("file", type=local_path)
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your SSH key: private, or public with its other half in the agent or on a "
    "security key. By default the key that ssh would try first.",
)
@click.option(
    "--replay",
    "replays",
    multiple=True,
    metavar="ID",
    help="Sign this attached replay instead of the bundle: its first digits, or newest "
    "for all that the newest call of replay recorded.",
)
@click.option(
    "--acceptance",
    "acceptances",
    multiple=True,
    metavar="ID",
    help="Sign this attached acceptance record instead of the bundle.",
)
def sign(
    *,
    file: Path,
    key: Path | None,
    replays: tuple[str, ...],
    acceptances: tuple[str, ...],
) -> int:
    """Sign a bundle, what is attached to it, or replays that travel alone.

    The signature is made by ssh-keygen with your own key and attached outside the
    seal: neither the bundle's id nor an earlier signature changes. Signing a bundle
    says "this is my result"; signing a replay, "I ran this". To sign a replay that
    somebody else signed is to countersign it.
    """
    from reprobundle.sign.sign import default_key
    from reprobundle.sign.sign import sign as sign_file

    made = sign_file(
        file, key or default_key(), replays=replays, acceptances=acceptances
    )
    for signed in made:
        click.echo(
            f"signed {signed.subject.kind} {signed.subject.id} with "
            f"{signed.key.key_type} {signed.key.fingerprint}"
        )
    click.echo(f"check it: reprobundle verify {_quoted(file)} --signers FILE")
    return 0


def _quoted(path: Path) -> str:
    import shlex

    if path.name.endswith(".rpr.zip"):
        return f"BUNDLE --replay-file {shlex.quote(str(path))}"
    return shlex.quote(str(path))
