"""Whether the sealed policy lets a bundle go to another machine, and for how long.

A policy is a statement and no lock: it can be overridden with a reason, which then
stands in the state of the hand-off and in the record of the replay.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from reprobundle.format.policy import DataRules
from reprobundle.handoff.errors import TransferForbiddenError
from reprobundle.handoff.ssh import Destination
from reprobundle.run.data_rules import SENSITIVE, how_not, when_not, who_may_not


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
    host = destination.name.rpartition("@")[2]
    yield from how_not(rules, encrypted=encrypted)
    yield from who_may_not(rules, (destination.name, host))
    yield from when_not(rules, today)


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
        way = f"--encrypt-to {_whom(rules)}, or " if encrypt else ""
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
        f"and nothing does on the disk there; --encrypt-to {_whom(rules)} keeps them "
        "encrypted until the replay runs"
    )


def _whom(rules: DataRules) -> str:
    quoted = [shlex.quote(one) for one in rules.recipients]
    return " --encrypt-to ".join(quoted) or "RECIPIENT"
