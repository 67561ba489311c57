"""A bundle's main command and files, made ready to be run by something but a replay."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from reprobundle.errors import BadCallError
from reprobundle.format.record import Command
from reprobundle.replay.chosen_environment import choose_environment
from reprobundle.replay.externals import placed
from reprobundle.replay.extracted import extract_files
from reprobundle.replay.options import ReplayOptions
from reprobundle.replay.plan import ReplayPlan
from reprobundle.run.command import replay_base
from reprobundle.run.project import Stage
from reprobundle.run.withheld import problem


@dataclasses.dataclass(frozen=True, kw_only=True)
class TakenOut:
    """What a bundle's main command needs to run.

    Attributes:
        command: As recorded.
        placed: Where files outside the project lie, see `placed`.
        stage: Its files.
        python: The interpreter of the chosen environment.
        variables: What the command may see of this machine.
        differences: How the environment differs from the lock, one phrase each.
    """

    command: Command
    placed: Mapping[str, str]
    stage: Stage
    python: Path
    variables: Mapping[str, str]
    differences: tuple[str, ...]


def take_out(options: ReplayOptions, plan: ReplayPlan, folder: Path) -> TakenOut:
    """Extract the main command's files to `folder` and choose its environment.

    Nothing of the bundle is run.

    Raises:
        BadCallError: Files are withheld, and no copy of them was given.
        BundleError: The bundle changed since it was planned.
        EnvironmentUnusableError: The environment cannot be had.
    """
    run = plan.runs[0]
    for one in run.record.withheld:
        if reason := problem(one, plan.data):
            raise BadCallError(
                f"the command reads {one.name}, which the bundle does not hold: "
                f"{reason}",
                advice=f"name your copy: --data {one.name}=FILE",
            )
    extracted = extract_files(options.bundle, plan, folder)
    chosen = choose_environment(options, plan, _silent, folder=folder / "overlay")
    places, lacking = placed(run.record, plan=plan, extracted=extracted.folder)
    if lacking:
        raise BadCallError(f"the command cannot run here: {lacking}")
    data = {one.name: plan.data[one.name] for one in run.record.withheld}
    return TakenOut(
        command=run.record.command,
        placed=places,
        stage=extracted.stage.with_replaced(data),
        python=chosen.python,
        variables=chosen.variables(replay_base(os.environ)),
        differences=tuple(
            f"{one.name} {one.reference} in the lock, {one.here} here"
            for one in chosen.drift
        ),
    )


def _silent(line: str) -> None:
    """Say nothing: a forecast's own report names the differences."""
