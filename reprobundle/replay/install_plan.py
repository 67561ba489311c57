"""What is installed from a lock on one machine, and how far it may be adapted."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import msgspec

from reprobundle.errors import MissingPackageError
from reprobundle.format.lock import Lock
from reprobundle.replay.installer import Installer
from reprobundle.replay.interpreters import FoundPython, as_target
from reprobundle.run.lock import TOOLS
from reprobundle.run.pylock_file import (
    Selection,
    parse_pylock,
    requirement_lines,
    select,
)
from reprobundle.run.requirements import LeftOut, Requirements, requirements


@dataclass
class InstallPlan:
    """What is to be installed, and what of the lock this machine cannot have.

    Attributes:
        lock: The recorded environment.
        selection: What the lock for all targets comes to here; None without one.
        without: Names left out.
        plain: Names of which the plain release is taken.
    """

    lock: Lock
    selection: Selection | None = None
    without: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)


def locked_for(
    pylock: bytes | None, base: FoundPython, lock: Lock, without: frozenset[str]
) -> Selection | None:
    """Return what is locked for this machine, if that is known.

    Raises:
        MissingPackageError: A package that is needed here is published for others only.
    """
    if pylock is None or base.minor != lock.python.minor:
        return None
    selection = select(parse_pylock(pylock), as_target(base))
    chosen = tuple(one for one in selection.chosen if one.name not in without)
    blockers = tuple(one for one in selection.blockers if one.name not in without)
    selection = msgspec.structs.replace(selection, chosen=chosen, blockers=blockers)
    for blocker in selection.blockers:
        if not blocker.name:
            raise MissingPackageError(
                f"nothing is locked for {selection.target}: {blocker.reason}",
                package="",
                version="",
                advice="make the environment yourself and name its python with --env",
            )
        names = ", ".join(one.name for one in selection.blockers)
        raise MissingPackageError(
            f"{blocker.name}=={blocker.version} is locked for other systems only: "
            f"{blocker.reason} (without a file for {selection.target}: {names})",
            package=blocker.name,
            version=blocker.version,
            advice="replay on a system that the lock serves, or leave out what the "
            "command does not import with --without",
        )
    return selection


def install_all(
    plan: InstallPlan, tool: Installer, *, allow_other_build: bool
) -> list[tuple[str, ...]]:
    """Install the plan, adapting it as far as allowed; return the commands."""
    commands = None
    while commands is None:
        commands = _attempt(plan, tool, allow_other_build=allow_other_build)
    return commands


def _attempt(
    plan: InstallPlan, tool: Installer, *, allow_other_build: bool
) -> list[tuple[str, ...]] | None:
    """Install the plan, or change it and return None where another try makes sense."""
    try:
        return _install_plan(plan, tool)
    except MissingPackageError as missing:
        if _adapt(plan, missing, tool, allow_other_build=allow_other_build):
            return None
        raise


def _adapt(
    plan: InstallPlan,
    missing: MissingPackageError,
    tool: Installer,
    *,
    allow_other_build: bool,
) -> bool:
    """Change the plan so that `missing` is not asked for again; False if it must be."""
    locked = plan.lock.find(missing.package)
    if locked is None or missing.package in plan.without:
        return False
    elsewhere = plan.lock.python.system != tool.system
    if elsewhere and locked.platform_bound:
        tool.say(f"{locked.name} is not published for {tool.system}, left out")
        plan.without.add(locked.name)
        return True
    if allow_other_build and locked.local_label and locked.name not in plan.plain:
        tool.say(f"taking the plain release of {locked.name} {locked.version}")
        plan.plain.add(locked.name)
        return True
    return False


def _install_plan(plan: InstallPlan, tool: Installer) -> list[tuple[str, ...]]:
    if plan.selection is not None:
        return _install_selection(plan, plan.selection, tool)
    wanted = _requirements(plan, tool)
    if wanted.unhashed and tool.wheels is None:
        name, _, version = wanted.unhashed[0].partition("==")
        raise _only_local(plan.lock, name, version)
    pins = [_relabelled(pin, plan) for pin in wanted.pins]
    # On another system the lock is not complete: torch needs other packages there.
    same = (plan.lock.python.system, plan.lock.python.architecture)
    complete = same == (tool.system, tool.architecture)
    if not complete:
        bound = {item.name for item in plan.lock.distributions if item.platform_bound}
        # Those that may be missing come first, before anything large is fetched.
        pins.sort(key=lambda pin: pin.partition("==")[0] not in bound)
    commands = []
    groups = (("pins", tuple(pins), complete), ("hashed", wanted.hashed, True))
    for name, lines, no_dependencies in (*groups, ("local", wanted.unhashed, True)):
        if lines:
            commands.append(
                tool.install(plan.lock, name, lines, no_dependencies=no_dependencies)
            )
    return commands


def _install_selection(
    plan: InstallPlan, selection: Selection, tool: Installer
) -> list[tuple[str, ...]]:
    """Install the locked files of this system, then what only the live lock knows."""
    chosen = {one.name for one in selection.chosen}
    others = _requirements(plan, tool, but=chosen | set(selection.dropped))
    if others.unhashed and tool.wheels is None:
        name, _, version = others.unhashed[0].partition("==")
        raise _only_local(plan.lock, name, version)
    hashed, plain = requirement_lines(
        one for one in selection.chosen if one.name not in TOOLS
    )
    groups = {
        "locked": tuple(hashed),
        "sources": tuple(plain),
        "hashed": others.hashed,
        "others": (*others.pins, *others.unhashed),
    }
    return [
        tool.install(plan.lock, group, lines, no_dependencies=True)
        for group, lines in groups.items()
        if lines
    ]


def packages_left_out(plan: InstallPlan, tool: Installer) -> Iterator[LeftOut]:
    """Yield the locked packages that are not installed here, and why."""
    yield from _requirements(plan, tool).left_out
    for name in plan.selection.dropped if plan.selection is not None else ():
        locked = plan.lock.find(name)
        if locked is not None:
            reason = "is not needed on this system"
            yield LeftOut(name, locked.version, reason)


def _requirements(
    plan: InstallPlan, tool: Installer, *, but: Collection[str] = ()
) -> Requirements:
    lock = plan.lock
    if but:
        kept = tuple(item for item in lock.distributions if item.name not in but)
        lock = msgspec.structs.replace(lock, distributions=kept)
    return requirements(
        lock,
        without=frozenset(plan.without),
        folder_only=tool.wheels is not None,
    )


def _relabelled(pin: str, plan: InstallPlan) -> str:
    name, separator, version = pin.partition("==")
    if separator and name in plan.plain:
        return f"{name}=={version.partition('+')[0]}"
    return pin


def _only_local(lock: Lock, name: str, version: str) -> MissingPackageError:
    locked = lock.find(name)
    source = locked.detail if locked else ""
    return MissingPackageError(
        f"{name}=={version} was installed from {source!r} on the recording machine, "
        "which no index serves",
        package=name,
        version=version,
        advice="give a folder that holds its wheel",
    )


def expected_versions(plan: InstallPlan, tool: Installer) -> dict[str, str]:
    """Return the versions that have to be there, by name."""
    absent = {item.name for item in packages_left_out(plan, tool)}
    expected = {
        item.name: item.version.partition("+")[0]
        if item.name in plan.plain
        else item.version
        for item in plan.lock.distributions
        if item.name not in absent
    }
    for one in plan.selection.chosen if plan.selection is not None else ():
        if one.version and one.name not in TOOLS:
            expected[one.name] = one.version
    return expected
