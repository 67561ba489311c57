"""For which versions an acceptance holds, and whether they are still those in use.

A verdict is about the versions it was made with: another build of the system brings
another MPSGraph, another torch other kernels. So a change makes an acceptance stale. It
is then not wrong; it says nothing about the new versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from reprobundle.format.assessment import Assessment, HeldFor
from reprobundle.format.record import Record
from reprobundle.verify.devices import platform_label
from reprobundle.verify.ending import is_finished

if TYPE_CHECKING:
    from reprobundle.verify.assessment.case import Case, JudgedRun

# Facts that name a version, in the order in which a change is told.
VERSION_FACTS: tuple[str, ...] = (
    "torch.version",
    "torch.git_version",
    "os.name",
    "os.version",
    "os.build",
    "mps.graph_version",
    "python.version",
    "numpy.version",
    "torch.cuda.built",
    "torch.cudnn.version",
    "gpu.driver",
    "machine.model",
    "machine.chip",
    "cpu.model",
    "torch.mps.name",
    "torch.cuda.devices",
)
DECISIVE: tuple[str, ...] = (
    "torch.version",
    "os.version",
    "os.build",
    "mps.graph_version",
)
"""Without these a machine cannot be said to be the one that was accepted."""

PACKAGES = "replay.environment.differences"
"""How many packages differ from the lock; another number is another environment."""


def versions_of(record: Record) -> dict[str, str]:
    """Return the versions that a run was made with, as far as they are known."""
    found = {
        name: _text(fact.value)
        for name in (*VERSION_FACTS, PACKAGES)
        if (fact := record.environment.get(name)) is not None and not fact.unknown
    }
    return {**found, "tool": record.tool}


def same_versions(one: Record, other: Record) -> bool:
    """Whether two runs were made with the same versions, packages aside."""
    sides = (one.environment, other.environment)
    return all(
        len({fact.value if (fact := side.get(name)) else None for side in sides}) == 1
        for name in VERSION_FACTS
    )


def held_for(case: Case) -> tuple[HeldFor, ...]:
    """Return the versions of every deciding run that came to its end."""
    return tuple(
        HeldFor(
            run=run.name,
            platform=platform_label(run.record),
            versions=versions_of(run.record),
        )
        for run in case.runs
        if run.id in case.deciding and is_finished(run.record)
    )


def changed_since(
    assessment: Assessment, runs: Sequence[JudgedRun], mine: Mapping[str, JudgedRun]
) -> Iterator[str]:
    """Yield what newer runs of the bundle have otherwise than the accepted ones.

    Args:
        assessment: What was accepted.
        runs: All replays that are attached now, in order, no experiment among them.
        mine: Those of them that were accepted, by name.
    """
    known = set(assessment.replays)
    newer = [run for run in runs if run.id not in known and is_finished(run.record)]
    told: set[str] = set()
    for held in _once(assessment.holds_for):
        accepted = mine.get(held.run)
        if accepted is None:
            continue
        for run in newer:
            alike = (
                platform_label(run.record) == held.platform
                and run.record.claim == accepted.record.claim
            )
            if not alike:
                continue
            for change in _differences(held, versions_of(run.record)):
                # The passes of one call differ alike: the first one stands for all.
                if change not in told:
                    told.add(change)
                    yield f"{change} on {run.name[:20]}"
            if run.judgement.exit_status == 10 and accepted.is_reproduced:
                yield f"a newer run says {run.judgement.verdict} ({run.name[:20]})"


class Here(NamedTuple):
    """What a machine says to the versions of an acceptance.

    Attributes:
        changed: What it has otherwise.
        unknown: Decisive versions that it does not tell, so that nothing holds.
        not_compared: Names of the other versions that nobody asked it for.
    """

    changed: tuple[str, ...]
    unknown: tuple[str, ...]
    not_compared: tuple[str, ...]


def compare_here(
    assessment: Assessment, *, platform: str, here: Mapping[str, str]
) -> Here:
    """Return how a machine stands to the accepted runs on its platform.

    Args:
        assessment: What was accepted.
        platform: The machine's system as a policy names it: ``linux``, ``macos``.
        here: Its versions, as far as they are known.
    """
    mine = [
        one
        for one in _once(assessment.holds_for)
        if one.platform.partition("-")[0] == platform
    ]
    changed = [
        f"{text} on this machine" for one in mine for text in _differences(one, here)
    ]
    stated = dict.fromkeys(name for one in mine for name in one.versions)
    lacking = [name for name in stated if name not in here]
    return Here(
        changed=tuple(dict.fromkeys(changed)),
        unknown=tuple(name for name in lacking if name in DECISIVE),
        not_compared=tuple(name for name in lacking if name not in DECISIVE),
    )


def platforms_of(assessment: Assessment) -> tuple[str, ...]:
    """Return the systems that an acceptance holds for."""
    names = (held.platform.partition("-")[0] for held in assessment.holds_for)
    return tuple(dict.fromkeys(names))


def _once(held: Sequence[HeldFor]) -> list[HeldFor]:
    """Return one entry for each platform with each set of versions."""
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], HeldFor] = {}
    for one in held:
        seen.setdefault((one.platform, tuple(sorted(one.versions.items()))), one)
    return list(seen.values())


def _differences(held: HeldFor, other: Mapping[str, str]) -> Iterator[str]:
    for name, value in held.versions.items():
        got = other.get(name)
        if got is not None and got != value:
            yield f"{name}: {value} when accepted, {got}"


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
