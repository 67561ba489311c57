"""``reprobundle report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import note, override_option, used_file
from reprobundle.cli.options import (
    allow_option,
    deliver,
    own_policy,
    say,
    signers_options,
    stated_signers,
)
from reprobundle.cli.paths import STANDARD
from reprobundle.cli.places import place_argument, reached

if TYPE_CHECKING:
    from reprobundle.cli.places import Given
    from reprobundle.format.findings import Report
    from reprobundle.format.source import Place
    from reprobundle.run.copies import DataUse

FORMATS = ("html", "markdown", "junit", "json")
# Those that show what the runs gave, and not only what was found.
PAGES = ("html", "markdown")
STYLES = ("plain", "aec", "aea", "checklist")


@click.command()
@place_argument
@override_option
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="html: one page; markdown: for an issue; junit: for CI; json: for programs. "
    "[default: html, with --style markdown]",
)
@click.option(
    "--style",
    type=click.Choice(STYLES),
    default="plain",
    show_default=True,
    help="Markdown for an artifact committee (aec), a data editor (aea), or the "
    "acceptance list (checklist).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write, - for standard output. [default: the bundle's name with "
    ".html; else -]",
)
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
    "--doi",
    default="",
    metavar="DOI",
    help="A DOI that was assigned after packing, to be shown.",
)
@signers_options
@allow_option
def report(
    *,
    bundle: Given,
    download_limit: int | None,
    override: str,
    kind: str | None,
    style: str,
    output: Path | None,
    replay_file: Path | None,
    expect_id: str | None,
    policy: Path | None,
    doi: str,
    signers: tuple[Path, ...],
    revoked: Path | None,
    at: str,
    allow: tuple[str, ...],
) -> int:
    """Verify a bundle and write the answer as a page, an issue or a CI result.

    The exit status is that of verify.
    """
    from reprobundle.verify.verify import verify_bundle

    kind = kind or ("html" if style == "plain" else "markdown")
    if style != "plain" and kind != "markdown":
        raise click.UsageError(f"--style {style} is a form of --format markdown")
    with reached(bundle, download_limit, whole=True, override=override) as place:
        answer = verify_bundle(
            place,
            replay_file=replay_file,
            expect_id=expect_id,
            allow=allow,
            own_policy=own_policy(policy),
            acceptance=True,
            signers=stated_signers(signers, revoked, at),
        )
        use = _use(place, kind, override)
        document = _rendered(place, answer, kind, style, replay_file, doi)
        name = place.name.removesuffix(".rpb.zip")
    if output == STANDARD:
        output = None
    elif output is None and kind == "html":
        output = Path(f"{name}.html")
    note(use, "export", output or "standard output (report)")
    deliver(output, document)
    if output is not None:
        say(f"{answer.verdict} (exit {answer.exit_status}); wrote {output}")
    return answer.exit_status


def _use(place: Path | Place, kind: str, override: str) -> DataUse:
    """Return the use of the data: a page has curves and values, the rest verdicts.

    Raises:
        DataRuleError: The policy is against it, and nobody overrides it.
    """
    from reprobundle.run.copies import DataUse

    if kind not in PAGES:
        return DataUse("", None, "")
    # At an address it was asked, and shown, before it was fetched.
    is_told = isinstance(place, Path)
    return used_file(place, override, what="a report", is_told=is_told)


def _rendered(
    place: Path | Place,
    answer: Report,
    kind: str,
    style: str,
    replay_file: Path | None,
    doi: str,
) -> str:
    from reprobundle.report.page import build_page

    if kind == "json":
        from reprobundle.report.json import report_json

        return report_json(answer).decode()
    if kind == "junit":
        from reprobundle.report.junit import render_junit

        return render_junit(answer)
    page = build_page(place, answer, replay_file, doi)
    if kind == "html":
        from reprobundle.report.html import render_html

        return render_html(page)
    from reprobundle.report.styles import render_style

    return render_style(page, style)
