"""The five acceptance objects (requirements A58 to A62), each met only by evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.assessment import Evidence, Point
from reprobundle.format.findings import OutputComparison
from reprobundle.format.record import Output
from reprobundle.verify.assessment.case import (
    GOOD_RESULTS,
    Case,
    JudgedRun,
    Stated,
    evidence_of,
    fact_evidence,
    first_bad,
)

ENVIRONMENT = Stated(
    "environment-built", "object", "The environment is built from the bundle alone."
)
IMPORT = Stated(
    "model-import", "object", "The model loads without a change of path or code."
)
REAL_INPUT = Stated(
    "representative-input", "object", "At least one real input was used."
)
EXPORT = Stated(
    "result-export", "object", "Files, metrics and metadata are written correctly."
)
RESTART = Stated(
    "restart-reproduction",
    "object",
    "Ended and started again, it gives the same result.",
)

NOBODY = "nobody has replayed it to its end"
_CHANGED = ("same-files", "same-command", "same-seed")
_ELSEWHERE = ("read-original-project", "read-outside-project", "device-mapped")
_INPUTS = ("same-inputs", "reduced-input", "standin-data")


def find_objects(case: Case) -> Iterator[Point]:
    """Yield the five objects in their order."""
    yield environment_built(case, ENVIRONMENT)
    yield _model_import(case)
    yield representative_input(case, REAL_INPUT)
    yield _export(case)
    yield _restart(case)


def environment_built(case: Case, stated: Stated) -> Point:
    """Return whether somebody built the environment from the bundle's lock.

    A replay in an environment that was there already shows that the command runs, and
    not that a new member of the team could make that environment.
    """
    for run in case.main:
        device = run.record.devices.requested
        ran = run.record.outcome.error is not None
        has_no_device = ran or run.fact(f"torch.{device}.missing").value is not None
        if run.record.outcome.stop == "platform" and not has_no_device:
            detail = run.record.outcome.stop_detail
            where = Evidence(source=f"{run.name}/record.json: outcome", says=detail)
            return stated.not_met("the environment could not be built", where)
    if not case.finished:
        return stated.not_checked(NOBODY)
    for run in reversed(case.alike):
        fresh = run.fact("replay.environment").value == "fresh"
        if fresh and run.is_reproduced:
            return _built(run, stated)
    return stated.not_checked(
        "no reproduced replay built its environment from the lock (replay --env fresh)",
        fact_evidence(case.finished[-1], "replay.environment"),
    )


def _built(run: JudgedRun, stated: Stated) -> Point:
    evidence = [
        fact_evidence(run, name)
        for name in (
            "replay.environment",
            "replay.environment.commands",
            "replay.environment.differences",
        )
        if run.fact(name).value is not None
    ]
    differences = run.fact("replay.environment.differences").value
    if differences is None:
        reason = "it was built, and was not compared with the lock"
        return stated.not_checked(reason, *evidence)
    if differences:
        reason = f"what was built differs from the lock in {differences} packages"
        return stated.not_met(reason, *evidence)
    return stated.met(*evidence)


def _model_import(case: Case) -> Point:
    if not case.finished:
        return IMPORT.not_checked(NOBODY)
    for run, bad in first_bad(case.finished, (*_CHANGED, *_ELSEWHERE)):
        evidence = evidence_of(bad, run.name)
        if bad.outcome == "not-checked":
            return IMPORT.not_checked(bad.reason, evidence)
        return IMPORT.not_met(bad.reason, evidence)
    endings = [
        (run, found)
        for run in case.finished
        for name in ("exit-status", "same-failure")
        if (found := run.found(name)) is not None
    ]
    for run, ending in endings:
        if ending.outcome == "fail":
            return IMPORT.not_met(ending.reason, evidence_of(ending, run.name))
    proofs = [*_passes(case.finished[-1], ("same-files", "same-command"))]
    if not endings or len(proofs) < 2:
        return IMPORT.not_checked("that files and command were the same is not known")
    run, ending = endings[-1]
    return IMPORT.met(*proofs, evidence_of(ending, run.name))


def _passes(run: JudgedRun, names: Sequence[str]) -> Iterator[Evidence]:
    for name in names:
        found = run.found(name)
        if found is not None and found.outcome == "pass":
            yield evidence_of(found, run.name)


def representative_input(case: Case, stated: Stated) -> Point:
    """Return whether a real input is in the bundle and was read by the replay."""
    sample = case.found("has-input-sample")
    if sample is None or sample.outcome not in ("pass", "not-applicable"):
        reason = sample.reason if sample else "the bundle's inputs were not looked at"
        return stated.not_met(reason) if sample else stated.not_checked(reason)
    if sample.outcome == "not-applicable":
        return stated.not_checked(
            "the run read no input file: whether what it made itself stands for a real "
            "case is for a person to say",
            evidence_of(sample),
        )
    if sample.where.startswith("stand-ins/"):
        reason = "the bundle holds samples in the place of the real input"
        return stated.not_met(reason, evidence_of(sample))
    if not case.finished:
        return stated.not_checked(NOBODY, evidence_of(sample))
    for run, found in first_bad(case.finished, _INPUTS):
        evidence = evidence_of(found, run.name)
        if found.id == "same-inputs" and found.outcome == "not-checked":
            return stated.not_checked(found.reason, evidence)
        return stated.not_met(found.reason, evidence)
    read = [*_passes(case.finished[-1], ("same-inputs",))]
    if not read:
        return stated.not_checked("whether the replay read the same input is not known")
    return stated.met(evidence_of(sample), *read)


def _export(case: Case) -> Point:
    """Files, metrics and metadata: each has to be there and equal to the reference's.

    The reference's own keys, columns and types are the schema: a key that is missing
    or has another value is a difference.
    """
    if not case.finished:
        return EXPORT.not_checked(NOBODY)
    outputs = case.sealed.reference.outputs
    if not outputs:
        return EXPORT.not_checked("the run has no output")
    kinds = {
        "files": [one for one in outputs if _is_file(one)],
        "metrics": [one for one in outputs if one.role == "metrics"],
        "metadata": [
            one
            for one in outputs
            if one.role == "metadata" and one.kind in ("document", "table")
        ],
    }
    evidence: list[Evidence] = []
    for kind, wanted in kinds.items():
        for run in case.finished:
            results = {one.name: one for one in run.judgement.outputs}
            bad = next(filter(None, (_bad(one, results) for one in wanted)), None)
            if bad is not None:
                place = f"{run.name}, {bad.name}"
                why = bad.reason or bad.result
                where = Evidence(source=f"V17 outputs ({place})", says=why)
                if bad.result == "not-compared":
                    return EXPORT.not_checked(f"{kind}: {bad.name}: {why}", where)
                return EXPORT.not_met(f"{kind}: {bad.name}: {why}", where)
        told = f"{kind}: {', '.join(one.name for one in wanted[:4])}"
        evidence.append(Evidence(source="runs/1/record.json: outputs", says=told))
    missing = [kind for kind, wanted in kinds.items() if not wanted]
    if missing:
        reason = f"no output is known to be {' or '.join(missing)}"
        advice = "state it: pack --role 'PATH=metadata' or =metrics"
        return EXPORT.not_checked(f"{reason}; {advice}")
    return EXPORT.met(*evidence)


def _is_file(output: Output) -> bool:
    aside = ("metrics", "metadata", "log")
    recorded = output.name.startswith(("record:", "metric:"))
    return not recorded and output.kind != "log" and output.role not in aside


def _bad(
    output: Output, results: dict[str, OutputComparison]
) -> OutputComparison | None:
    """Return how an output did not come out as the reference's; None if it did."""
    got = results.get(output.name)
    if got is None:
        reason = "it was not compared"
        return OutputComparison(
            name=output.name,
            kind=output.kind,
            format=output.format,
            result="not-compared",
            reason=reason,
        )
    return None if got.result in GOOD_RESULTS else got


