"""A bundle as a block of text for an issue, and how much of an issue it takes."""

from __future__ import annotations

from pathlib import Path

from reprobundle.format.destinations import ISSUE_CHARACTERS
from reprobundle.format.inline import bundle_text
from reprobundle.format.reader import open_bundle
from reprobundle.report.markdown_text import code


def inline_block(path: Path) -> str:
    """Return the bundle at `path` as text in a fence, and how to check it.

    Raises:
        BundleError: It is no bundle, or too large for a text.
        EnvironmentUnusableError: It cannot be read.
    """
    text = inline_text(path)
    return (
        f"{code(path.name)} as text. To check it, copy this block and run "
        f"`reprobundle verify -`, paste, Ctrl-D.\n\n```text\n{text}```\n"
    )


def inline_text(path: Path) -> str:
    """Return the bundle at `path` as an inline text.

    Raises:
        BundleError: It is no bundle, or too large for a text.
        EnvironmentUnusableError: It cannot be read.
    """
    with open_bundle(path) as bundle:
        return bundle_text(bundle)


def told_size(name: str, text: str) -> str:
    """Return how long a text is, and whether an issue of GitHub takes it."""
    characters = len(text)
    if characters <= ISSUE_CHARACTERS:
        part = f"an issue of GitHub takes {ISSUE_CHARACTERS:,}"
    else:
        part = (
            f"more than the {ISSUE_CHARACTERS:,} that an issue of GitHub takes: "
            "attach the file instead"
        )
    return f"{name}: {characters:,} characters, {part}"
