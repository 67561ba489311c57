"""The steps of one `replay`, in order: extract, make the environment, run, keep.

A step that this machine cannot take is a result too: its reason is written into a
record, and the record is attached like any other.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import EnvironmentUnusableError, SensitiveContentError
from reprobundle.format.attach import Tree, attach_replay, write_replay_file
from reprobundle.format.canonical import encode
from reprobundle.format.record import (
    STAND_IN,
    Command,
    Experiment,
    Outcome,
    Record,
)
from reprobundle.format.writer import Source
from reprobundle.replay import stopped
from reprobundle.replay.admission import admit
from reprobundle.replay.chosen_environment import (
    ChosenEnvironment,
    choose_environment,
)
from reprobundle.replay.data_use import data_remarks
from reprobundle.replay.draw_source import draws_of, require_kept
from reprobundle.replay.draws import compare_draws
from reprobundle.replay.externals import external_reads, placed
from reprobundle.replay.extracted import extract_files
from reprobundle.replay.handed_over import handoff_remarks
from reprobundle.replay.options import ReplayOptions
from reprobundle.replay.plan import PlannedRun, ReplayPlan
from reprobundle.replay.refused import kept_aside, refused_root
from reprobundle.run.asked import parse_asked
from reprobundle.run.assemble import assemble
from reprobundle.run.availability import Obstacle, obstacle
from reprobundle.run.budget import (
    OUTPUT_BUDGET_BYTES,
    Budget,
    kept_whole,
    not_whole,
    places_of_rows,
    within_budget,
)
from reprobundle.run.command import (
    DEVICE,
    platform_name,
    replay_base,
)
from reprobundle.run.copies import DataUse
from reprobundle.run.device_facts import DeviceMapping
from reprobundle.run.execute import PassPlan, execute
from reprobundle.run.finished import SERIES, Assembled
from reprobundle.run.launch import Draws
from reprobundle.run.lock import Drift
from reprobundle.run.restart import execute_restart
from reprobundle.run.shared_content import share_content
from reprobundle.run.space import require_space
from reprobundle.run.stand_ins import stand_in_plan, stand_in_remarks, with_remarks
from reprobundle.run.withheld import problem
from reprobundle.run.withheld_outputs import as_in_reference

Say = Callable[[str], None]


class ReplayJob:
    """The state of one call of `replay` between its steps."""

    def __init__(
        self,
        options: ReplayOptions,
        plan: ReplayPlan,
        folder: Path,
        say: Say,
        use: DataUse,
    ) -> None:
        self.use = use
        self.options = options
        self.plan = plan
        self.folder = folder
        self.say = say
        self.asked = parse_asked(
            options.settings,
            shapes=options.shapes,
            round_=options.round,
            packages=options.packages,
        )
        self.settings = self.asked.settings
        self.occasion = secrets.token_hex(8)
        self.environment = ChosenEnvironment(python=Path(sys.executable))
        self.obstacle: Obstacle | None = None
        self.device = "as-is"

    @property
    def drift(self) -> tuple[Drift, ...]:
        """What differs between this environment and the lock."""
        return self.environment.drift

    def prepare(self) -> None:
        """Extract the files and make the environment."""
        plan = self.plan
        require_kept(plan, self.options.rng)
        require_space(self.folder, 3 * plan.files_bytes, "copies of the project")
        self.extracted = extract_files(self.options.bundle, plan, self.folder)
        self.lacking = {
            one.name: reason
            for one in plan.withheld
            if (reason := problem(one, plan.data))
        }
        try:
            self.environment = choose_environment(
                self.options, plan, self.say, folder=self.folder / "overlay"
            )
            for line in self.environment.lines():
                self.say(line)
            self._tell_draws()
        except EnvironmentUnusableError as error:
            if error.stop != "platform":
                raise
            # The platform cannot have the recorded packages: that is a result, not
            # an accident, and the record of it is attached.
            outcome = Outcome(
                exit_status=0,
                completed=False,
                stop="platform",
                stop_detail=str(error),
            )
            self.obstacle = Obstacle(outcome)

    def _tell_draws(self) -> None:
        """Say whether one seed gives the reference's numbers here."""
        records = tuple(run.record for run in self.plan.runs)
        folder = self.folder / "draws"
        for line in compare_draws(records, self.environment.python, folder):
            self.say(line)

    def run_all(self) -> list[Assembled]:
        """Run every planned run on every device."""
        return [
            self._of_experiment(run)
            for device in self.options.devices
            for run in self._run_on(device)
        ]

    @property
    def experiment(self) -> Experiment | None:
        """The mark of a run that is to differ from the reference, if this is one."""
        if self.options.experiment is None and self.asked.facts():
            return Experiment(id=self.occasion)
        return self.options.experiment

    def _of_experiment(self, assembled: Assembled) -> Assembled:
        record = msgspec.structs.replace(assembled.record, experiment=self.experiment)
        return dataclasses.replace(assembled, record=record)

    def _run_on(self, device: str) -> list[Assembled]:
        """Run every planned run; stop after one that did not come to its end."""
        self.device = self._meant(device)
        variables = self.environment.variables(replay_base(os.environ) | self.settings)
        found = self.obstacle or obstacle(
            self.environment.python, self.device, variables
        )
        if found is not None:
            self.say(f"not run: {found.outcome.stop_detail}")
            return [self._stopped(planned, found) for planned in self.plan.runs]
        done: list[Assembled] = []
        for planned in self.plan.runs:
            record = planned.record
            if planned.pass_name == "evidence" and not _loaded_torch(done, record):
                self.say("evidence pass left out: the command loaded no torch here")
                continue
            self.say(
                f"{planned.pass_name} pass of claim {record.claim!r}: "
                f"{shlex.join(record.command.argv)}"
            )
            assembled = self._run_one(planned)
            done.append(assembled)
            if not assembled.record.outcome.completed or assembled.record.outcome.stop:
                break
        return done

    def _meant(self, device: str) -> str:
        """Return the reference's device where the command needs one and none is named.

        Only then: a command that picks its device itself goes on doing so.
        """
        for planned in self.plan.runs:
            named = any(DEVICE in part for part in planned.record.command.argv)
            if device == "as-is" and named:
                return planned.record.devices.requested
        return device

    def _run_one(self, planned: PlannedRun) -> Assembled:
        reference = planned.record
        lacking = [
            self.lacking[one.name]
            for one in reference.withheld
            if one.name in self.lacking
        ]
        if lacking:
            return self._stopped(planned, _no_data(lacking[0]))
        places, missing = placed(
            reference, plan=self.plan, extracted=self.extracted.folder
        )
        turn = f"-{planned.turn}" if planned.turn > 1 else ""
        name = f"{planned.pass_name}{planned.number}{turn}"
        folder = self.folder / self.device / name
        if missing:
            return self._stopped(planned, _no_data(missing))
        draws = draws_of(planned, self.plan, self.options.rng, self.extracted.folder)
        plan = self._plan(reference.command, planned, draws)
        plan = dataclasses.replace(plan, placed=places)
        if planned.pass_name == "restart":
            resume = self.options.resume_command or planned.resume
            run = execute_restart(plan, folder, resume)
        else:
            run = execute(plan, folder)
        assembled = assemble(
            run,
            role="replay",
            claim=reference.claim,
            bundle=self.plan.bundle,
            compared_run=planned.number,
            occasion=self.occasion,
            expected_failure=reference.outcome.expected_failure,
            externals=external_reads(
                reference, plan=self.plan, extracted=self.extracted.folder
            ),
            sealed=self.extracted.sealed,
        )
        assembled = as_in_reference(self._marked(assembled), reference)
        assembled = self._within_budget(assembled, reference, folder)
        drift = self.environment.remarks()
        samples = self.extracted.samples if reference.claim == STAND_IN else ()
        return with_remarks(assembled, [*drift, *stand_in_remarks(samples)])

    def _marked(self, assembled: Assembled) -> Assembled:
        """Return the run, marked as the Linux reference where it is to be one."""
        record, name = assembled.record, self.options.reference_by
        first = self.plan.runs[0].record.claim
        if not name or (record.pass_name, record.claim) != ("measured", first):
            return assembled
        marked = msgspec.structs.replace(record, reference_by=name)
        return dataclasses.replace(assembled, record=marked)

    def _within_budget(
        self, assembled: Assembled, reference: Record, folder: Path
    ) -> Assembled:
        budget = Budget(
            budget_bytes=OUTPUT_BUDGET_BYTES,
            key=self.extracted.policy_digest,
            always=not_whole(reference),
            never=kept_whole(reference),
            places=places_of_rows(reference),
        )
        reduced = within_budget(assembled, budget, folder, say=self.say)
        # The samples too.
        return share_content(reduced, self.extracted.sealed)

    def _stopped(self, planned: PlannedRun, found: Obstacle) -> Assembled:
        return stopped.record(
            planned.record,
            bundle=self.plan.bundle,
            compared_run=planned.number,
            pass_name=planned.pass_name,
            occasion=self.occasion,
            found=found,
            device=self.device,
        )

    def _plan(self, command: Command, planned: PlannedRun, draws: Draws) -> PassPlan:
        """Return how to run `command` on what this run's own record says it needs."""
        reference = planned.record
        data = {one.name: self.plan.data[one.name] for one in reference.withheld}
        digests = {one.name: one.blake3 for one in reference.withheld}
        stage = self.extracted.stage.with_replaced(data)
        # A variable that belongs to the command is changed there, and the record says
        # so; any other one is a fact of this machine.
        own = {**command.environment, **self.settings}
        kept = {name: own[name] for name in command.environment}
        command = msgspec.structs.replace(command, environment=kept)
        plan = PassPlan(
            stage=stage,
            names=stage.names,
            staged={**self.extracted.staged, **digests},
            members={name: member for member, name in self.plan.names.items()},
            withheld=reference.withheld,
            command=command,
            python=self.environment.python,
            base_environment=self.environment.variables(
                {**replay_base(os.environ), **self.settings}
            ),
            device=self.device,
            pass_name=planned.pass_name,
            draws=draws,
            mapping=self._mapping(),
            ignored=(
                self.folder.resolve(),
                self.environment.python.resolve().parent.parent,
            ),
            metrics=self.plan.policy.metrics,
            roles=self.plan.policy.roles,
            extra_facts=self.environment.facts,
            forced=self._fallback_setting(),
            echo=self.options.echo,
            asked=self.asked,
        )
        return (
            stand_in_plan(plan, self.extracted.samples)
            if reference.claim == STAND_IN
            else plan
        )

    def _mapping(self) -> DeviceMapping:
        """Return what is mapped on this device: a run on CUDA itself is not."""
        return next(
            (one for one in self.options.mappings if one.endswith(f"={self.device}")),
            "",
        )

    def _fallback_setting(self) -> dict[str, str]:
        """Return the variable that decides about CPU fallback, where MPS may be.

        torch reads it once, when it is imported (MPSFallback.mm), so a fresh process
        must have it from its start.
        """
        if self.device != "mps" and platform_name() != "darwin":
            return {}
        diagnose = self.options.fallback == "diagnose"
        return {"PYTORCH_ENABLE_MPS_FALLBACK": "1" if diagnose else "0"}

    def keep(self, records: list[Assembled]) -> list[str]:
        """Attach the records, or write them as a replay file; return their ids.

        Raises:
            SensitiveContentError: They hold what nobody allowed to be handed on.
        """
        references = [run.record for run in self.plan.runs]
        if self.options.record_file is not None:
            self.use.copied("record", self.options.record_file)
        noted = [
            *handoff_remarks(os.environ),
            *data_remarks(self.use, self.plan.bundle),
        ]
        records = [with_remarks(one, noted) for one in records]
        name = f"{self.plan.bundle[:12]}-{self.occasion}"
        try:
            with kept_aside(self.options.bundle, _trees(records), name):
                records = admit(records, references, self.options.allow_sensitive)
        except SensitiveContentError:
            self.use.copied("record", refused_root() / f"{name}.rpr.zip")
            raise
        trees = _trees(records)
        if self.options.record_file is not None:
            return write_replay_file(self.options.record_file, trees)
        return [
            attach_replay(self.options.bundle, record, sources)
            for record, sources in trees
        ]


def _trees(records: list[Assembled]) -> list[Tree]:
    """Return the records with their files, as they are attached."""
    return [
        (
            encode(assembled.record),
            [
                Source(name, _role(name), path)
                for name, path in sorted(assembled.content.items())
            ],
        )
        for assembled in records
    ]


def _loaded_torch(done: list[Assembled], reference: Record) -> bool:
    """Whether the measured pass of the same claim loaded torch on this machine."""
    return any(
        one.record.claim == reference.claim and one.record.loaded_torch for one in done
    )


def _no_data(detail: str) -> Obstacle:
    return Obstacle(
        Outcome(exit_status=0, completed=False, stop="data", stop_detail=detail)
    )


def _role(name: str) -> Literal["log", "series", "output"]:
    if name in {"stdout.txt", "stderr.txt"}:
        return "log"
    return "series" if name in SERIES else "output"
