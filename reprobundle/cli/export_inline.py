"""``reprobundle export inline``."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.options import bundle_argument, say


@click.command()
@bundle_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write. [default: standard output]",
)
def inline(*, bundle: Path, output: Path | None) -> int:
    """Write a small bundle as text that can be pasted into an issue.

    `reprobundle verify -` reads it back from standard input, also when it was quoted,
    indented or stands in the middle of other text. Attached replays go with it.
    """
    from reprobundle.report.inline import inline_block, told_size

    text = inline_block(bundle)
    if output is None:
        click.echo(text, nl=False)
    else:
        from reprobundle.format.atomic import write_text

        write_text(output, text)
    say(told_size(bundle.name, text))
    return 0
