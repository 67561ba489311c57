"""Show what the author stated before any replay: tolerances, rules, claims."""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.policy import Claim, OutputRule, Policy, Tolerance
from reprobundle.report import text
from reprobundle.report.layout import Column, Row, flow, more, paragraph, table
from reprobundle.report.screen import Line, Screen, Span
from reprobundle.run.data_rules import rules_of, told


def policy_lines(policy: Policy, screen: Screen, *, verbose: bool) -> list[Line]:
    """Return what counts as the same result, and who said so and why."""
    intent = policy.intent
    platforms = ", ".join(intent.accepting_platforms) or "any"
    items: list[Line] = [
        (Span(f"profile {policy.profile}"),),
        (Span(f"accepting platforms: {platforms}"),),
        (Span(f"CPU fallback {intent.fallback}"),),
        (Span(f"set by {policy.author or 'the defaults'}"),),
    ]
    lines = flow(screen, "policy", items)
    if policy.reason:
        lines += paragraph(screen, "", policy.reason)
    if policy.ignore_keys:
        keys = ", ".join(policy.ignore_keys)
        lines += paragraph(screen, "", f"never compared by name: {keys}", whole=verbose)
    rules = rules_of(policy)
    if rules is not None:
        lines += paragraph(screen, "data", told(rules), style="warn", whole=True)
    lines += _tolerances(policy, screen, verbose=verbose)
    for rule in policy.outputs:
        lines += paragraph(screen, "", _rule(rule), whole=verbose)
    for metric in policy.metrics:
        words = f"metric {metric.name} is read from the output by {metric.pattern}"
        lines += paragraph(screen, "", words, whole=verbose)
    return [*lines, *_claims(policy.claims, screen)]


def _tolerances(policy: Policy, screen: Screen, *, verbose: bool) -> list[Line]:
    if not policy.tolerances:
        return []
    columns = (
        Column("dtype"),
        Column("devices"),
        Column("rtol", align="right"),
        Column("atol", align="right"),
        Column("floor", align="right"),
        Column("share", align="right"),
        Column("source", least=10),
    )
    rows: list[Row] = [
        (
            Span(rule.dtype),
            Span(rule.devices),
            *_bounds(rule.tolerance),
            Span(rule.source),
        )
        for rule in policy.tolerances
        if verbose or rule.dtype in {"float32", "float64", "number"}
    ]
    return [
        *table(screen, columns, rows),
        *more(screen, len(policy.tolerances) - len(rows), "tolerance"),
    ]


def _bounds(tolerance: Tolerance) -> Sequence[Span]:
    return [
        Span(text.number(bound))
        for bound in (tolerance.rtol, tolerance.atol, tolerance.floor, tolerance.share)
    ]


def _rule(rule: OutputRule) -> str:
    parts = []
    if not rule.compare:
        parts.append("not compared")
    if rule.tolerance:
        names = ("rtol", "atol", "floor", "share")
        bounds = zip(names, _bounds(rule.tolerance), strict=True)
        parts.append(", ".join(f"{name} {bound.text}" for name, bound in bounds))
    if rule.ignore:
        parts.append(f"without {', '.join(rule.ignore)}")
    if rule.keep:
        parts.append(f"with {', '.join(rule.keep)}")
    return f"{rule.match}: {'; '.join([*parts, rule.reason])}"


def _claims(claims: Sequence[Claim], screen: Screen) -> list[Line]:
    if not claims:
        return paragraph(screen, "claims", "main, over all outputs")
    columns = (
        Column("claim", least=8),
        Column("statement", least=16),
        Column("command", least=12),
        Column("outputs", least=8),
        Column("minutes", align="right"),
    )
    rows: list[Row] = [
        (
            Span(claim.name),
            Span(claim.statement or text.NOTHING),
            Span(" ".join(claim.command) or "the main command"),
            Span(", ".join(claim.outputs) or "all"),
            Span(text.number(claim.minutes)),
        )
        for claim in claims
    ]
    return table(screen, columns, rows)
