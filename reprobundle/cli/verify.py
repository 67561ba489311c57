"""``reprobundle verify``."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import override_option
from reprobundle.cli.options import (
    allow_option,
    json_option,
    own_policy,
    signers_options,
    stated_signers,
)
from reprobundle.cli.places import place_argument, reached

if TYPE_CHECKING:
    from reprobundle.cli.places import Given
    from reprobundle.format.source import Place
    from reprobundle.report.early import EarlyLines
    from reprobundle.verify.asked import SoFar


@click.command()
@place_argument
@override_option
@click.option(
    "--integrity", is_flag=True, help="Check integrity and completeness only."
)
@click.option("--deep", is_flag=True, help="Prove the chunk digests too.")
@click.option("--replay", "replay_id", metavar="ID", help="Judge this replay only.")
@click.option(
    "--replay-file",
    type=click.Path(path_type=Path),
    help="Judge a replay that travels alone (.rpr.zip).",
)
@click.option("--expect-id", metavar="ID", help="The bundle id you were told.")
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    help="Your own policy (JSON), judged and shown beside the author's. The exit "
    "status follows the author's.",
)
@click.option(
    "--acceptance",
    is_flag=True,
    help="Assess it for acceptance too: objects, path, list, recommendation.",
)
@signers_options
@allow_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every finding.")
def verify(
    *,
    bundle: Given,
    download_limit: int | None,
    override: str,
    integrity: bool,
    deep: bool,
    replay_id: str | None,
    replay_file: Path | None,
    expect_id: str | None,
    policy: Path | None,
    acceptance: bool,
    signers: tuple[Path, ...],
    revoked: Path | None,
    at: str,
    allow: tuple[str, ...],
    as_json: bool,
    verbose: bool,
) -> int:
    """Judge a bundle: is it whole, and did the replays give the same result?

    Needs no torch and no network, and executes nothing of the bundle. BUNDLE may be -:
    a file or a pasted text from standard input. It may be an address (https://, s3://,
    gs://): all of it is fetched then, for what is not read is not judged.
    """
    from reprobundle.report.progress import progress
    from reprobundle.verify.verify import verify_bundle

    lines = None if as_json else _lines(verbose=verbose)
    with (
        reached(bundle, download_limit, whole=True, override=override) as place,
        ExitStack() as bar,
    ):
        report = verify_bundle(
            place,
            integrity_only=integrity,
            deep=deep,
            replay=replay_id,
            replay_file=replay_file,
            expect_id=expect_id,
            allow=allow,
            own_policy=own_policy(policy),
            acceptance=acceptance,
            signers=stated_signers(signers, revoked, at),
            progress=bar.enter_context(progress("checking digests", _size(place))),
            told=partial(_told, lines, bar) if lines else None,
        )
    if lines is None:
        from reprobundle.report.json import report_json

        click.echo(report_json(report).decode(), nl=False)
    else:
        lines.end(report)
    return report.exit_status


def _lines(*, verbose: bool) -> EarlyLines:
    from reprobundle.report.early import EarlyLines
    from reprobundle.report.screen import Screen

    # It flushes: whoever waits at the other end of a pipe sees each line at once, too.
    show = partial(click.echo, nl=False)
    return EarlyLines(show, Screen.of(sys.stdout), verbose=verbose)


def _told(lines: EarlyLines, bar: ExitStack, known: SoFar) -> None:
    if known.findings:
        bar.close()  # no line is to end up beside it
    lines.tell(known)


def _size(place: Path | Place) -> int | None:
    if isinstance(place, Path) and place.is_file():
        return place.stat().st_size
    return None