def _restart(case: Case) -> Point:
    """Every run of a replay starts a process of its own: two that agree show it."""
    stopped = case.found("restart-differs")
    if stopped is not None and stopped.outcome in ("fail", "warn"):
        return RESTART.not_met(stopped.reason, evidence_of(stopped))
    if not case.finished:
        return RESTART.not_checked(NOBODY)
    for run in case.alike:
        if not run.is_reproduced:
            reason = f"a run in a fresh process says {run.judgement.verdict}"
            bad = run.judgement.exit_status == 10
            state = RESTART.not_met if bad else RESTART.not_checked
            return state(reason, _verdict_evidence(run))
    if stopped is not None and stopped.outcome == "pass":
        resumed = [evidence_of(stopped)]
        if stopped.where.startswith("replays/"):
            return RESTART.met(*resumed)
    if len(case.alike) < 2:
        return RESTART.not_checked(
            "only one process was run where it was replayed (--repeat 2, or an "
            "evidence pass, makes a second one)"
        )
    return RESTART.met(*(_verdict_evidence(run) for run in case.alike[-4:]))


def _verdict_evidence(run: JudgedRun) -> Evidence:
    what = f"{run.record.pass_name} pass ({run.name})"
    return Evidence(source=what, says=run.judgement.verdict)
