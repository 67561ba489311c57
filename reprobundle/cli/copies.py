"""``reprobundle copies``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.options import json_option
from reprobundle.cli.paths import local_path

EXIT_OVERDUE = 10


@click.command()
@click.argument("bundle", required=False, type=local_path)
@json_option
def copies(*, bundle: Path | None, as_json: bool) -> int:
    """List every place of a copy of data that this machine knows.

    Of BUNDLE, or of all: bundles whose policy states rules about data, where they were
    replayed, extracted or exported, and the copies of hand-offs. BUNDLE itself is noted
    where it lies now. Exit status 10 if one is there that had to be gone.
    """
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.copied import (
        copies_json,
        is_any_overdue,
        render_copies,
        states_of,
    )
    from reprobundle.run.copies import DataUse, read_log
    from reprobundle.run.data_rules import rules_in, today

    identifier = ""
    if bundle is not None:
        with open_bundle(bundle) as opened:
            identifier = opened.id
            # It is a copy too, and may have been moved here since it was noted.
            DataUse(identifier, rules_in(opened), "").copied("bundle", bundle)
    log, states, day = read_log(identifier), states_of(identifier), today()
    render = copies_json if as_json else render_copies
    click.echo(render(log, states, day))
    return EXIT_OVERDUE if is_any_overdue(log, states, day) else 0
