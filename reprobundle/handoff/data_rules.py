"""Whether the sealed policy lets a bundle go to another machine, and for how long.

A policy is a statement and no lock: it can be overridden with a reason, which then
stands in the state of the hand-off and in the record of the replay.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator

import msgspec

from reprobundle.format.policy import DataRules, Policy
from reprobundle.handoff.errors import TransferForbiddenError
from reprobundle.handoff.ssh import Destination

# Where encryption at rest is asked for by most rules that govern such data.
SENSITIVE = ("personal", "clinical", "proprietary", "export-controlled")


def rules_of(policy: Policy) -> DataRules | None:
    """Return what the policy says about data, None where it says nothing."""
    return None if isinstance(policy.data, msgspec.UnsetType) else policy.data


def objections(
    rules: DataRules, destination: Destination, *, today: str, encrypted: bool
) -> Iterator[str]:
    """Yield what the policy has against processing the bundle there now.

    Args:
        rules: As sealed.
        destination: Where it would go.
        today: ``YYYY-MM-DD``, UTC.
        encrypted: Whether it travels, and lies there, as an encrypted file.
    """
    if rules.transfer == "forbidden":
        yield "it forbids any transfer"
    if rules.transfer == "encrypted" and not encrypted:
        yield "it wants the bundle encrypted before transfer"
    host = destination.name.rpartition("@")[2]
    names = (destination.name, host)
    if rules.processors and not any(
        fnmatch.fnmatchcase(name, pattern)
        for pattern in rules.processors
        for name in names
    ):
        listed = ", ".join(rules.processors)
        yield f"it names as processors {listed}, and not {destination.name}"
    if rules.process_until and today > rules.process_until:
        yield f"its data could be processed until {rules.process_until}, it is {today}"


def require_allowed(
    rules: DataRules | None,
    destination: Destination,
    *,
    today: str,
    encrypted: bool,
    override: str,
) -> list[str]:
    """Return what was overridden.

    Raises:
        TransferForbiddenError: The policy has something against it, and nobody
            overrides it with a reason.
    """
    if rules is None:
        return []
    found = list(objections(rules, destination, today=today, encrypted=encrypted))
    if found and not override.strip():
        because = f" ({rules.reason})" if rules.reason else ""
        encrypt = any("encrypted" in one for one in found)
        way = "--encrypt-to RECIPIENT, or " if encrypt else ""
        raise TransferForbiddenError(
            f"the policy sealed in the bundle is against this hand-off: "
            f"{'; '.join(found)}{because}",
            advice=f"ask its author; {way}--override-policy REASON does it anyway and "
            "says so in the record",
        )
    return found


def hint(rules: DataRules | None, *, encrypted: bool) -> str:
    """Return what to think of before data of this class travel; empty for nothing."""
    if rules is None or encrypted or rules.data_class not in SENSITIVE:
        return ""
    return (
        f"the bundle holds {rules.data_class} data: ssh protects them on their way, "
        "and nothing does on the disk there; --encrypt-to RECIPIENT keeps them "
        "encrypted until the replay runs"
    )
