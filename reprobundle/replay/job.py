"""The steps of one `replay`, in order: extract, make the environment, run, keep.

A step that this machine cannot take is a result too: its reason is written into a
record, and the record is attached like any other.
"""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import EnvironmentUnusableError
from reprobundle.format.attach import attach_replay, write_replay_file
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_file
from reprobundle.format.reader import extract, open_bundle
from reprobundle.format.record import (
    STAND_IN,
    Command,
    Fact,
    FileRead,
    Outcome,
    Record,
    Remark,
)
from reprobundle.format.writer import Source
from reprobundle.replay import stopped
from reprobundle.replay.draw_source import draws_of, kept_draws, require_kept
from reprobundle.replay.draws import compare_draws
from reprobundle.replay.environment import (
    PythonEnvironment,
    build_fresh,
    check_current,
    install_entry,
)
from reprobundle.replay.options import ReplayOptions
from reprobundle.replay.plan import PlannedRun, ReplayPlan
from reprobundle.run.assemble import SERIES, Assembled, assemble
from reprobundle.run.availability import obstacle
from reprobundle.run.budget import (
    OUTPUT_BUDGET_BYTES,
    Budget,
    kept_whole,
    not_whole,
    within_budget,
)
from reprobundle.run.command import (
    DEVICE,
    parse_settings,
    platform_name,
    replay_base,
)
from reprobundle.run.execute import PassPlan, execute
from reprobundle.run.launch import Draws
from reprobundle.run.lock import Drift
from reprobundle.run.package_origin import normalised
from reprobundle.run.project import Stage
from reprobundle.run.restart import execute_restart
from reprobundle.run.space import require_space
from reprobundle.run.stand_ins import stand_in_plan, stand_in_remarks, with_remarks
from reprobundle.run.withheld import problem
from reprobundle.verify.sealed import POLICY

Say = Callable[[str], None]
MOST_DRIFT_TOLD = 12


