"""``reprobundle policy``: what the runs of a bundle say about honest tolerances."""

from __future__ import annotations

from pathlib import Path

import click

from reprobundle.cli.data_use import note, override_option, used_file
from reprobundle.cli.options import bundle_argument, deliver, output_option, say


@click.group()
def policy() -> None:
    """Work on policies: what counts as the same result."""


@policy.command()
@bundle_argument
@output_option
@override_option
def suggest(*, bundle: Path, output: Path | None, override: str) -> int:
    """Derive a policy from the repeat passes and replays of BUNDLE.

    Tolerances are five times what the runs differ by. Where the difference grows with
    the steps, the first rows and a band for the end are proposed instead. The author
    is left open: pack refuses the file until somebody signs it.
    """
    from reprobundle.format.canonical import encode
    from reprobundle.report.suggested import policy_file
    from reprobundle.verify.suggest import suggest as derive

    use = used_file(bundle, override, what="a look at its results")
    derived = derive(bundle)
    text = encode(policy_file(derived, bundle.name)).decode()
    for line in derived.notes:
        say(line)
    note(use, "export", output or "standard output (policy suggest)")
    deliver(output, text)
    if output is not None:
        say(f"written to {output}; add who and why, then pack with --policy")
    return 0
