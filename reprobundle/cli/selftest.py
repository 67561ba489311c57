"""``reprobundle selftest``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reprobundle.cli.data_use import folder_of_copies, note, override_option, used_file
from reprobundle.cli.options import bundle_argument, json_option


@click.command()
@bundle_argument
@override_option
@json_option
def selftest(*, bundle: Path, override: str, as_json: bool) -> int:
    """Alter copies of a bundle in every forbidden way; the verifier must say no.

    The bundle itself is only read. Exit status 10 means that the verifier missed an
    alteration or gave another reason for its no.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.report.screen import Screen
    from reprobundle.report.selftested import render_selftest
    from reprobundle.verify.selftest.selftest import selftest as run_selftest

    use = used_file(bundle, override, what="a selftest, which copies it,")
    with folder_of_copies(use, prefix="reprobundle-selftest-") as folder:
        note(use, "members", folder)
        report = run_selftest(bundle, within=folder)
    if as_json:
        click.echo(encode(report).decode(), nl=False)
    else:
        click.echo(render_selftest(report, Screen.of(sys.stdout)))
    return report.exit_status
