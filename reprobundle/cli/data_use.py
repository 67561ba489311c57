"""Ask the policy in a bundle before its data are copied, and note the copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reprobundle.cli.options import say

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from reprobundle.format.reader import Bundle
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
) -> DataUse:
    """Return the use that is about to be made of a bundle's data.

    Args:
        bundle: An open bundle.
        override: Why its policy is not followed; empty to follow it.
        what: What is about to happen, such as ``an export``.
        paths: The members concerned; None for all of them.
        travels: Whether what is made is meant to be handed on, and not encrypted.

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
    if rules is not None:
        say(f"data: {told(rules)}")
    if overridden:
        say(f"policy overridden: {overridden}")
    return DataUse(bundle.id, rules, overridden)


def note(use: DataUse, kind: Kind, where: Path | str) -> None:
    """Note a copy that is made next, and say so once it stands in the list.

    Raises:
        EnvironmentUnusableError: It cannot be written down.
    """
    from reprobundle.run.copies import log_path

    use.copied(kind, where)
    if use.is_noted:
        say(f"the copy in {where} is noted in {log_path()}")
