"""Which packages of a live environment are asked for, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from reprobundle.format.lock import Distribution, Lock
from reprobundle.run.package_origin import is_private, normalised
from reprobundle.run.requirements import TOOLS
from reprobundle.run.targets import Target, target_of

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_PROJECT = "{project}"


def roots(lock: Lock) -> tuple[Distribution, ...]:
    """Return the distributions that no other one requires, then what they miss.

    What the project requires is wanted for itself too, for the project is in the bundle
    and not in the lock.
    """
    required = required_names(lock)
    someone = {
        other for name, names in required.items() for other in names if other != name
    }
    wanted = [item for item in lock.distributions if not is_left_out(item)]
    found = [item for item in wanted if item.name not in someone]
    reached = closure((item.name for item in found), required)
    for item in wanted:
        # A ring of packages that require each other has no root of its own.
        if item.name not in reached:
            found.append(item)
            reached |= closure([item.name], required)
    return tuple(found)


def required_names(lock: Lock) -> dict[str, set[str]]:
    """Return what each distribution requires where the run was made.

    A requirement counts if no extra is needed for it: what an extra brought in is
    wanted for itself.
    """
    target = target_of(lock.python)
    return {
        item.name: {normalised(one.name) for one in _requirements(item, target)}
        for item in lock.distributions
        if not is_left_out(item)
    }


def _requirements(item: Distribution, target: Target) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    for text in item.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        if marker is None or marker.evaluate({**target.environment, "extra": ""}):
            yield requirement


def closure(names: Iterable[str], required: Mapping[str, set[str]]) -> set[str]:
    """Return `names` and all that they require, directly or not."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += required.get(name, ())
    return reached


def is_public(item: Distribution) -> bool:
    """Whether a stranger can fetch it: from an index, or from a public address."""
    if item.origin in ("url", "vcs"):
        return not is_private(item.detail)
    return item.origin == "index" or bool(item.local_label)


def requirement(item: Distribution, labelled: bool) -> str:
    """Return what asks uv for it: its address, or its recorded version."""
    if item.origin in ("url", "vcs"):
        return f"{item.name} @ {item.detail}"
    return pin(item, labelled)


def pin(item: Distribution, labelled: bool) -> str:
    """Return the recorded version, with its label only where the run was made."""
    version = item.version if labelled else item.version.partition("+")[0]
    return f"{item.name}=={version}"


def is_left_out(item: Distribution) -> bool:
    """Whether it is an installer's own, or the project itself."""
    return item.name in TOOLS or item.detail.startswith(_PROJECT)
