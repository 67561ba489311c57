"""Show what was checked: a tick for each kind of check, and what the bad ones found.

A reason of the verdict stands at the end of the report; what it says is not said here
a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reprobundle.format.findings import CheckOutcome, Finding, Judgement
from reprobundle.report import text
from reprobundle.report.layout import flow, more, paragraph
from reprobundle.report.screen import Line, Screen, Span
from reprobundle.verify.checks import BY_NUMBER

# What one screen holds of each kind; all of it with ``verbose``.
MOST_PLACES = 3
MOST_ADVICE = 3

# From what concerns a reader least to what concerns a reader most.
_WEIGHT: dict[CheckOutcome, int] = {
    "not-applicable": 0,
    "pass": 1,
    "not-checked": 2,
    "warn": 3,
    "fail": 4,
}


def check_lines(
    findings: Sequence[Finding],
    said: Sequence[str],
    screen: Screen,
    *,
    verbose: bool,
) -> list[Line]:
    """Return one tick for each kind of check, by area, then the details.

    Args:
        findings: Of the bundle itself.
        said: Reasons of the verdict that the end of the report shows.
        screen: Where it will be shown.
        verbose: Show every finding that says more than its tick.
    """
    lines: list[Line] = []
    for area, members in _by_area(findings).items():
        lines += _area(area, members, said, screen, verbose=verbose)
    return lines


def area_lines(
    findings: Sequence[Finding], area: str, screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return those of `check_lines` about one area that `is_settled`."""
    members = _by_area(findings).get(area, [])
    return _area(area, members, (), screen, verbose=verbose)


def is_settled(findings: Iterable[Finding], area: str) -> bool:
    """Tell whether the lines about an area do not depend on the verdict's reasons."""
    members = _by_area(findings).get(area, [])
    return all(one.outcome not in {"warn", "fail"} for one in members)


def _area(
    area: str,
    members: Iterable[Finding],
    said: Sequence[str],
    screen: Screen,
    *,
    verbose: bool,
) -> list[Line]:
    kinds = _by_id(members)
    lines = flow(screen, area, (_tick(kind, screen) for kind in kinds))
    for kind in kinds:
        lines += _details(kind, said, screen, verbose=verbose)
    return lines


def replay_check_lines(
    judgement: Judgement, said: Sequence[str], screen: Screen, *, verbose: bool
) -> list[Line]:
    """Return the same about one replay, in one run of ticks; passes are counted.

    What the notes on its outputs tell is left to them.
    """
    kinds = _by_id(judgement.findings)
    rest = [kind for kind in kinds if verbose or _worst(kind) != "pass"]
    ticks = [_tick(kind, screen) for kind in rest]
    if len(rest) < len(kinds):
        counted = Span(f" {text.plural(len(kinds) - len(rest), 'check')}")
        ticks.insert(0, (screen.mark("pass"), counted))
    lines = flow(screen, "checks", ticks)
    noted = {(output.name, output.reason) for output in judgement.outputs}
    for kind in rest:
        untold = [it for it in kind if verbose or (it.where, it.reason) not in noted]
        lines += _details(untold, said, screen, verbose=verbose)
    return lines


def advice_lines(
    findings: Sequence[Finding], said: Sequence[str], screen: Screen
) -> list[Line]:
    """Return what to do about the reasons of the verdict, in their order."""
    advice = dict.fromkeys(
        finding.advice
        for reason in said
        for finding in findings
        if finding.advice and _is_said(finding, [reason])
    )
    lines: list[Line] = []
    for position, words in enumerate(list(advice)[:MOST_ADVICE]):
        lines += paragraph(screen, "" if position else "next", words)
    return lines


def _by_area(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    areas: dict[str, list[Finding]] = {}
    for finding in findings:
        check = BY_NUMBER.get(finding.check)
        areas.setdefault(check.area if check else "other checks", []).append(finding)
    return areas


def _by_id(findings: Iterable[Finding]) -> list[list[Finding]]:
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        kinds.setdefault(finding.id, []).append(finding)
    return list(kinds.values())


def _worst(kind: Sequence[Finding]) -> CheckOutcome:
    return max((finding.outcome for finding in kind), key=_WEIGHT.__getitem__)


def _tick(kind: Sequence[Finding], screen: Screen) -> Line:
    worst = _worst(kind)
    matching = sum(finding.outcome == worst for finding in kind)
    if len(kind) == 1:
        times = ""
    elif matching == len(kind):
        times = f" ({text.count(matching)})"
    else:
        times = f" ({text.count(matching)} of {text.count(len(kind))})"
    return screen.mark(worst), Span(f" {kind[0].id}{times}")


def _details(
    kind: Sequence[Finding],
    said: Sequence[str],
    screen: Screen,
    *,
    verbose: bool,
) -> list[Line]:
    telling = [finding for finding in kind if _tells(finding, said, verbose=verbose)]
    telling.sort(key=lambda finding: -_WEIGHT[finding.outcome])
    shown = telling if verbose else telling[:MOST_PLACES]
    lines: list[Line] = []
    for finding in shown:
        lines += _detail(finding, said, screen, verbose=verbose)
    if len(telling) > len(shown):
        hidden = len(telling) - len(shown)
        lines += more(screen, hidden, "finding", f"of {kind[0].id}")
    return lines


def _tells(finding: Finding, said: Sequence[str], *, verbose: bool) -> bool:
    """Whether a finding says more than its tick and the reasons already do."""
    if verbose:
        return finding.outcome != "pass" or bool(finding.where or finding.reason)
    if finding.outcome not in {"warn", "fail"}:
        return False
    return bool(finding.expected or finding.got) or not _is_said(finding, said)


def _is_said(finding: Finding, said: Iterable[str]) -> bool:
    parts = (finding.id, finding.where, finding.reason)
    return any(all(part in reason for part in parts) for reason in said)


def _detail(
    finding: Finding, said: Sequence[str], screen: Screen, *, verbose: bool
) -> list[Line]:
    mark = screen.mark(finding.outcome)
    advice = "" if _is_said(finding, said) and not verbose else finding.advice
    words = _sentence(finding, advice, verbose=verbose)
    body = paragraph(screen, "", words, whole=verbose)
    margin = body[0][0].text[: -text.cells(mark.text) - 1]
    return [(Span(margin), mark, Span(" "), *body[0][1:]), *body[1:]]


def _sentence(finding: Finding, advice: str, *, verbose: bool) -> str:
    place = f" at {finding.where}" if finding.where else ""
    state = " was not checked" if finding.outcome == "not-checked" else ""
    reason = f": {finding.reason}" if finding.reason else ""
    parts = [f"{finding.id}{place}{state}{reason}"]
    sides = [
        f"{word} {side if verbose else _brief(side)}"
        for word, side in (("expected", finding.expected), ("got", finding.got))
        if side
    ]
    if sides:
        parts.append(", ".join(sides))
    if advice:
        parts.append(advice)
    if finding.allowed:
        parts.append("allowed by the caller")
    return f"{'; '.join(parts)} [{finding.check}]"


def _brief(side: str) -> str:
    """Shorten a side that is a digest; all other text stays."""
    is_digest = len(side) == 64 and all(char in "0123456789abcdef" for char in side)
    return f"{text.digest(side)}…" if is_digest else side
