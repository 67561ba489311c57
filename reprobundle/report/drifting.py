"""Say how the error of a series grows from row to row."""

from __future__ import annotations

from reprobundle.format.findings import ArrayComparison
from reprobundle.report import text

# As for `policy suggest`: a tenfold growth is drift.
GROWS = 10.0


def drift_words(part: ArrayComparison) -> str:
    """Return in words how the error grew; empty where it did not, or is no series."""
    from reprobundle.verify.drift import growth

    factor = growth(part.drift)
    if factor < GROWS:
        return ""
    known = [one for one in part.drift if one.max_rel is not None and one.max_rel]
    first, last = known[0], known[-1]
    outside = next((one.first for one in part.drift if one.outside), None)
    leaves = "" if outside is None else f", outside the tolerance from row {outside} on"
    return (
        f"the error grows {text.number(factor)} times along the rows: "
        f"{text.number(float(first.max_rel or 0))} at row {first.first}, "
        f"{text.number(float(last.max_rel or 0))} in the last {last.rows}{leaves}"
    )
