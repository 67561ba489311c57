"""``reprobundle export inline``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.data_use import note, override_option, used
from reprobundle.cli.options import deliver, output_option, say
from reprobundle.cli.standard_input import bundle_or_standard_input


@click.command()
@bundle_or_standard_input
@output_option
@override_option
def inline(*, bundle: Path, output: Path | None, override: str) -> int:
    """Write a small bundle as text that can be pasted into an issue.

    `reprobundle verify -` reads it back from standard input, also when it was quoted,
    indented or stands in the middle of other text. Attached replays go with it.
    """
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.inline import inline_block, told_size

    with open_bundle(bundle) as opened:
        use = used(opened, override, what="an export", travels=True)
    text = inline_block(bundle)
    note(use, "export", output or "standard output (inline text)")
    deliver(output, text)
    say(told_size(bundle.name, text))
    return 0
