"""The policy that a new bundle freezes: the author's file over the defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast, get_args

import msgspec

from reprobundle.errors import BadCallError, ReprobundleError
from reprobundle.format.canonical import decode
from reprobundle.format.policy import Intent, Metric, Policy, RoleRule
from reprobundle.format.record import STAND_IN, OutputRole
from reprobundle.verify.defaults import default_policy


def read_policy(path: Path | None) -> Policy:
    """Return the default policy, with what the author's file states in its place.

    Args:
        path: A JSON file with any of the policy's fields, or None.

    Raises:
        BadCallError: The file cannot be read, breaks the schema, or changes a
            tolerance without naming author and reason.
    """
    standard = default_policy()
    if path is None:
        return standard
    stated = read_stated(path)
    overridden = {(rule.dtype, rule.devices) for rule in stated.tolerances}
    kept = tuple(
        rule
        for rule in standard.tolerances
        if (rule.dtype, rule.devices) not in overridden
    )
    return msgspec.structs.replace(
        stated,
        tolerances=(*stated.tolerances, *kept),
        ignore_keys=tuple(sorted({*standard.ignore_keys, *stated.ignore_keys})),
    )


def read_stated(path: Path) -> Policy:
    """Return what a policy file states, and nothing else.

    Raises:
        BadCallError: The file cannot be read, breaks the schema, or differs from the
            defaults without naming author and reason.
    """
    try:
        stated = decode(path.read_bytes(), Policy, where=str(path), rule="R-7.1")
    except OSError as error:
        raise BadCallError(
            f"policy {str(path)!r} cannot be read: {error.strerror}"
        ) from error
    except ReprobundleError as error:
        raise BadCallError(
            error.message, advice="see schema/policy.schema.json"
        ) from error
    if _admits_more(stated) and not (stated.author.strip() and stated.reason.strip()):
        raise BadCallError(
            f"policy {str(path)!r} changes what counts as equal without saying who "
            "and why",
            advice='add "author" and "reason"',
        )
    for metric in stated.metrics:
        _check_pattern(metric)
    _check_claims(stated, path)
    return stated


def _admits_more(policy: Policy) -> bool:
    """Whether a file changes what counts as equal, or what is compared at all."""
    return bool(
        policy.tolerances
        or policy.outputs
        or policy.ignore_keys
        or policy.profile == "compat"
    )


def _check_claims(policy: Policy, path: Path) -> None:
    names = [claim.name for claim in policy.claims]
    if len(set(names)) != len(names):
        raise BadCallError(f"policy {str(path)!r} names a claim twice")
    for claim in policy.claims:
        if claim.name == STAND_IN:
            raise BadCallError(
                f"a claim cannot be called {STAND_IN!r}: so is the run on samples",
                advice="give it another name",
            )
        if claim.name == "main" and claim.command:
            raise BadCallError(
                "the claim 'main' is that of the command behind --, and the policy "
                "gives it another one",
                advice="leave out its command, or give the claim another name",
            )
        if claim.name != "main" and not claim.command:
            raise BadCallError(
                f"claim {claim.name!r} has no command",
                advice='add "command": ["python", …]',
            )


def parse_metric(text: str) -> Metric:
    """Return the metric that ``NAME=REGEX`` describes.

    Raises:
        BadCallError: There is no ``=``, or the pattern is no regular expression.
    """
    name, separator, pattern = text.partition("=")
    if not (separator and name.isidentifier() and pattern):
        raise BadCallError(
            f"metric {text!r} is not of the form NAME=REGEX",
            advice="for example --metric 'loss=final loss ([0-9.]+)'",
        )
    metric = Metric(name=name, pattern=pattern)
    _check_pattern(metric)
    return metric


def parse_role(text: str) -> RoleRule:
    """Return the rule that ``PATTERN=ROLE`` describes.

    Raises:
        BadCallError: There is no ``=``, or no such role.
    """
    match, separator, role = text.rpartition("=")
    known = tuple(name for name in get_args(OutputRole) if name)
    if not (separator and match and role in known):
        raise BadCallError(
            f"role {text!r} is not of the form PATTERN=ROLE",
            advice=f"the role is one of {', '.join(known)}, for example "
            "--role 'out/*.npy=prediction'",
        )
    return RoleRule(match=match, role=cast("OutputRole", role))


def _check_pattern(metric: Metric) -> None:
    try:
        re.compile(metric.pattern)
    except re.error as error:
        raise BadCallError(
            f"the pattern of metric {metric.name!r} is no regular expression: {error}"
        ) from error


def with_intent(
    policy: Policy,
    intent: Intent,
    metrics: tuple[Metric, ...],
    roles: tuple[RoleRule, ...] = (),
) -> Policy:
    """Return `policy` with what the command line states about the result's purpose.

    A field that the command line leaves at its default keeps the file's value.

    Raises:
        BadCallError: Two metrics have one name.
    """
    names = [metric.name for metric in (*policy.metrics, *metrics)]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise BadCallError(
            f"metric {twice!r} is stated twice",
            advice="give each --metric a name of its own",
        )
    plain = Intent()
    stated = {
        name: value
        for name in intent.__struct_fields__
        if (value := getattr(intent, name)) != getattr(plain, name)
    }
    return msgspec.structs.replace(
        policy,
        intent=msgspec.structs.replace(policy.intent, **stated),
        metrics=(*policy.metrics, *metrics),
        roles=(*roles, *policy.roles),
    )
