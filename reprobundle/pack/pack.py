"""Make a bundle: run the command, run it again from what the bundle holds, write it."""

from __future__ import annotations

from collections.abc import Callable

from reprobundle.errors import BadCallError
from reprobundle.format.atomic import part_path
from reprobundle.format.record import Record
from reprobundle.format.writer import SealedBundle
from reprobundle.pack.claimed import unmet_claims
from reprobundle.pack.further_devices import counterpart_passes
from reprobundle.pack.job import PackJob, Say
from reprobundle.pack.options import Packed, PackOptions
from reprobundle.pack.overwriting import refuse_overwriting
from reprobundle.pack.policy import read_policy, with_intent
from reprobundle.pack.preparation import prepare
from reprobundle.run.command import DEVICE
from reprobundle.run.data_rules import rules_of, today, when_not
from reprobundle.run.finished import Assembled
from reprobundle.run.project import find_project
from reprobundle.run.space import require_writable
from reprobundle.run.unread import unread_members
from reprobundle.temporary.guarded import guarded_folder


def pack(
    options: PackOptions,
    *,
    say: Say,
    progress: Callable[[int], None] | None = None,
) -> Packed:
    """Run the command and write the bundle.

    Args:
        options: The call.
        say: Takes one line about what happens now.
        progress: Takes the number of bytes written since the last call.

    Raises:
        BadCallError: The call cannot be carried out as written.
        PackRefusedError: The result could not be compared or trusted.
        CommandFailedError: The command failed and that was not expected.
        EnvironmentUnusableError: Disk, permission or interpreter is missing.
    """
    _check_call(options)
    refuse_overwriting(options.output, force=options.force)
    require_writable(options.output.parent)
    policy = with_intent(
        read_policy(options.policy), options.intent, options.metrics, options.roles
    )
    rules = rules_of(policy)
    for against in when_not(rules, today()) if rules else ():
        say(f"policy: {against}; a replay of this bundle needs --override-policy")
    project = find_project(options.working_directory, options.project)
    with guarded_folder("reprobundle-pack-", part_path(options.output)) as folder:
        prepared = prepare(options, project, folder)
        job = PackJob(options, policy, prepared, folder, say)
        try:
            runs, sealed = _made(job, options, progress)
            unmet = tuple(unmet_claims(policy, runs))
        finally:
            prepared.end()
    return _packed(options, job, runs, sealed, unmet=unmet)


def _packed(
    options: PackOptions,
    job: PackJob,
    runs: list[Assembled],
    sealed: SealedBundle,
    *,
    unmet: tuple[str, ...],
) -> Packed:
    """Return what the caller wants to know of a bundle that was written."""
    main = runs[0].record.claim
    return Packed(
        path=options.output,
        sealed=sealed,
        reference=runs[0].record,
        repeats=tuple(
            record for record in _of_role(runs, "repeat") if record.claim == main
        ),
        counterparts=tuple(
            record
            for record in _of_role(runs, "counterpart")
            if record.pass_name == "measured"
        ),
        truth=next(iter(_of_role(runs, "truth")), None),
        resumed=job.resumed,
        repeatable=job.repeatable,
        unmet=unmet,
        unread=_unread(sealed, runs),
        excluded=tuple(sorted(job.prepared.withholding.excluded)),
        data=rules_of(job.policy),
    )


def _made(
    job: PackJob, options: PackOptions, progress: Callable[[int], None] | None
) -> tuple[list[Assembled], SealedBundle]:
    """Run every pass and write the bundle; return the runs, the reference first."""
    reference = job.measured_pass()
    is_repeated = "repeat" in options.passes
    repeats = job.repeat_passes([reference]) if is_repeated else []
    claims = job.claim_passes()
    further = job.repeat_passes(claims) if is_repeated else []
    traced = (
        job.evidence_passes([reference, *claims])
        if "evidence" in options.passes
        else []
    )
    repeated = [(one, _of_claim(further, one)) for one in claims]
    claims += job.stand_in_pass()
    runs = [reference, *repeats, *claims, *further, *traced]
    restarts = [job.restart_pass()] if "restart" in options.passes else []
    runs += restarts
    if "truth" in options.passes:
        runs.append(job.truth_pass())
    elsewhere = counterpart_passes(job)
    job.settle_policy(
        [(reference, repeats), *repeated, *map(_repeated, elsewhere)],
    )
    for restart in restarts:
        job.judge_restart(reference, restart)
    runs += [run for passes in elsewhere for run in passes]
    # Somebody may have attached a replay to it while the passes ran.
    refuse_overwriting(options.output, force=options.force)
    runs = job.withheld(runs)
    sealed = job.write(runs, progress)
    return runs, sealed


def _of_claim(runs: list[Assembled], first: Assembled) -> list[Assembled]:
    return [one for one in runs if one.record.claim == first.record.claim]


def _repeated(passes: list[Assembled]) -> tuple[Assembled, list[Assembled]]:
    """Return the measured pass on one device, with its repeats."""
    measured, *others = passes
    return measured, [run for run in others if run.record.pass_name == "repeat"]


def _unread(sealed: SealedBundle, runs: list[Assembled]) -> tuple[str, ...]:
    paths = (member.path for member in sealed.members)
    found = unread_members(paths, [run.record for run in runs])
    return tuple(path.removeprefix("project/") for path in found)


def _of_role(runs: list[Assembled], role: str) -> tuple[Record, ...]:
    return tuple(run.record for run in runs if run.record.role == role)


def _check_call(options: PackOptions) -> None:
    if not options.argv:
        raise BadCallError(
            "there is no command to run",
            advice="put it after --, such as: reprobundle pack -- python train.py",
        )
    if options.device == "as-is" and any(DEVICE in part for part in options.argv):
        raise BadCallError(
            f"the command holds {DEVICE} and no device is named",
            advice="add --device cpu, cuda or mps",
        )
    if options.repeats > 1 and "repeat" not in options.passes:
        raise BadCallError(
            f"--repeat {options.repeats} asks for passes that --passes leaves out",
            advice="add repeat to --passes",
        )
    if not options.output.name.endswith(".rpb.zip"):
        raise BadCallError(
            f"a bundle's name ends in .rpb.zip, got {options.output.name!r}",
            advice=f"use -o {options.output.name}.rpb.zip",
        )
    if not options.output.parent.exists():
        raise BadCallError(
            f"folder {str(options.output.parent)!r} of -o does not exist",
            advice="make it, or choose another one",
        )
    for path in options.inputs:
        if not (options.working_directory / path).exists():
            raise BadCallError(
                f"input {str(path)!r} does not exist", advice="check the --input path"
            )
