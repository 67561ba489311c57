"""Whether the data in a bundle may be processed here, by the policy sealed in it.

A policy is a statement and no lock: it can be overridden with a reason, and that is
written down where its author and the user can find it.
"""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import msgspec

from reprobundle.errors import BundleError, DataRuleError
from reprobundle.format.canonical import decode
from reprobundle.format.manifest import Role
from reprobundle.format.policy import DataRules, Policy

if TYPE_CHECKING:
    from reprobundle.format.reader import Bundle

POLICY = "policy.json"

# Where encryption at rest is asked for by most rules that govern such data.
SENSITIVE = ("personal", "clinical", "proprietary", "export-controlled")
# What a recipient of age looks like (age(1)); anything else is a key of gpg.
AGE_SIGNS = ("age1", "ssh-ed25519 ", "ssh-rsa ")
# Everything else may hold data, or numbers that were computed from them.
FREE_ROLES: frozenset[Role] = frozenset({"readme", "lock", "policy", "checksums"})


def rules_of(policy: Policy) -> DataRules | None:
    """Return what the policy says about data, None where it says nothing."""
    return None if isinstance(policy.data, msgspec.UnsetType) else policy.data


def rules_in(bundle: Bundle) -> DataRules | None:
    """Return what the policy sealed in `bundle` says about data.

    Raises:
        DataRuleError: It has a policy that cannot be read.
    """
    if POLICY not in bundle.members:
        return None
    try:
        policy = decode(bundle.read(POLICY), Policy, where=POLICY, rule="R-7.1")
    except BundleError as error:
        raise DataRuleError(
            f"what may be done with its data cannot be read: {error}",
            advice="see: reprobundle verify",
        ) from error
    return rules_of(policy)


def holds_data(bundle: Bundle, paths: Iterable[str]) -> bool:
    """Return whether any of these members may hold data."""
    members = (bundle.members.get(path) for path in paths)
    return any(one is not None and one.role not in FREE_ROLES for one in members)


def today() -> str:
    """Return the day, ``YYYY-MM-DD`` in UTC."""
    return datetime.now(tz=timezone.utc).date().isoformat()


def names_here() -> tuple[str, ...]:
    """Return this account at this machine, by each name that the machine has."""
    import getpass
    import socket

    hosts = dict.fromkeys((socket.gethostname(), socket.getfqdn()))
    user = getpass.getuser()
    return tuple(name for host in hosts for name in (f"{user}@{host}", host))


def who_may_not(rules: DataRules, names: Sequence[str]) -> Iterator[str]:
    """Yield what the rules have against whoever has these names.

    Args:
        rules: As sealed.
        names: ``USER@HOST`` and ``HOST`` of one machine, the plainest first.
    """
    if rules.processors and not any(
        fnmatch.fnmatchcase(name, pattern)
        for pattern in rules.processors
        for name in names
    ):
        listed = ", ".join(rules.processors)
        yield f"it names as processors {listed}, and not {names[0]}"


def when_not(rules: DataRules, day: str) -> Iterator[str]:
    """Yield what the rules have against that day."""
    if rules.process_until and day > rules.process_until:
        yield f"its data could be processed until {rules.process_until}, it is {day}"


def how_not(rules: DataRules, *, encrypted: bool) -> Iterator[str]:
    """Yield what the rules have against a copy that travels."""
    if rules.transfer == "forbidden":
        yield "it forbids any transfer"
    if rules.transfer == "encrypted" and not encrypted:
        yield "it wants the bundle encrypted before transfer"


def against_here(rules: DataRules, *, travels: bool = False) -> list[str]:
    """Return what the rules have against processing the data here and now.

    Args:
        rules: As sealed.
        travels: Whether what is made is meant to be handed on, and not encrypted.
    """
    names = names_here() if rules.processors else ()
    how = how_not(rules, encrypted=False) if travels else ()
    return [*how, *who_may_not(rules, names), *when_not(rules, today())]


def require_allowed_here(
    rules: DataRules | None, override: str, *, what: str, travels: bool = False
) -> str:
    """Return what was overridden and why; nothing if nothing had to be.

    Args:
        rules: As sealed; None for no rules.
        override: The user's reason to do it anyway; empty for none.
        what: What is about to happen, such as ``a replay``.
        travels: Whether what is made is meant to be handed on, and not encrypted.

    Raises:
        DataRuleError: The rules are against it, and there is no reason to override.
    """
    found = against_here(rules, travels=travels) if rules else []
    if not rules or not found:
        return ""
    against = "; ".join(found)
    if override.strip():
        return f"{against}; overridden: {override.strip()}"
    because = f" ({rules.reason})" if rules.reason else ""
    raise DataRuleError(
        f"the policy sealed in the bundle is against {what} here: {against}{because}",
        advice="ask its author; --override-policy REASON does it anyway, and that is "
        "recorded",
    )


def encryption_hint(rules: DataRules | None, name: str) -> str:
    """Return how to encrypt a file before it travels; empty if nothing asks for it.

    Args:
        rules: As sealed.
        name: Of the file.
    """
    asked = rules is not None and rules.transfer != "forbidden"
    if not rules or not asked:
        return ""
    if rules.transfer != "encrypted" and rules.data_class not in SENSITIVE:
        return ""
    file = shlex.quote(name)
    to = [shlex.quote(one) for one in rules.recipients] or ["RECIPIENT"]
    if rules.recipients and not rules.recipients[0].startswith(AGE_SIGNS):
        whom = " ".join(f"--recipient {one}" for one in to)
        return f"gpg {whom} --output {file}.gpg --encrypt {file}"
    return f"age {' '.join(f'-r {one}' for one in to)} -o {file}.age {file}"


def told(rules: DataRules) -> str:
    """Return the rules in one line."""
    parts = [f"{rules.data_class}; transfer {rules.transfer}"]
    if rules.processors:
        parts.append(f"processors {', '.join(rules.processors)}")
    if rules.process_until:
        parts.append(f"may be processed until {rules.process_until}")
    if rules.delete_after_days is not None:
        parts.append(f"copies deleted after {rules.delete_after_days} days")
    if rules.recipients:
        parts.append(f"encrypted to {', '.join(rules.recipients)}")
    if rules.reason:
        parts.append(rules.reason)
    return "; ".join(parts)
