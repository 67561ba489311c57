"""The environment a replay runs in, as the call chose it, and what differs in it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.record import Fact, Remark
from reprobundle.replay.environment import (
    PythonEnvironment,
    build_fresh,
    check_current,
    install_entry,
)
from reprobundle.replay.options import ReplayOptions
from reprobundle.replay.overlay import lay_over, over
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.lock import Drift
from reprobundle.run.package_origin import normalised

MOST_DRIFT_TOLD = 12


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChosenEnvironment:
    """An interpreter, and how its packages compare with the lock.

    Attributes:
        python: The interpreter.
        drift: What differs from the lock.
        overlay: Folder of packages that stand before its own, or None.
        facts: How it was made, for the record.
    """

    python: Path
    drift: tuple[Drift, ...] = ()
    overlay: Path | None = None
    facts: Mapping[str, Fact] = dataclasses.field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield what to say about it before anything runs."""
        if not self.drift:
            yield "environment: equal to the lock"
        for one in self.drift[:MOST_DRIFT_TOLD]:
            grade = ", known to change numbers" if one.grade == "numeric" else ""
            yield (
                f"environment differs: {one.name} {one.reference} in the lock, "
                f"{one.here} here{grade}"
            )
        if len(self.drift) > MOST_DRIFT_TOLD:
            rest = len(self.drift) - MOST_DRIFT_TOLD
            yield f"environment differs: and {rest} more packages"

    def variables(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` with what a command needs to import from the overlay."""
        return over(self.overlay, base) if self.overlay else dict(base)

    def remarks(self) -> Iterator[Remark]:
        """Yield one remark for each difference, for the record."""
        for drift in self.drift:
            yield Remark(
                id="environment-differs",
                severity="gap",
                where=drift.name,
                text=f"{drift.reference} in the lock, {drift.here} in this environment",
            )


def choose_environment(
    options: ReplayOptions,
    plan: ReplayPlan,
    say: Callable[[str], None],
    *,
    folder: Path,
) -> ChosenEnvironment:
    """Build or find the environment, and compare it with the lock.

    Args:
        options: The call.
        plan: What is to be run.
        say: Told each step as one line.
        folder: Where packages of ``--with`` may be put; ends with the call.

    Raises:
        EnvironmentUnusableError: None could be made; `stop` is ``platform`` where
            this platform cannot have the recorded packages.
    """
    if options.environment == "fresh":
        say("environment: building it from the lock")
        built = build_fresh(
            plan.lock,
            pylock=plan.pylock,
            conda=plan.conda,
            without=frozenset(map(normalised, options.without)),
            wheels=options.wheels,
            allow_other_build=options.allow_other_build,
            allow_other_python=options.allow_other_python,
            progress=say,
        )
        install_entry(built.python)
        chosen = ChosenEnvironment(
            python=built.python, drift=built.drift, facts=_facts_of(built)
        )
    else:
        python = _named_python(options.environment)
        chosen = ChosenEnvironment(
            python=python,
            drift=check_current(plan.lock, python),
            facts={"replay.environment": _fact(options.environment)},
        )
    if options.packages:
        chosen = _laid_over(chosen, options, plan, say, folder)
    differences = Fact(value=len(chosen.drift), source="the lock")
    facts = {
        **chosen.facts,
        "replay.environment.differences": differences,
        "replay.environment.numeric": _numeric(chosen.drift),
    }
    return dataclasses.replace(chosen, facts=facts)


def _numeric(drift: Sequence[Drift]) -> Fact:
    """Return the packages known to change numbers that are here in another release.

    The interpreter, torch and numpy have facts of their own. What only one side has
    is not counted: the command would fail without it, or does not know of it.
    """
    own = ("python", "torch", "numpy")
    found = tuple(
        f"{one.name}: {one.reference} -> {one.here}"
        for one in drift
        if one.grade == "numeric"
        and one.name not in own
        and not one.name.startswith("python.")
        and "absent" not in (one.reference, one.here)
    )
    return Fact(value=found, source="the lock")


def _laid_over(
    chosen: ChosenEnvironment,
    options: ReplayOptions,
    plan: ReplayPlan,
    say: Callable[[str], None],
    folder: Path,
) -> ChosenEnvironment:
    installed = lay_over(
        chosen.python, options.packages, folder, wheels=options.wheels, say=say
    )
    variables = over(folder, os.environ)
    return dataclasses.replace(
        chosen,
        overlay=folder,
        drift=check_current(plan.lock, chosen.python, env=variables),
        facts={**chosen.facts, "replay.environment.overlay": _fact(installed)},
    )


def current_python() -> Path:
    """Return the active environment's interpreter, else the one that runs us."""
    active = os.environ.get("VIRTUAL_ENV")
    if active:
        found = shutil.which("python", path=str(Path(active) / "bin"))
        if found:
            return Path(found)
    return Path(sys.executable)


def _named_python(name: str) -> Path:
    python = current_python() if name == "current" else Path(name).absolute()
    if not python.is_file():
        raise EnvironmentUnusableError(
            f"there is no interpreter at {name!r}",
            advice="use --env current, --env fresh, or a path to a python",
        )
    return python


def _fact(value: str | tuple[str, ...]) -> Fact:
    return Fact(value=value, source="replay")


def _facts_of(built: PythonEnvironment) -> dict[str, Fact]:
    """Return how a fresh environment was made, for the record."""
    left_out = (f"{one.name} {one.version}: {one.reason}" for one in built.left_out)
    return {
        "replay.environment": _fact("fresh"),
        "replay.environment.installer": _fact(built.installer),
        "replay.environment.commands": _fact(
            tuple(" ".join(command) for command in built.commands)
        ),
        "replay.environment.left_out": _fact(tuple(left_out)),
        "replay.environment.freeze": _fact(
            tuple(f"{one.name}=={one.version}" for one in built.freeze.distributions)
        ),
        "replay.environment.other_builds": _fact(tuple(built.other_builds)),
    }
