"""``reprobundle diff``."""

from __future__ import annotations

import sys
from contextlib import ExitStack

import click

from reprobundle.cli.data_use import override_option, show_data
from reprobundle.cli.options import json_option
from reprobundle.cli.paths import local_name


@click.command()
@click.argument("left", type=local_name)
@click.argument("right", required=False, type=local_name)
@override_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Show every change and array.")
def diff(
    *, left: str, right: str | None, override: str, as_json: bool, verbose: bool
) -> int:
    """Set two runs side by side: what was changed, and what came of it.

    LEFT and RIGHT are BUNDLE, BUNDLE:reference, BUNDLE:newest, BUNDLE:NUMBER (a sealed
    run) or BUNDLE:ID (a replay). With LEFT alone, its reference and the newest replay
    of that are compared. Exit status: 0 nothing differs, 10 something does.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.report.differences import render_differences
    from reprobundle.report.screen import Screen
    from reprobundle.verify.pairs.chosen_run import NEWEST, choose_run, named_bundle
    from reprobundle.verify.pairs.diff import diff_runs

    places = dict.fromkeys(map(named_bundle, (left, right or left)))
    show_data(places, override, what="a comparison", name="diff")
    with ExitStack() as stack:
        one = choose_run(left, stack)
        other = choose_run(right or f"{left}:{NEWEST}", stack)
        report = diff_runs(one, other)
        if as_json:
            shown = encode(report).decode()
        else:
            shown = render_differences(report, Screen.of(sys.stdout), verbose=verbose)
    click.echo(shown, nl=not as_json)
    return report.exit_status
