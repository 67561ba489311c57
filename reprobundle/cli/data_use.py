"""Ask the policy in a bundle before its data are copied, and note the copies."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from reprobundle.cli.options import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reprobundle.format.reader import Bundle
    from reprobundle.format.source import Place
    from reprobundle.run.copies import DataUse, Kind

override_option = click.option(
    "--override-policy",
    "override",
    default="",
    metavar="REASON",
    help="Copy data of the bundle although its policy is against it (who may process "
    "them, until when); the reason is recorded.",
)


def used(
    bundle: Bundle,
    override: str,
    *,
    what: str,
    paths: Iterable[str] | None = None,
    travels: bool = False,
    is_told: bool = True,
) -> DataUse:
    """Return the use that is about to be made of a bundle's data.

    Args:
        bundle: An open bundle.
        override: Why its policy is not followed; empty to follow it.
        what: What is about to happen, such as ``an export``.
        paths: The members concerned; None for all of them.
        travels: Whether what is made is meant to be handed on, and not encrypted.
        is_told: Whether the rules are shown; not where they were already.

    Raises:
        DataRuleError: The policy is against it, and nobody overrides it.
    """
    from reprobundle.run.copies import DataUse
    from reprobundle.run.data_rules import (
        holds_data,
        require_allowed_here,
        rules_in,
        told,
    )

    if not holds_data(bundle, bundle.members if paths is None else paths):
        return DataUse(bundle.id, None, "")
    rules = rules_in(bundle)
    overridden = require_allowed_here(rules, override, what=what, travels=travels)
    if rules is not None and is_told:
        say(f"data: {told(rules)}")
    if overridden and is_told:
        say(f"policy overridden: {overridden}")
    return DataUse(bundle.id, rules, overridden)


def used_file(
    place: Path | Place, override: str, *, what: str, is_told: bool = True
) -> DataUse:
    """Return the use that is about to be made of the data of a bundle not yet open.

    Only its directory and policy are read. What is no bundle holds no data that could
    be used: whoever opens it next says what is wrong with it.

    Args:
        place: The bundle.
        override: Why its policy is not followed; empty to follow it.
        what: What is about to happen, such as ``a comparison``.
        is_told: Whether the rules are shown; not where they were already.

    Raises:
        DataRuleError: The policy is against it, and nobody overrides it.
    """
    from reprobundle.errors import BundleError
    from reprobundle.format.reader import open_listing
    from reprobundle.run.copies import DataUse

    with suppress(BundleError), open_listing(place) as opened:
        return used(opened, override, what=what, is_told=is_told)
    return DataUse("", None, "")


def show_data(places: Iterable[Path], override: str, *, what: str, name: str) -> None:
    """Ask before numbers of bundles are judged and shown, and note that they are.

    Args:
        places: The bundles, each once.
        override: Why their policies are not followed; empty to follow them.
        what: What is about to happen, such as ``a comparison``.
        name: Of the verb.

    Raises:
        DataRuleError: A policy is against it, and nobody overrides it.
        EnvironmentUnusableError: It cannot be written down.
    """
    uses = [used_file(place, override, what=what) for place in places]
    for use in uses:
        note(use, "printed", f"standard output ({name})")


@contextmanager
def folder_of_copies(use: DataUse, *, prefix: str) -> Iterator[Path]:
    """Give a temporary folder; when it is gone, the list of copies says so."""
    from reprobundle.temporary.guarded import owned_folder

    folder = None
    try:
        with owned_folder(prefix) as folder:
            yield folder
    finally:
        if folder is not None:
            use.removed(folder)


def note(use: DataUse, kind: Kind, where: Path | str) -> None:
    """Note a copy that is made next, and say so once it stands in the list.

    Raises:
        EnvironmentUnusableError: It cannot be written down.
    """
    from reprobundle.run.copies import log_path

    use.copied(kind, where)
    if use.is_noted:
        say(f"the copy in {where} is noted in {log_path()}")
