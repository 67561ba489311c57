"""The steps of one call of `pack`, in order: prepare, run, run again, write.

The repeat pass starts from the files the bundle will hold and from nothing else. So
it shows three things at once: that the bundle is complete, that a fresh process gets
the same result, and how far two runs on one machine differ by themselves.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import (
    BadCallError,
    CommandFailedError,
    PackRefusedError,
    UnsafeNameError,
)
from reprobundle.format.canonical import encode
from reprobundle.format.digests import digest_bytes, digest_file
from reprobundle.format.lock import Lock
from reprobundle.format.policy import Claim, Policy
from reprobundle.format.record import STAND_IN, Command, FileRead, WithheldFile
from reprobundle.format.writer import SealedBundle, Source, write_bundle
from reprobundle.pack.contents import (
    UNREAD_LIMIT_BYTES,
    Contents,
    choose,
    externals,
)
from reprobundle.pack.options import PackOptions
from reprobundle.pack.passes import PassName
from reprobundle.pack.resolving import Resolving, start_resolving
from reprobundle.pack.secrets.gate import Gate
from reprobundle.pack.secrets.scan import redacted
from reprobundle.pack.sources import (
    external_sources,
    lock_sources,
    project_sources,
    run_sources,
)
from reprobundle.pack.withholding import (
    excluded_remarks,
    refuse_copies,
    stand_in_samples,
    withholding,
)
from reprobundle.run import lock as locks
from reprobundle.run.accessed import accesses
from reprobundle.run.assemble import (
    Assembled,
    FinishedRun,
    assemble,
)
from reprobundle.run.budget import Budget, kept_whole, not_whole, within_budget
from reprobundle.run.command import PROJECT, recorded_argv, recorded_environment
from reprobundle.run.conda import explicit_list
from reprobundle.run.events import read_events
from reprobundle.run.execute import PassPlan, execute
from reprobundle.run.git_state import git_facts
from reprobundle.run.launch import Draws, find_python
from reprobundle.run.project import (
    Project,
    Stage,
    digest_stage,
    list_files,
    make_stage,
)
from reprobundle.run.restart import execute_restart
from reprobundle.run.space import require_space
from reprobundle.run.stand_ins import stand_in_plan, stand_in_remarks, with_remarks
from reprobundle.verify.compare import compare_records
from reprobundle.verify.defaults import widen

Say = Callable[[str], None]


class PackJob:
    """The state of one call of `pack` between its steps."""

    def __init__(
        self,
        options: PackOptions,
        policy: Policy,
        project: Project,
        folder: Path,
        say: Say,
    ) -> None:
        self.options = options
        self.policy = policy
        self.project = project
        self.folder = folder
        self.say = say
        self.resolving: Resolving | None = None
        self.contents = Contents()
        self.externals: dict[Path, FileRead] = {}
        self.repeatable: bool | None = None
        self.digests: dict[str, str] = {}
        self.withheld: tuple[WithheldFile, ...] = ()
        self.gate = Gate(options.allow_sensitive, home=str(Path.home()))
        self.kept_draws: dict[tuple[str, ...], Path] = {}

    # -- before the first run

    def prepare(self) -> None:
        """Find the interpreter, lock its environment, copy the project."""
        options = self.options
        found = find_python(options.argv)
        if found is None:
            raise BadCallError(
                "no Python interpreter is on the path",
                advice="activate the environment that the command needs",
            )
        self.python = found
        self.live = locks.probe(self.python)
        self.lock: Lock = locks.to_lock(self.live, project=self.project.root)
        # It takes seconds, as long as the command is likely to run anyway.
        self.resolving = start_resolving(
            self.lock, python=self.python, offline=options.offline
        )
        names = list_files(self.project, exclude=frozenset({options.output.resolve()}))
        names = tuple(name for name in names if not name.endswith(".rpb.zip"))
        size_bytes = sum((self.project.root / name).stat().st_size for name in names)
        require_space(self.folder, 3 * size_bytes, "copies of the project")
        self._make_stage(names)
        self.gate.check_project(
            self.stage,
            options.argv,
            withheld=self.withholding.names,
            limit_bytes=UNREAD_LIMIT_BYTES,
        )
        self.command = Command(
            argv=recorded_argv(options.argv, self.project.root),
            working_directory=options.working_directory.resolve()
            .relative_to(self.project.root)
            .as_posix(),
            seed=options.seed,
            environment=recorded_environment(
                os.environ, seed=options.seed, import_paths=self._import_paths()
            ),
        )

    def end(self) -> None:
        """End what still runs beside the passes."""
        if self.resolving is not None:
            self.resolving.end()

    def _resolved(self) -> tuple[Lock, bytes | None]:
        return self.resolving.result() if self.resolving else (self.lock, None)

    def _declared(self) -> list[Path]:
        return [self.options.working_directory / path for path in self.options.inputs]

    def _make_stage(self, names: tuple[str, ...]) -> None:
        """Copy the project, with the files that the call names even where ignored."""
        options, root = self.options, self.project.root
        samples = stand_in_samples(
            options.stand_ins,
            root=root,
            folder=options.working_directory,
            keep=self.folder / "stand-ins",
        )
        hashed = [options.working_directory / path for path in options.hash_only]
        declared = (
            *(path for path in self._declared() if self._inside(path)),
            *(path for path in hashed if self._inside(path) and path.exists()),
            *(root / name for name in samples),
        )
        self.stage: Stage = make_stage(root, names, self.folder / "stage", declared)
        self.withholding = withholding(options, self.stage, root=root, samples=samples)

    def _inside(self, path: Path) -> bool:
        return path.resolve().is_relative_to(self.project.root)

    def _import_paths(self) -> list[str]:
        """Return the copies' folders that stand in for editable installs."""
        folders = [
            path.resolve()
            for editable in self.live.editables
            for path in (editable.import_paths or (editable.location,))
        ]
        return [
            f"{PROJECT}/{path.relative_to(self.project.root).as_posix()}"
            for path in dict.fromkeys(folders)
            if path.is_relative_to(self.project.root)
        ]

    # -- the passes

    def measured_pass(self) -> Assembled:
        """Run the command once and decide from it what the bundle holds."""
        self.say("measured pass: running the command once")
        run = execute(self._plan(self.stage.names, self.command), self.folder / "run1")
        self._require_unchanged()
        self._judge_exit(run)
        access = accesses(read_events(run.launched.session.events), run.places)
        declared = {
            name
            for path in self._declared()
            if self._inside(path)
            for name in self._names_below(path)
        }
        chosen = choose(self.stage, access.read, declared)
        self.contents = self.withholding.applied(chosen)
        outside = access.read_outside | {
            path.resolve() for path in self._declared() if not self._inside(path)
        }
        self.externals = externals(
            outside,
            pinned=[self.options.working_directory / p for p in self.options.pinned],
            choice=self.options.external,
        )
        kept = {*self.contents.members, *self.withholding.hashed}
        self.digests = digest_stage(self.stage, sorted(kept))
        self.withheld = self.withholding.files(self.stage, self.digests)
        run = dataclasses.replace(
            run,
            staged=self.digests,
            members=self.contents.members,
            withheld=self.withheld,
        )
        done = self._assemble(run, role="reference")
        done = self._told_of_excluded(done)
        self._keep_draws(done)
        if not done.record.outputs and not self.options.expect_failure:
            raise PackRefusedError(
                "nothing to compare: the command wrote no file and recorded no value",
                advice="write a result file, or name a printed number with "
                "--metric NAME=REGEX",
            )
        return done

    def repeat_pass(self) -> Assembled:
        """Run the command again, from the bundle's own files only."""
        self.say("repeat pass: running it again from what the bundle holds")
        names = sorted(self.digests)
        plan = self._plan(names, self.command, pass_name="repeat")
        run = execute(plan, self.folder / "run2")
        if run.launched.exit_status != 0 and not self.options.expect_failure:
            raise PackRefusedError(
                f"the repeat pass ended with status {run.launched.exit_status}: "
                f"{_last_line(run)}",
                advice="the bundle lacks something the command needs: name it with "
                "--input, or stop after one pass with --passes measured",
            )
        return self._assemble(run, role="repeat")

    def claim_passes(self) -> list[Assembled]:
        """Run every claim that has a command of its own."""
        done = []
        for number, claim in enumerate(self.policy.claims, start=3):
            if not claim.command:
                continue
            self.say(f"claim {claim.name!r}: running its own command")
            plan = self._plan(sorted(self.digests), self._claim_command(claim))
            run = execute(plan, self.folder / f"run{number}")
            if run.launched.exit_status != 0:
                raise CommandFailedError(
                    f"the command of claim {claim.name!r} ended with status "
                    f"{run.launched.exit_status}: {_last_line(run)}",
                    status=run.launched.exit_status,
                )
            done.append(self._assemble(run, role="claim", claim=claim.name))
            self._keep_draws(done[-1])
        return done

    def _draws(self, command: Command, pass_name: PassName) -> Draws:
        """Return how a pass draws: later passes start from what the first one kept."""
        options = self.options
        if options.rng == "recorded" and pass_name == "restart":
            # A resumed process starts in the middle, not at the beginning.
            return Draws("portable")
        kept = self.kept_draws.get(command.argv)
        return Draws(options.rng, kept, options.draws_limit_bytes)

    def _keep_draws(self, run: Assembled) -> None:
        """Have later passes of the same command start from this one's draws."""
        member = run.record.randomness.drawn.member
        if member:
            self.kept_draws[run.record.command.argv] = run.content[member]

    def evidence_passes(self, measured: list[Assembled]) -> list[Assembled]:
        """Run again, traced, each command of `measured` that loaded torch.

        A command without torch has nothing to witness, and costs nothing more.
        """
        done = []
        for number, reference in enumerate(measured, start=1):
            record = reference.record
            if not record.loaded_torch:
                continue
            self.say(f"evidence pass of claim {record.claim!r}: running it traced")
            plan = self._plan(
                sorted(self.digests), record.command, pass_name="evidence"
            )
            run = execute(plan, self.folder / f"traced{number}")
            if run.launched.exit_status != record.outcome.exit_status:
                # Then tracing broke it, and evidence from another run is none.
                self.say(f"evidence pass thrown away, it failed: {_last_line(run)}")
                continue
            done.append(self._assemble(run, role="evidence", claim=record.claim))
        return done

    def stand_in_pass(self) -> list[Assembled]:
        """Run the command on the samples, if there are any."""
        if not self.withholding.stand_ins:
            return []
        self.say("stand-in pass: running it on the samples")
        plan = stand_in_plan(
            self._plan(sorted(self.digests), self.command), self.withholding.stand_ins
        )
        run = execute(plan, self.folder / "run-stand-in")
        if (run.launched.exit_status != 0) != self.options.expect_failure:
            raise PackRefusedError(
                f"on the stand-in data the command ended with status "
                f"{run.launched.exit_status}: {_last_line(run)}",
                advice="give a sample of the same form, or withhold the file with "
                "--hash-only",
            )
        done = self._assemble(run, role="claim", claim=STAND_IN)
        return [with_remarks(done, stand_in_remarks(self.withholding.stand_ins))]

    def _told_of_excluded(self, done: Assembled) -> Assembled:
        """Return the reference with a remark on each excluded file that it read."""
        read = self.withholding.excluded & done.accesses.read
        repeats = "repeat" in self.options.passes
        return with_remarks(done, excluded_remarks(read, repeats=repeats))

    def restart_pass(self) -> Assembled:
        """Stop the command after a checkpoint, resume it, run it to its end."""
        self.say("restart pass: stopping it after a checkpoint and resuming it")
        names = sorted(self.contents.members)
        plan = self._plan(names, self.command, pass_name="restart")
        resume = self.options.resume_command
        if resume:
            resume = recorded_argv(resume, self.project.root)
        run = execute_restart(plan, self.folder / "restart", resume)
        if run.restart is not None and run.restart.reason:
            raise PackRefusedError(
                f"no restart check: {run.restart.reason}",
                advice="have the command go on from its checkpoint when it finds one, "
                "or name the command that does with --resume-command",
            )
        return self._assemble(run, role="restart")

    def _claim_command(self, claim: Claim) -> Command:
        return msgspec.structs.replace(
            self.command, argv=recorded_argv(claim.command, self.project.root)
        )

    def _plan(
        self, names: list[str], command: Command, *, pass_name: PassName = "measured"
    ) -> PassPlan:
        return PassPlan(
            stage=self.stage,
            names=names,
            staged=self.digests,
            members=self.contents.members,
            withheld=self.withheld,
            command=command,
            python=self.python,
            base_environment=os.environ,
            device=self.options.device,
            pass_name=pass_name,
            original=self.project.root,
            ignored=self.live.folders,
            metrics=self.policy.metrics,
            extra_facts={**git_facts(self.project.git), **self.options.facts},
            echo=self.options.echo,
            output_limit_bytes=self.options.output_limit_bytes,
            draws=self._draws(command, pass_name),
        )

    def _assemble(
        self,
        run: FinishedRun,
        *,
        role: Literal["reference", "repeat", "claim", "evidence", "restart"],
        claim: str = "main",
    ) -> Assembled:
        return assemble(
            run,
            role=role,
            claim=claim,
            expected_failure=self.options.expect_failure,
            externals=self.externals,
        )

    def _names_below(self, path: Path) -> list[str]:
        top = path.resolve().relative_to(self.project.root).as_posix()
        return [
            name
            for name in self.stage.names
            if top == "." or name == top or name.startswith(f"{top}/")
        ]

    def _require_unchanged(self) -> None:
        changed = self.stage.changed_links()
        if changed:
            raise PackRefusedError(
                f"input {changed[0]!r} was changed by the run or while it ran",
                advice="have the command write to another file",
            )

    def _judge_exit(self, run: FinishedRun) -> None:
        launched = run.launched
        if launched.interrupted:
            raise PackRefusedError("interrupted; no bundle was written")
        if launched.exit_status != 0 and not self.options.expect_failure:
            raise CommandFailedError(
                f"the command ended with status {launched.exit_status}: "
                f"{_last_line(run)}",
                status=launched.exit_status,
                advice=self._failure_advice(run),
            )
        if launched.exit_status == 0 and self.options.expect_failure:
            raise PackRefusedError(
                "the command was expected to fail but ended with status 0",
                advice="leave out --expect-failure",
            )

    def _failure_advice(self, run: FinishedRun) -> str:
        """Return the likeliest remedy for a failed first pass."""
        text = run.launched.session.stderr.read_text(errors="replace")
        if "ModuleNotFoundError" in text:
            return f"it ran with {self.python}; activate the environment that it needs"
        if "FileNotFoundError" in text or "No such file" in text:
            return self._missing_advice(text, str(run.places.scratch))
        return "nothing was written; if failing is the result, add --expect-failure"

    def _missing_advice(self, text: str, scratch: str) -> str:
        """Return what to do about a file that the copy of the project lacks."""
        root, held = self.project.root, set(self.stage.names)
        for line in reversed(text.splitlines()):
            for word in line.replace('"', "'").split("'"):
                name = word.removeprefix(f"{scratch}/").removeprefix("./")
                if not name or name in held or name.startswith("/") or "\0" in name:
                    continue
                if (root / name).exists():
                    return f"{name} exists but git ignores it: add --input {name}"
                folder = Path(name).parent
                if folder.name and "No such file" in line and (root / folder).is_dir():
                    return (
                        f"folder {folder} holds nothing that git keeps, so the copy "
                        "has none: have the command make it"
                    )
        return "a file of that name is neither in the project nor among --input"

    # -- writing

    def settle_policy(self, reference: Assembled, repeat: Assembled | None) -> None:
        """Compare both passes and widen the tolerances by what they differ in."""
        if repeat is None:
            return
        comparisons = compare_records(
            reference.record,
            repeat.record,
            reference_content=reference.content,
            replay_content=repeat.content,
            policy=self.policy,
        )
        self.policy = widen(self.policy, comparisons)
        results = {comparison.result for comparison in comparisons}
        self.repeatable = results <= {"bit-identical", "within-tolerance"}

    def cut_to_budget(self, runs: list[Assembled]) -> list[Assembled]:
        """Return the runs with their outputs kept within the budget.

        This comes last: the places of samples follow from the frozen policy, and both
        passes have been compared in full before.
        """
        key = digest_bytes(encode(self.policy))
        done: list[Assembled] = []
        for number, run in enumerate(runs, start=1):
            folder = self.folder / f"samples{number}"
            folder.mkdir()
            first = done[0] if done else None
            budget = Budget(
                budget_bytes=self.options.output_budget_bytes,
                key=key,
                always=not_whole(first.record) if first else frozenset(),
                never=kept_whole(first.record) if first else frozenset(),
                sealed={
                    member.blake3: f"runs/1/{member.name}"
                    for member in (first.record.members if first else ())
                },
            )
            # What holds for the first run is told once.
            say = self.say if first is None else _silent
            done.append(within_budget(run, budget, folder, say=say))
        return done

    def write(
        self, runs: list[Assembled], progress: Callable[[int], None] | None
    ) -> SealedBundle:
        """Write the bundle file.

        Args:
            runs: In the order of their numbers; the first is the reference.
            progress: As in `write_bundle`.

        Raises:
            PackRefusedError: A file has a name that another system could not hold.
        """
        lock, pylock = self._resolved()
        runs = self.cut_to_budget(runs)
        sources = [
            *project_sources(self.stage, self.contents),
            *self.withholding.sources(),
            *external_sources(self.externals),
            *lock_sources(
                lock,
                self.project,
                pylock,
                explicit_list(Path(self.live.prefix)),
                withheld=self.withholding.names,
            ),
            Source("policy.json", "policy", encode(self.policy)),
        ]
        refuse_copies(self.withheld, self._kept_digests(runs))
        sources.extend(self._admitted_runs(sources, runs))
        size_bytes = sum(
            source.content.stat().st_size
            for source in sources
            if isinstance(source.content, Path)
        )
        require_space(self.options.output.parent, size_bytes, "the bundle")
        self.say("writing the bundle")
        try:
            return write_bundle(self.options.output, sources, progress=progress)
        except UnsafeNameError as error:
            raise PackRefusedError(
                str(error),
                advice="such a name cannot exist on every system: rename the file, or "
                "have git ignore it",
            ) from error

    def _admitted_runs(
        self, others: list[Source], runs: list[Assembled]
    ) -> list[Source]:
        """Return the members of the runs, after a scan of all that will be sealed.

        Raises:
            SensitiveContentError: Something is not allowed.
        """
        first, *rest = runs
        self.gate.check_sources([*others, *run_sources(1, first)])
        runs = [with_remarks(first, self.gate.remarks()), *rest]
        sources = [
            source
            for number, run in enumerate(runs, start=1)
            for source in run_sources(number, run)
        ]
        self.gate.check_sources(
            source
            for source in sources
            if source.role == "record" or not source.path.startswith("runs/1/")
        )
        return sources

    def _kept_digests(self, runs: list[Assembled]) -> Iterator[tuple[str, str]]:
        """Yield place and digest of what will be in the bundle."""
        for name in self.contents.members:
            yield name, self.digests[name]
        for name, sample in self.withholding.stand_ins.items():
            yield f"the stand-in for {name}", digest_file(sample)
        for run in runs:
            for output in run.record.outputs:
                yield f"output {output.name}", output.blake3


def _silent(line: str) -> None:
    del line


def _last_line(run: FinishedRun) -> str:
    lines = run.launched.session.stderr.read_text(errors="replace").split("\n")
    last = next(
        (line.strip() for line in reversed(lines) if line.strip()), "no message"
    )
    return redacted(last)
