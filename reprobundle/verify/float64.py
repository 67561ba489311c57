"""Whether a run would meet float64 on MPS, which has none (V11)."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.findings import Finding
from reprobundle.format.record import Float64Search, Float64Site
from reprobundle.verify.checks import finding
from reprobundle.verify.sealed import Sealed

MOST_NAMED = 5
_HOW = {
    "moved": "is moved to the device",
    "made": "is made on the device",
    "computed": "comes out of an operator on the device",
}


def check_float64(sealed: Sealed) -> Iterator[Finding]:
    """Yield where the sealed runs would raise on MPS, if their result counts there."""
    wanted = any("mps" in name for name in sealed.policy.intent.accepting_platforms)
    for number, record in sorted(sealed.runs.items()):
        if record.role == "evidence":
            yield _judged(record.devices.float64, f"runs/{number}", wanted=wanted)
            continue
        traced = bool(sealed.fellows(record, "evidence"))
        first = record.role in ("reference", "claim")
        if first and wanted and not traced and record.loaded_torch:
            yield finding(
                "float64-on-mps",
                "not-checked",
                "no evidence pass was made: whether float64 would reach MPS is not "
                "known",
                where=f"runs/{number}",
                advice="pack with --passes measured,repeat,evidence",
            )


def _judged(search: Float64Search, where: str, *, wanted: bool) -> Finding:
    told = site_texts(search)
    if not wanted:
        said = f"; on MPS these places would raise: {told}" if told else ""
        reason = f"the result need not count on MPS{said}"
        return finding("float64-on-mps", "not-applicable", reason, where=where)
    if told:
        return finding(
            "float64-on-mps",
            "warn",
            f"MPS has no float64, and a run there raises at these places: {told}",
            where=search.sites[0].where or where,
            expected="float32",
            got=search.sites[0].dtype,
            advice="make these tensors float32, or keep them on the CPU with .cpu()",
        )
    if not search.operators or search.reason:
        reason = search.reason or "no tensor was moved to or made on a device"
        return finding(
            "float64-on-mps",
            "not-checked",
            f"whether float64 would reach MPS is not known: {reason}",
            where=where,
        )
    reason = f"none at {search.operators:,} operators and moves on the device"
    return finding("float64-on-mps", "pass", reason, where=where)


def site_texts(search: Float64Search, *, most: int = MOST_NAMED) -> str:
    """Return the places in words, the most frequent ones first; empty for none.

    Args:
        search: What an evidence pass found.
        most: How many places are named.
    """
    ordered = sorted(search.sites, key=lambda site: -site.count)
    shown = [_text(site) for site in ordered[:most]]
    if len(ordered) > most:
        shown.append(f"and {len(ordered) - most} more places")
    return "; ".join(shown)


def _text(site: Float64Site) -> str:
    operator = f" ({site.operator})" if site.operator else ""
    phase = f" in {site.phase}" if site.phase else ""
    times = f" ×{site.count}" if site.count > 1 else ""
    return (
        f"{site.where or 'unknown place'}: {site.dtype} {_HOW[site.how]}{operator}"
        f"{phase}{times}"
    )