class ReplayJob:
    """The state of one call of `replay` between its steps."""

    def __init__(
        self, options: ReplayOptions, plan: ReplayPlan, folder: Path, say: Say
    ) -> None:
        self.options = options
        self.plan = plan
        self.folder = folder
        self.say = say
        self.settings = parse_settings(options.settings)
        self.occasion = secrets.token_hex(8)
        self.drift: tuple[Drift, ...] = ()
        self.python = Path(sys.executable)
        self.sealed: dict[str, str] = {}
        self.staged: dict[str, str] = {}
        self.policy_digest = ""
        self.obstacle: Outcome | None = None
        self.device = "as-is"
        self.facts = {"replay.environment": _fact(options.environment)}

    def prepare(self) -> None:
        """Extract the files and make the environment."""
        require_kept(self.plan, self.options.rng)
        require_space(self.folder, 3 * self.plan.files_bytes, "copies of the project")
        self._extract()
        self.lacking = {
            one.name: reason
            for one in self.plan.withheld
            if (reason := problem(one, self.plan.data))
        }
        try:
            self._make_environment()
            differences = Fact(value=len(self.drift), source="the lock")
            self.facts["replay.environment.differences"] = differences
            self._tell_drift()
            self._tell_draws()
        except EnvironmentUnusableError as error:
            if error.stop != "platform":
                raise
            # The platform cannot have the recorded packages: that is a result, not
            # an accident, and the record of it is attached.
            self.obstacle = Outcome(
                exit_status=0,
                completed=False,
                stop="platform",
                stop_detail=str(error),
            )

    def _extract(self) -> None:
        raw = self.folder / "bundle"
        with open_bundle(self.options.bundle) as bundle:
            if bundle.id != self.plan.bundle:
                raise EnvironmentUnusableError(
                    f"{self.options.bundle.name} changed since it was checked",
                    advice="start the replay again",
                )
            wanted = [
                member.path
                for member in bundle.members.values()
                if member.role in {"project", "input", "stand-in", "external"}
            ]
            extract(bundle, raw, paths=[*wanted, *kept_draws(self.plan)])
            self.sealed = {
                member.blake3: member.path
                for member in bundle.members.values()
                if member.path.startswith("runs/") and member.size_bytes
            }
            self.policy_digest = bundle.members[POLICY].blake3
            self.staged = {
                name: bundle.members[path].blake3
                for path, name in self.plan.names.items()
            }
            self.samples = {
                name: raw / member for name, member in self.plan.samples.items()
            }
        self.stage = Stage(folder=self.folder / "stage")
        self.stage.folder.mkdir()
        for member, name in sorted(self.plan.names.items()):
            goal = self.stage.folder / name
            goal.parent.mkdir(parents=True, exist_ok=True)
            (raw / member).rename(goal)
            self.stage.names.append(name)

    def _make_environment(self) -> None:
        options = self.options
        if options.environment == "fresh":
            self.say("environment: building it from the lock")
            built = build_fresh(
                self.plan.lock,
                pylock=self.plan.pylock,
                conda=self.plan.conda,
                without=frozenset(map(normalised, options.without)),
                wheels=options.wheels,
                progress=self.say,
            )
            install_entry(built.python)
            self.python = built.python
            self.drift = built.drift
            self.facts = _facts_of(built)
            return
        self.python = (
            _current_python()
            if options.environment == "current"
            else Path(options.environment).absolute()
        )
        if not self.python.is_file():
            raise EnvironmentUnusableError(
                f"there is no interpreter at {options.environment!r}",
                advice="use --env current, --env fresh, or a path to a python",
            )
        self.drift = check_current(self.plan.lock, self.python)

    def _tell_drift(self) -> None:
        if not self.drift:
            self.say("environment: equal to the lock")
        for one in self.drift[:MOST_DRIFT_TOLD]:
            grade = ", known to change numbers" if one.grade == "numeric" else ""
            self.say(
                f"environment differs: {one.name} {one.reference} in the lock, "
                f"{one.here} here{grade}"
            )
        if len(self.drift) > MOST_DRIFT_TOLD:
            rest = len(self.drift) - MOST_DRIFT_TOLD
            self.say(f"environment differs: and {rest} more packages")

    def _tell_draws(self) -> None:
        """Say whether one seed gives the reference's numbers here."""
        records = tuple(run.record for run in self.plan.runs)
        for line in compare_draws(records, self.python, self.folder / "draws"):
            self.say(line)

    def run_all(self) -> list[Assembled]:
        """Run every planned run on every device."""
        return [run for device in self.options.devices for run in self._run_on(device)]

    def _run_on(self, device: str) -> list[Assembled]:
        """Run every planned run; stop after one that did not come to its end."""
        self.device = self._meant(device)
        variables = {**replay_base(os.environ), **self.settings}
        found = self.obstacle or obstacle(self.python, self.device, variables)
        if found is not None:
            self.say(f"not run: {found.stop_detail}")
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
        command, missing = self._placed(reference)
        folder = self.folder / self.device / f"{planned.pass_name}{planned.number}"
        if missing:
            return self._stopped(
                planned,
                _no_data(missing),
            )
        draws = draws_of(planned, self.plan, self.options.rng, self.folder / "bundle")
        plan = self._plan(command, planned, draws)
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
            externals=self._external_reads(reference),
            sealed=self.sealed,
        )
        assembled = self._within_budget(assembled, reference, folder)
        drift = map(_drift_remark, self.drift)
        samples = self.samples if reference.claim == STAND_IN else ()
        return with_remarks(assembled, [*drift, *stand_in_remarks(samples)])

    def _within_budget(
        self, assembled: Assembled, reference: Record, folder: Path
    ) -> Assembled:
        budget = Budget(
            budget_bytes=OUTPUT_BUDGET_BYTES,
            key=self.policy_digest,
            always=not_whole(reference),
            never=kept_whole(reference),
            sealed=self.sealed,
        )
        return within_budget(assembled, budget, folder, say=self.say)

    def _stopped(self, planned: PlannedRun, outcome: Outcome) -> Assembled:
        return stopped.record(
            planned.record,
            bundle=self.plan.bundle,
            compared_run=planned.number,
            pass_name=planned.pass_name,
            occasion=self.occasion,
            outcome=outcome,
            device=self.device,
        )

    def _plan(self, command: Command, planned: PlannedRun, draws: Draws) -> PassPlan:
        """Return how to run `command` on what this run's own record says it needs."""
        reference = planned.record
        data = {one.name: self.plan.data[one.name] for one in reference.withheld}
        digests = {one.name: one.blake3 for one in reference.withheld}
        stage = self.stage.with_replaced(data)
        # A variable that belongs to the command is changed there, and the record says
        # so; any other one is a fact of this machine.
        own = {**command.environment, **self.settings}
        kept = {name: own[name] for name in command.environment}
        command = msgspec.structs.replace(command, environment=kept)
        plan = PassPlan(
            stage=stage,
            names=stage.names,
            staged={**self.staged, **digests},
            members={name: member for member, name in self.plan.names.items()},
            withheld=reference.withheld,
            command=command,
            python=self.python,
            base_environment={**replay_base(os.environ), **self.settings},
            device=self.device,
            pass_name=planned.pass_name,
            draws=draws,
            ignored=(self.folder.resolve(), self.python.resolve().parent.parent),
            metrics=self.plan.policy.metrics,
            extra_facts=self.facts,
            forced=self._fallback_setting(),
            echo=self.options.echo,
        )
        return (
            stand_in_plan(plan, self.samples) if reference.claim == STAND_IN else plan
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

    # -- files outside the project

    def _placed(self, reference: Record) -> tuple[Command, str]:
        """Return the command with its external files in place, or why it cannot run.

        A file that the command line names is taken from the caller or from the bundle
        by rewriting the argument; one that the program finds by itself must lie where
        it was.
        """
        argv = list(reference.command.argv)
        for read in reference.reads:
            if not read.path.startswith("external:"):
                continue
            origin = str(Path(read.origin).expanduser())
            copy = self._copy_of(read)
            if copy is not None and not _has_content(copy, read.blake3):
                return (
                    reference.command,
                    f"{copy} is not the {read.origin} that was read",
                )
            named = [i for i, part in enumerate(argv) if part.endswith(origin)]
            if named and copy is not None:
                for index in named:
                    argv[index] = argv[index].removesuffix(origin) + str(copy)
            elif not _has_content(Path(origin), read.blake3):
                return reference.command, _not_in_place(read, named=bool(named))
        return msgspec.structs.replace(reference.command, argv=tuple(argv)), ""

    def _copy_of(self, read: FileRead) -> Path | None:
        """Return a file with the content that was read, the caller's first."""
        given = self.plan.externals.get(read.origin)
        if given is not None or not read.member:
            return given
        return self.folder / "bundle" / read.member

    def _external_reads(self, reference: Record) -> dict[Path, FileRead]:
        found = {}
        for read in reference.reads:
            if read.path.startswith("external:"):
                found[Path(read.origin).expanduser().resolve()] = read
                copy = self._copy_of(read)
                if copy is not None:
                    found[copy.resolve()] = read
        return found

    # -- keeping the records

    def keep(self, records: list[Assembled]) -> list[str]:
        """Attach the records, or write them as a replay file; return their ids."""
        trees = [
            (
                encode(assembled.record),
                [
                    Source(name, _role(name), path)
                    for name, path in sorted(assembled.content.items())
                ],
            )
            for assembled in records
        ]
        if self.options.record_file is not None:
            return write_replay_file(self.options.record_file, trees)
        return [
            attach_replay(self.options.bundle, record, sources)
            for record, sources in trees
        ]


def _loaded_torch(done: list[Assembled], reference: Record) -> bool:
    """Whether the measured pass of the same claim loaded torch on this machine."""
    return any(
        one.record.claim == reference.claim and one.record.loaded_torch for one in done
    )


def _not_in_place(read: FileRead, *, named: bool) -> str:
    """Return what to do about a file that is not where the program looks for it."""
    what = f"{read.origin} is not on this machine with the sealed content"
    if read.member:
        return f"{what}; extract {read.member} to that place"
    if named:
        return f"{what}; its holder can replay with --data {read.origin}=FILE"
    return f"{what}; put it there, for the program looks for it by itself"


def _no_data(detail: str) -> Outcome:
    return Outcome(exit_status=0, completed=False, stop="data", stop_detail=detail)


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


def _drift_remark(drift: Drift) -> Remark:
    return Remark(
        id="environment-differs",
        severity="gap",
        where=drift.name,
        text=f"{drift.reference} in the lock, {drift.here} in this environment",
    )


def _role(name: str) -> Literal["log", "series", "output"]:
    if name in {"stdout.txt", "stderr.txt"}:
        return "log"
    return "series" if name in SERIES else "output"


def _has_content(path: Path, digest: str) -> bool:
    try:
        return digest_file(path) == digest
    except OSError:
        return False


def _current_python() -> Path:
    """Return the active environment's interpreter, else the one that runs us."""
    active = os.environ.get("VIRTUAL_ENV")
    if active:
        found = shutil.which("python", path=str(Path(active) / "bin"))
        if found:
            return Path(found)
    return Path(sys.executable)
