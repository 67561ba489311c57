"""The passes of one call of `pack`, in order, and what they show.

The repeat pass starts from the files the bundle will hold and from nothing else. So
it shows three things at once: that the bundle is complete, that a fresh process gets
the same result, and how far two runs on one machine differ by themselves.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from reprobundle.errors import CommandFailedError, PackRefusedError
from reprobundle.format.policy import Claim, Policy
from reprobundle.format.record import STAND_IN, Command, LeftOutFile
from reprobundle.format.writer import SealedBundle
from reprobundle.pack.failure import (
    judge_exit,
    last_line,
    nothing_to_compare,
)
from reprobundle.pack.options import PackOptions
from reprobundle.pack.own_variables import (
    missing,
    repeat_advice,
    settled,
    told_of_difference,
)
from reprobundle.pack.passes import PassName
from reprobundle.pack.preparation import Prepared
from reprobundle.pack.sealing import Sealing
from reprobundle.pack.selection import Selected, select
from reprobundle.pack.withholding import (
    excluded_remarks,
    refuse_kept_batches,
    refuse_unknown,
)
from reprobundle.run.assemble import assemble
from reprobundle.run.command import replay_base
from reprobundle.run.execute import PassPlan, execute
from reprobundle.run.finished import Assembled, FinishedRun
from reprobundle.run.git_state import git_facts
from reprobundle.run.launch import Draws
from reprobundle.run.own_words import also_for, portable_argv
from reprobundle.run.restart import execute_restart
from reprobundle.run.stand_ins import stand_in_plan, stand_in_remarks, with_remarks
from reprobundle.verify.compare import compare_records
from reprobundle.verify.content import on_disk
from reprobundle.verify.defaults import widen
from reprobundle.verify.restart import Restarted, Resumed, resumed

Say = Callable[[str], None]
Role = Literal[
    "reference", "repeat", "claim", "evidence", "restart", "truth", "counterpart"
]


class PackJob:
    """The state of one call of `pack` between its passes."""

    def __init__(
        self,
        options: PackOptions,
        policy: Policy,
        prepared: Prepared,
        folder: Path,
        say: Say,
    ) -> None:
        self.options = options
        self.policy = policy
        self.prepared = prepared
        self.folder = folder
        self.say = say
        self.selected = Selected()
        self.repeatable: bool | None = None
        self.resumed: Resumed | None = None
        self.kept_draws: dict[tuple[str, ...], Path] = {}

    def measured_pass(self) -> Assembled:
        """Run the command once and decide from it what the bundle holds."""
        prepared = self.prepared
        self.say("measured pass: running the command once")
        plan = self.plan(prepared.stage.names, prepared.command)
        run = execute(plan, self.folder / "run1")
        self._require_unchanged()
        judge_exit(
            run,
            expected=self.options.expect_failure,
            python=prepared.python,
            project=prepared.project.root,
            held=set(prepared.stage.names),
        )
        self.selected = select(self.options, prepared, run)
        refuse_kept_batches(self.selected.withholding, self.options)
        run = dataclasses.replace(
            run,
            staged=self.selected.digests,
            members=self.selected.contents.members,
            withheld=self.selected.withheld,
        )
        done = self._told_of_the_rest(self.assemble(run, role="reference"))
        refuse_unknown(self.selected.withholding, done.record.outputs, self.options)
        self._keep_draws(done)
        if not done.record.outputs and not self.options.expect_failure:
            raise nothing_to_compare(done)
        return done

    def repeat_passes(self, measured: list[Assembled]) -> list[Assembled]:
        """Run each command of `measured` again, from the bundle's own files only."""
        return [
            self._repeat_pass(one, turn, f"{one.record.role}{number}-repeat{turn}")
            for number, one in enumerate(measured)
            for turn in range(1, self.options.repeats + 1)
        ]

    def _repeat_pass(self, first: Assembled, turn: int, name: str) -> Assembled:
        count, record = self.options.repeats, first.record
        which = f"repeat pass {turn} of {count}" if count > 1 else "repeat pass"
        of = f" of claim {record.claim!r}" if record.role == "claim" else ""
        self.say(f"{which}{of}: running it again from what the bundle holds")
        plan = self.plan(self.selected.names, record.command, pass_name="repeat")
        run = execute(plan, self.folder / name)
        if run.launched.exit_status != 0 and (of or not self.options.expect_failure):
            raise PackRefusedError(
                f"the repeat pass{of} ended with status {run.launched.exit_status}: "
                f"{last_line(run)}",
                advice=repeat_advice(missing([record])),
            )
        return self.assemble(run, role="repeat", claim=record.claim)

    def claim_passes(self) -> list[Assembled]:
        """Run every claim that has a command of its own."""
        done = []
        for number, claim in enumerate(self.policy.claims, start=3):
            if not claim.command:
                continue
            self.say(f"claim {claim.name!r}: running its own command")
            plan = self.plan(self.selected.names, self._claim_command(claim))
            run = execute(plan, self.folder / f"run{number}")
            if run.launched.exit_status != 0:
                raise CommandFailedError(
                    f"the command of claim {claim.name!r} ended with status "
                    f"{run.launched.exit_status}: {last_line(run)}",
                    status=run.launched.exit_status,
                )
            done.append(self.assemble(run, role="claim", claim=claim.name))
            self._keep_draws(done[-1])
        return done

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
            plan = self.plan(self.selected.names, record.command, pass_name="evidence")
            run = execute(plan, self.folder / f"traced{number}")
            if run.launched.exit_status != record.outcome.exit_status:
                # Then tracing broke it, and evidence from another run is none.
                self.say(f"evidence pass thrown away, it failed: {last_line(run)}")
                continue
            done.append(self.assemble(run, role="evidence", claim=record.claim))
        return done

    def stand_in_pass(self) -> list[Assembled]:
        """Run the command on the samples, if there are any."""
        samples = self.selected.withholding.stand_ins
        if not samples:
            return []
        self.say("stand-in pass: running it on the samples")
        plan = stand_in_plan(
            self.plan(self.selected.names, self.prepared.command), samples
        )
        run = execute(plan, self.folder / "run-stand-in")
        if (run.launched.exit_status != 0) != self.options.expect_failure:
            raise PackRefusedError(
                f"on the stand-in data the command ended with status "
                f"{run.launched.exit_status}: {last_line(run)}",
                advice="give a sample of the same form, or withhold the file with "
                "--hash-only",
            )
        done = self.assemble(run, role="claim", claim=STAND_IN)
        return [with_remarks(done, stand_in_remarks(samples))]

    def restart_pass(self) -> Assembled:
        """Stop the command after a checkpoint, resume it, run it to its end."""
        self.say("restart pass: stopping it after a checkpoint and resuming it")
        names = sorted(self.selected.contents.members)
        plan = self.plan(names, self.prepared.command, pass_name="restart")
        resume = self.options.resume_command
        if resume:
            resume, words = portable_argv(resume, self.prepared.project.root)
            command = also_for(plan.command, words)
            plan = dataclasses.replace(plan, command=command)
        run = execute_restart(plan, self.folder / "restart", resume)
        if run.restart is not None and run.restart.reason:
            raise PackRefusedError(
                f"no restart check: {run.restart.reason}",
                advice="have the command go on from its checkpoint when it finds one, "
                "or name the command that does with --resume-command",
            )
        return self.assemble(run, role="restart")

    def judge_restart(self, straight: Assembled, run: Assembled) -> None:
        """Compare the resumed run with the reference, under the settled policy."""
        self.resumed = resumed(
            Restarted(
                where="restart",
                record=run.record,
                content=on_disk(run.record, run.content),
                straight=straight.record,
                straight_content=on_disk(straight.record, straight.content),
                is_sealed=True,
            ),
            self.policy,
        )

    def truth_pass(self) -> Assembled:
        """Run the command on the CPU in float64; a failure of it is recorded too."""
        self.say("truth pass: running it on the CPU in float64")
        plan = self.plan(self.selected.names, self.prepared.command, pass_name="truth")
        run = execute(dataclasses.replace(plan, device="cpu"), self.folder / "truth")
        if (run.launched.exit_status != 0) != self.options.expect_failure:
            self.say(f"the truth pass failed, so there is no truth: {last_line(run)}")
        return self.assemble(run, role="truth")

    def settle_policy(self, runs: list[tuple[Assembled, list[Assembled]]]) -> None:
        """Compare all passes and widen the tolerances by what they differ in.

        Args:
            runs: The measured pass on each device, with its repeats.
        """
        comparisons = tuple(
            comparison
            for measured, repeats in runs
            for repeat in repeats
            for comparison in compare_records(
                measured.record,
                repeat.record,
                reference_content=measured.content,
                replay_content=repeat.content,
                policy=self.policy,
            )
        )
        if not any(repeats for _, repeats in runs):
            return
        results = {comparison.result for comparison in comparisons}
        names = missing(measured.record for measured, _ in runs)
        if names and results != {"bit-identical"}:
            # Not by chance, for all that is known: no noise to widen a tolerance by.
            self.say(told_of_difference(names))
        else:
            self.policy = widen(self.policy, comparisons)
        self.repeatable = results <= {"bit-identical", "within-tolerance"}

    def withheld(self, runs: list[Assembled]) -> list[Assembled]:
        """Return the runs as they may be sealed: without results that stay here.

        This comes after all comparisons, which take the whole content.
        """
        runs = [self.selected.withholding.results.applied(run) for run in runs]
        return [settled(run) for run in runs] if self.repeatable else runs

    def write(
        self, runs: list[Assembled], progress: Callable[[int], None] | None
    ) -> SealedBundle:
        """Write the bundle file; as `Sealing.write`."""
        sealing = Sealing(
            options=self.options,
            prepared=self.prepared,
            selected=self.selected,
            policy=self._portable_policy(),
            folder=self.folder,
            say=self.say,
        )
        return sealing.write(runs, progress)

    def _portable_policy(self) -> Policy:
        """Return the policy with the commands of claims as their records have them."""
        root = self.prepared.project.root
        claims = tuple(
            msgspec.structs.replace(one, command=portable_argv(one.command, root)[0])
            if one.command
            else one
            for one in self.policy.claims
        )
        return msgspec.structs.replace(self.policy, claims=claims)

    def _told_of_the_rest(self, done: Assembled) -> Assembled:
        """Return the reference with what is not in the bundle, and what it read of it.

        Files that nothing read are listed, excluded ones that were read remarked on.
        """
        stage = self.prepared.stage
        left_out = tuple(
            LeftOutFile(name=name, size_bytes=stage.path(name).stat().st_size)
            for name in self.selected.contents.left_out
        )
        record = msgspec.structs.replace(done.record, left_out=left_out)
        done = dataclasses.replace(done, record=record)
        read = self.selected.withholding.excluded & done.accesses.read
        repeats = "repeat" in self.options.passes
        return with_remarks(done, excluded_remarks(read, repeats=repeats))

    def _draws(self, command: Command, pass_name: PassName) -> Draws:
        """Return how a pass draws: later passes start from what the first one kept."""
        options = self.options
        if options.rng == "recorded" and pass_name in ("restart", "truth"):
            # A resumed process starts in the middle, not at the beginning; and kept
            # weights of the reference are not taken as float64.
            return Draws("portable")
        if options.rng == "recorded" and pass_name == "repeat":
            # It is to show that the generators alone give the same numbers again.
            return Draws("portable")
        kept = self.kept_draws.get(command.argv)
        return Draws(options.rng, kept, options.draws_limit_bytes)

    def _keep_draws(self, run: Assembled) -> None:
        """Have later passes of the same command start from this one's draws."""
        member = run.record.randomness.drawn.member
        if member:
            self.kept_draws[run.record.command.argv] = run.content[member]

    def _claim_command(self, claim: Claim) -> Command:
        argv, words = portable_argv(claim.command, self.prepared.project.root)
        return msgspec.structs.replace(
            self.prepared.command, argv=argv, placeholders=words
        )

    def plan(
        self, names: list[str], command: Command, *, pass_name: PassName = "measured"
    ) -> PassPlan:
        """Return how to run `command` once, in a folder that holds `names`."""
        return PassPlan(
            stage=self.prepared.stage,
            names=names,
            staged=self.selected.digests,
            members=self.selected.contents.members,
            withheld=self.selected.withheld,
            command=command,
            python=self.prepared.python,
            # The repeat pass has what a replay has: so it finds what that one lacks.
            base_environment=(
                replay_base(os.environ) if pass_name == "repeat" else os.environ
            ),
            device=self.options.device,
            mapping=self.options.mapping,
            pass_name=pass_name,
            original=self.prepared.project.root,
            ignored=self.prepared.live.folders,
            metrics=self.policy.metrics,
            roles=self.policy.roles,
            extra_facts={**git_facts(self.prepared.project.git), **self.options.facts},
            echo=self.options.echo,
            output_limit_bytes=self.options.output_limit_bytes,
            draws=self._draws(command, pass_name),
        )

    def assemble(
        self,
        run: FinishedRun,
        *,
        role: Role,
        claim: str = "main",
    ) -> Assembled:
        """Return the record of a finished run with its content."""
        return assemble(
            run,
            role=role,
            claim=claim,
            expected_failure=self.options.expect_failure,
            externals=self.selected.externals,
        )

    def _require_unchanged(self) -> None:
        changed = self.prepared.stage.changed_links()
        if changed:
            raise PackRefusedError(
                f"input {changed[0]!r} was changed by the run or while it ran",
                advice="have the command write to another file",
            )
