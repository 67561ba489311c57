"""How a rule answers, yes, no or that evidence is missing, and what runs show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reprobundle.format.assessment import Evidence
from reprobundle.verify.assessment.case import MAC, Case, JudgedRun
from reprobundle.verify.assessment.versions import same_versions
from reprobundle.verify.devices import platform_label
from reprobundle.verify.ending import is_finished

SCAN = "reprobundle scan BUNDLE --json, given with --scan"
FORECAST = "reprobundle forecast BUNDLE --json, given with --forecast"
DOCTOR = "reprobundle doctor BUNDLE --json on the Mac, given with --doctor"
ON_MAC = "reprobundle replay BUNDLE --device mps on a Mac"


class Answer(NamedTuple):
    """What a rule says of a case; `fires` is None where evidence is missing."""

    fires: bool | None
    text: str
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()


def no(text: str, *evidence: Evidence) -> Answer:
    """Return that evidence speaks against the rule."""
    return Answer(False, text, evidence)


def yes(text: str, *evidence: Evidence) -> Answer:
    """Return that evidence makes the rule fire."""
    return Answer(True, text, evidence)


def unknown(text: str, *missing: str) -> Answer:
    """Return that evidence is missing, and what would be evidence."""
    return Answer(None, text, missing=missing)


def runs_on_mps(case: Case) -> list[JudgedRun]:
    """Return the newest runs that used MPS on a real Mac."""
    return [run for run in case.on_mac if platform_label(run.record) == MAC]


def runs_with_versions(case: Case) -> list[JudgedRun]:
    """Return every run on MPS with the versions of the newest one, of any call."""
    newest = runs_on_mps(case)
    if not newest:
        return []
    last = newest[-1].record
    return [
        run
        for run in case.runs
        if platform_label(run.record) == MAC
        and run.record.claim == last.claim
        and same_versions(run.record, last)
    ]


def reproduced_on_mps(case: Case) -> bool:
    """Whether there are finished runs on MPS, and all gave the result."""
    runs = [run for run in runs_on_mps(case) if is_finished(run.record)]
    return bool(runs) and all(run.is_reproduced for run in runs)


def stops(case: Case, reasons: Sequence[str]) -> tuple[Evidence, ...]:
    """Return the runs on a Mac that stopped for one of these reasons."""
    return tuple(
        Evidence(
            source=f"{run.name}/record.json: outcome",
            says=f"{run.record.outcome.stop}: {run.record.outcome.stop_detail}",
        )
        for run in case.on_mac
        if run.record.outcome.stop in reasons
    )
