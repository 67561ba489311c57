"""``reprobundle issue``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import note, override_option, used
from reprobundle.cli.options import deliver, output_option, say
from reprobundle.cli.standard_input import bundle_or_standard_input

if TYPE_CHECKING:
    from reprobundle.report.issue import Materials
    from reprobundle.report.page import Page


@click.command()
@bundle_or_standard_input
@click.option(
    "--snippet",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A minimal script that shows it, in place of the one that was run.",
)
@click.option("--expected", default="", metavar="TEXT", help="What should happen.")
@click.option(
    "--inline",
    is_flag=True,
    help="Put the bundle itself into the issue as text, for trackers that take no "
    "archives, such as pytorch/pytorch.",
)
@click.option(
    "--redact",
    is_flag=True,
    help="Replace what looks like a secret by its kind instead of refusing.",
)
@output_option
@override_option
def issue(
    *,
    bundle: Path,
    snippet: Path | None,
    expected: str,
    inline: bool,
    redact: bool,
    output: Path | None,
    override: str,
) -> int:
    """Write one screen of Markdown for an issue: what happens, and how to see it.

    It has the script, what was expected and observed, the versions, the whole
    traceback, the bundle's id and how to check it, and never more than the 65,536
    characters that an issue takes. What looks like a secret is refused.
    """
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.issue import render_issue
    from reprobundle.report.page import build_page
    from reprobundle.run.secrets.issue import without_secrets
    from reprobundle.verify.verify import verify_bundle

    answer = verify_bundle(bundle)
    if answer.exit_status == 21:
        say(f"{answer.verdict}: {'; '.join(answer.reasons[:2])}; nothing was written")
        return answer.exit_status
    with open_bundle(bundle) as opened:
        use = used(opened, override, what="an issue", travels=True)
    page = build_page(bundle, answer)
    materials = _materials(bundle, page, snippet, expected, inline=inline)
    bare = materials._replace(inline="")
    checked = without_secrets(render_issue(page, bare), redact=redact)
    if inline:
        # The text of the bundle is base64; what is in it was looked at by pack.
        checked = without_secrets(
            render_issue(page, materials), redact=redact, but_not=materials.inline
        )
    note(use, "export", output or "standard output (issue)")
    deliver(output, checked)
    say(f"{len(checked):,} characters, an issue takes 65,536; verify: {answer.verdict}")
    return 0


def _materials(
    bundle: Path, page: Page, snippet: Path | None, expected: str, *, inline: bool
) -> Materials:
    from reprobundle.format.inline import bundle_text
    from reprobundle.format.reader import open_bundle
    from reprobundle.report.issue import Materials
    from reprobundle.report.issue_script import script_of, stated_snippet, stderr_of
    from reprobundle.report.issue_values import values_in

    with open_bundle(bundle) as opened:
        shown = stated_snippet(snippet) if snippet is not None else None
        if shown is None and page.reference is not None:
            shown = script_of(opened, page.reference.record)
        return Materials(
            snippet=shown,
            errors=stderr_of(opened, 1),
            expected=expected,
            inline=bundle_text(opened) if inline else "",
            part=opened.part,
            values=values_in(opened, page),
        )
