"""Does a bundle fit the destinations it is meant for?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from reprobundle.errors import BadCallError
from reprobundle.format.destinations import DESTINATIONS
from reprobundle.format.fit_report import (
    FitFinding,
    FitReport,
    FitResult,
    Offer,
)
from reprobundle.format.reader import open_bundle
from reprobundle.verify.fit.dividing import can_be_split
from reprobundle.verify.fit.measures import measure
from reprobundle.verify.fit.offers import offers
from reprobundle.verify.fit.subject import Subject

EXIT_DOES_NOT_FIT = 10
_BY_SIZE = ("file-bytes", "text-characters")


def check_fit(path: Path, names: Iterable[str]) -> FitReport:
    """Return how the bundle at `path` fits each of the destinations called `names`.

    Whether the bundle is intact is not asked; `verify` answers that.

    Raises:
        BadCallError: There is no such destination.
        BundleError: The file is no bundle.
        EnvironmentUnusableError: It cannot be read.
    """
    wanted = tuple(dict.fromkeys(names)) or tuple(DESTINATIONS)
    for name in wanted:
        if name not in DESTINATIONS:
            raise BadCallError(
                f"no destination is called {name!r}",
                advice=f"choose from {', '.join(DESTINATIONS)}",
            )
    with open_bundle(path) as bundle:
        subject = Subject(bundle)
        results = tuple(_result(subject, name) for name in wanted)
        return FitReport(
            file=path.name,
            bundle=bundle.id,
            size_bytes=bundle.size_bytes,
            destinations=results,
            exit_status=0 if all(one.fits for one in results) else EXIT_DOES_NOT_FIT,
        )


def _result(subject: Subject, name: str) -> FitResult:
    destination = DESTINATIONS[name]
    findings = tuple(measure(subject, limit) for limit in destination.limits)
    refused = [one for one in findings if one.outcome == "fail"]
    too_large = next((one for one in refused if one.id in _BY_SIZE), None)
    found: tuple[Offer, ...] = ()
    enough = True
    if too_large is not None:
        as_text = too_large.id == "text-characters" and too_large.measured is not None
        found, enough = _chosen(offers(subject, as_text=as_text), too_large)
    return FitResult(
        destination=name,
        title=destination.title,
        how=destination.how,
        fits=not refused,
        findings=findings,
        offers=found,
        enough=enough,
        can_be_split=too_large is not None and can_be_split(subject.bundle, name),
    )


def _chosen(
    found: Sequence[Offer], too_large: FitFinding
) -> tuple[tuple[Offer, ...], bool]:
    """Mark as many offers as are needed, largest first; return whether they do."""
    if too_large.measured is None or too_large.most is None:
        return tuple(found), False
    excess = too_large.measured - too_large.most
    over = excess
    marked = []
    for one in found:
        saves = (
            one.saves_bytes if one.saves_characters is None else one.saves_characters
        )
        # What saves less than a hundredth of what is too much would only be noise.
        if over > 0 or saves * 100 >= excess:
            marked.append(msgspec.structs.replace(one, chosen=over > 0))
        over -= saves
    return tuple(marked), over <= 0
