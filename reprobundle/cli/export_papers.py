"""``reprobundle export ro-crate``, ``bagit``, ``in-toto`` and ``badge``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprobundle.cli.data_use import note, override_option, used
from reprobundle.cli.options import (
    deliver,
    output_option,
    say,
    signers_options,
    stated_signers,
)
from reprobundle.cli.paths import named
from reprobundle.cli.standard_input import bundle_or_standard_input

if TYPE_CHECKING:
    from reprobundle.export.verified import Verified
    from reprobundle.format.citation import Citation
    from reprobundle.format.findings import Report

_expect_option = click.option(
    "--expect-id", metavar="ID", help="The bundle id you were told."
)
_tree_option = click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    callback=named,
    help="A new folder, or a new file if it ends in .zip; nothing is overwritten.",
)
_with_bundle_option = click.option(
    "--with-bundle",
    is_flag=True,
    help="Put the bundle file into it too, for reprobundle verify.",
)


def _citation_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say how the work is cited."""
    for option in (
        click.option(
            "--citation",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A CITATION.cff in the place of what was sealed.",
        ),
        click.option(
            "--doi",
            default="",
            metavar="DOI",
            help="A DOI that was assigned after packing.",
        ),
    ):
        command = option(command)
    return command


@click.command("ro-crate")
@bundle_or_standard_input
@_tree_option
@_with_bundle_option
@_citation_options
@_expect_option
@signers_options
@override_option
def ro_crate(
    *,
    bundle: Path,
    output: Path,
    with_bundle: bool,
    citation: Path | None,
    doi: str,
    expect_id: str | None,
    signers: tuple[Path, ...],
    revoked: Path | None,
    at: str,
    override: str,
) -> int:
    """Unpack a bundle as an RO-Crate (Process Run Crate) with its runs and verdict.

    Exit status 0 once it is written; the verdict stands in it and in the last line.
    Needs the extra of the package called export.
    """
    from reprobundle.export.ro_crate import write_ro_crate
    from reprobundle.export.verified import stated_time, verified

    with verified(
        bundle,
        expect_id=expect_id,
        signers=stated_signers(signers, revoked, at),
        doi=doi,
        citation=_read(citation),
        at=stated_time(),
    ) as what:
        write = partial(write_ro_crate, what, output, with_bundle=with_bundle)
        _write_tree(what, output, write, override)
    return 0


@click.command("bagit")
@bundle_or_standard_input
@_tree_option
@_with_bundle_option
@_citation_options
@_expect_option
@signers_options
@override_option
def bagit(
    *,
    bundle: Path,
    output: Path,
    with_bundle: bool,
    citation: Path | None,
    doi: str,
    expect_id: str | None,
    signers: tuple[Path, ...],
    revoked: Path | None,
    at: str,
    override: str,
) -> int:
    """Unpack a bundle as a complete BagIt bag with SHA-256 digests.

    Exit status 0 once it is written; the verdict stands in bag-info.txt and in the
    last line. A ZIP file of a bag holds it in a folder of the file's name.
    """
    from reprobundle.export.bag import write_bag
    from reprobundle.export.verified import verified

    with verified(
        bundle,
        expect_id=expect_id,
        signers=stated_signers(signers, revoked, at),
        doi=doi,
        citation=_read(citation),
    ) as what:
        write = partial(write_bag, what, output, with_bundle=with_bundle)
        _write_tree(what, output, write, override)
    return 0


@click.command("in-toto")
@bundle_or_standard_input
@output_option
@click.option(
    "--predicate",
    type=click.Choice(("verdict", "test-result")),
    default="verdict",
    show_default=True,
    help="Our own, which holds every verdict, or in-toto's for tests, which is refused "
    "where the verdict is no answer.",
)
@_expect_option
@signers_options
def in_toto(
    *,
    bundle: Path,
    output: Path | None,
    predicate: str,
    expect_id: str | None,
    signers: tuple[Path, ...],
    revoked: Path | None,
    at: str,
) -> int:
    """Verify a bundle and write the verdict as an in-toto statement, to be signed.

    The exit status is that of verify.
    """
    from reprobundle.export.statement import statement_of_tests, statement_of_verdict
    from reprobundle.export.verified import verified

    with verified(
        bundle, expect_id=expect_id, signers=stated_signers(signers, revoked, at)
    ) as what:
        if predicate == "test-result":
            statement = statement_of_tests(what)
        else:
            statement = statement_of_verdict(what)
        _deliver(output, statement.decode(), what.report)
        return what.report.exit_status


@click.command("badge")
@bundle_or_standard_input
@output_option
@_expect_option
@signers_options
def badge(
    *,
    bundle: Path,
    output: Path | None,
    expect_id: str | None,
    signers: tuple[Path, ...],
    revoked: Path | None,
    at: str,
) -> int:
    """Verify a bundle and write the verdict as a badge (SVG).

    It is green if verify gives a plain REPRODUCED now, and never else. The exit status
    is that of verify.
    """
    import datetime

    from reprobundle.export.badge import render_badge
    from reprobundle.verify.verify import verify_bundle

    report = verify_bundle(
        bundle, expect_id=expect_id, signers=stated_signers(signers, revoked, at)
    )
    now = datetime.datetime.now(datetime.timezone.utc)
    _deliver(output, render_badge(report, now), report)
    return report.exit_status


def _read(path: Path | None) -> Citation | None:
    if path is None:
        return None
    from reprobundle.pack.citing import read_citation

    return read_citation(path)


def _write_tree(
    what: Verified, output: Path, write: Callable[..., None], override: str
) -> None:
    """Have `write` make `output`, if the rules about data are not against it."""
    from reprobundle.report.progress import progress

    use = used(what.bundle, override, what="an export", travels=True)
    if not output.exists():
        note(use, "export", output)
    with progress("writing", what.bundle.size_bytes) as advance:
        write(progress=advance)
    report = what.report
    click.echo(
        f"wrote {output} from bundle {report.bundle[:12]}; verdict {report.verdict} "
        f"(exit {report.exit_status})"
    )


def _deliver(output: Path | None, text: str, report: Report) -> None:
    deliver(output, text)
    if output is not None:
        say(f"{report.verdict} (exit {report.exit_status}); wrote {output}")
