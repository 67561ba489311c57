"""What the policy lets a replay do with the data, and what its record says of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from reprobundle.format.record import Remark
from reprobundle.replay.handed_over import VARIABLE
from reprobundle.replay.options import ReplayOptions
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.copies import Copy, DataUse, read_log
from reprobundle.run.data_rules import require_allowed_here, rules_of
from reprobundle.run.placeholders import Names

_MOST_COPIES = 100


def data_use(options: ReplayOptions, plan: ReplayPlan) -> DataUse:
    """Return the use that a replay makes of the bundle's data.

    A replay that `handoff` started asks nothing and notes nothing: `handoff` asked for
    this machine by the name it has there, and keeps the list of places.

    Raises:
        DataRuleError: The policy is against it, and nobody overrides it.
    """
    rules = rules_of(plan.policy)
    if VARIABLE in os.environ:
        return DataUse(plan.bundle, None, "")
    overridden = require_allowed_here(rules, options.override, what="a replay")
    return DataUse(plan.bundle, rules, overridden)


def data_remarks(use: DataUse, bundle: str) -> Iterator[Remark]:
    """Yield what the records say: what was overridden, and every copy made here.

    Args:
        use: From `data_use`.
        bundle: Its id.
    """
    if use.overridden:
        yield Remark(id="data-rule-overridden", severity="warning", text=use.overridden)
    if not use.is_noted:
        return
    log = read_log(bundle)
    hidden = Names.here().hidden
    for one in log.copies[-_MOST_COPIES:]:
        yield Remark(
            id="data-copy", severity="gap", where=hidden(one.where), text=_told(one)
        )
    left = len(log.copies[:-_MOST_COPIES])
    if left or log.unread:
        text = f"{left} older copies and {log.unread} unreadable lines are not told"
        yield Remark(id="data-copy", severity="gap", text=text)


def _told(one: Copy) -> str:
    """Return what became of a copy, as it is while the record is written."""
    state = "there while this record is written"
    if not one.is_traced:
        state = "where it went is not known"
    elif not one.is_there:
        since = f" since {one.removed}" if one.removed else ""
        state = f"not there any more{since}"
    by = f", to be gone by {one.delete_by}" if one.delete_by else ""
    return f"{one.kind} copied {one.made}: {state}{by}"
