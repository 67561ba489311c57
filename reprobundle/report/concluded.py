"""What came of each claim, and what the verifier's own policy would say, in words.

Every format takes its words from here, so none can have an answer of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from reprobundle.format.findings import Report, SecondOpinion
from reprobundle.format.judged import BandResult, ClaimResult, EndResult
from reprobundle.report import text

CLAIM_COLUMNS = ("claim", "statement", "result", "numbers")
NOT_RUN = "NOT RUN"


def told_claims(report: Report) -> Sequence[ClaimResult]:
    """Return the claims that say more than the verdict does.

    One claim over all outputs, without statement and number, is the verdict.
    """
    return [
        one
        for one in report.claims
        if one.statement or one.bands or one.ends or len(report.claims) > 1
    ]


def claim_cells(one: ClaimResult) -> tuple[str, str, str, str]:
    """Return what a table says about one claim."""
    return (
        one.name,
        one.statement or "no statement",
        one.result,
        claim_numbers(one),
    )


def claim_numbers(one: ClaimResult) -> str:
    """Return the numbers of a claim with their bands, in one line.

    A statement without a band is shown and not judged: the result is that of the
    claim's outputs.
    """
    numbers = [*map(_band, one.bands), *map(_end, one.ends)]
    if one.statement and not one.judged and one.result != NOT_RUN:
        numbers.append("no number of it is judged")
    return "; ".join(numbers)


def _band(band: BandResult) -> str:
    here = "not found" if band.replay is None else text.number(float(band.replay))
    known = band.reference is not None
    reference = text.number(float(band.reference or 0.0)) if known else "not found"
    bounds = (("at least", band.least), ("at most", band.most))
    limits = ", ".join(f"{word} {end:g}" for word, end in bounds if end is not None)
    return f"{band.metric} {here}, reference {reference}, {limits or 'no band'}"


def _end(one: EndResult) -> str:
    # Few bundles have end tests, and all are to be shown quickly.
    from reprobundle.verify.ends import end_words

    if one.result == "not-judged":
        return f"the end of {one.metric} is not judged: {one.reason}"
    said = {"same": "as the author's", "other": "other than the author's"}
    return f"{one.metric} ends {said[one.result]}, {end_words(one)}"


def failure_words(report: Report) -> str:
    """Return what a good verdict rests on where an error is the only result.

    No bit of an output was compared there; nothing is said of any other report.
    """
    if report.exit_status or not report.judgements:
        return ""
    alone = all(
        not any(not output.excluded for output in one.outputs)
        and any(found.id == "same-failure" for found in one.findings)
        for one in report.judgements
    )
    return "the expected failure only: there is no output to compare" if alone else ""


def opinion_words(opinion: SecondOpinion) -> str:
    """Return the verdict under the verifier's policy, in one sentence."""
    by = f" by {opinion.author}" if opinion.author else ""
    return (
        f"under {opinion.file}{by}: {opinion.verdict} (would exit "
        f"{opinion.exit_status})"
    )
