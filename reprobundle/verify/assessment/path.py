"""The nine points of the path on macOS (requirements B43 to B51)."""

from __future__ import annotations

from collections.abc import Iterator

from reprobundle.format.assessment import Evidence, Point
from reprobundle.format.record import Output
from reprobundle.verify.assessment.case import (
    MAC,
    Case,
    JudgedRun,
    Stated,
    evidence_of,
    fact_evidence,
)
from reprobundle.verify.assessment.objects import (
    NOBODY,
    environment_built,
    representative_input,
)
from reprobundle.verify.devices import device_of, platform_label
from reprobundle.verify.ending import is_finished

ENVIRONMENT = Stated("path-environment", "path", "Environment from documented files.")
PACKAGES = Stated(
    "path-packages", "path", "Python packages and system dependencies are known."
)
MODEL = Stated("path-model", "path", "The model loads from its checkpoint format.")
INPUT = Stated("path-input", "path", "A representative real input was used.")
MPS = Stated("path-mps", "path", "It runs on MPS where that is supported.")
FALLBACK = Stated(
    "path-fallback", "path", "CPU fallback behaves as is planned for, and is shown."
)
EXPORT = Stated("path-export", "path", "Results have the required file format.")
AGAIN = Stated(
    "path-restart", "path", "A new call in a new environment gives the same result."
)
PERMISSIONS = Stated(
    "path-permissions", "path", "Data, caches and output folders can be used."
)

_CHECKPOINTS = (".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".onnx", ".pt2")
_SYSTEM = ("system.packages", "system.xcode_tools")
_DOCTOR = "reprobundle doctor BUNDLE --json"


def find_path(case: Case) -> Iterator[Point]:
    """Yield the nine points in their order."""
    yield environment_built(case, ENVIRONMENT)
    yield _packages(case)
    yield _model(case)
    yield representative_input(case, INPUT)
    yield _on_mps(case)
    yield _fallback(case)
    yield _export(case)
    yield _again(case)
    yield _permissions(case)


def _packages(case: Case) -> Point:
    if not case.finished:
        return PACKAGES.not_checked(NOBODY)
    run = case.finished[-1]
    tracked = run.found("environment-tracked")
    if tracked is None or tracked.outcome != "pass":
        reason = tracked.reason if tracked else "the packages were not compared"
        return PACKAGES.not_checked(reason)
    evidence = [evidence_of(tracked, run.name)]
    known = [name for name in _SYSTEM if run.fact(name).value is not None]
    evidence += [fact_evidence(run, name) for name in known]
    if not known:
        why = run.fact(_SYSTEM[0]).unknown
        return PACKAGES.not_checked(f"packages of the system are not known: {why}")
    if run.fact("replay.environment.differences").value != 0:
        return PACKAGES.not_met(f"its packages differ: {tracked.reason}", *evidence)
    return PACKAGES.met(*evidence)


def _model(case: Case) -> Point:
    reference = case.sealed.reference
    loaded = [
        read for read in reference.reads if read.path.lower().endswith(_CHECKPOINTS)
    ]
    if not loaded:
        return MODEL.not_applicable("the reference reads no checkpoint")
    if not case.finished:
        return MODEL.not_checked(NOBODY)
    run = case.finished[-1]
    read = {one.path: one.blake3 for one in run.record.reads}
    for one in loaded:
        if not one.blake3:
            return MODEL.not_checked(f"the content of {one.path} is not known")
        source = f"{run.name}/record.json: reads {one.path}"
        got = read.get(one.path, "not read")
        if got != one.blake3:
            reason = f"the replay did not load {one.path} as the reference did"
            return MODEL.not_met(reason, Evidence(source=source, says=got))
    if run.judgement.exit_status == 10:
        reason = f"it was loaded, and the run says {run.judgement.verdict}"
        return MODEL.not_met(reason)
    told = [
        Evidence(source=f"{run.name}/record.json: reads {one.path}", says=one.blake3)
        for one in loaded[:4]
    ]
    return MODEL.met(*told)


def _on_mps(case: Case) -> Point:
    asked_for = case.sealed.policy.intent.accepting_platforms
    if asked_for and not case.counts_on_mac:
        listed = ", ".join(asked_for)
        return MPS.not_applicable(f"the author accepts results of {listed} only")
    for run in case.on_mac:
        stop = run.record.outcome.stop
        if stop in ("operator", "dtype", "cuda_required", "memory"):
            where = Evidence(
                source=f"{run.name}/record.json: outcome",
                says=run.record.outcome.stop_detail,
            )
            return MPS.not_met(f"it stopped: {stop}", where)
    ran = [run for run in case.on_mac if platform_label(run.record) == MAC]
    finished = [run for run in ran if is_finished(run.record)]
    if not finished:
        doctor = case.reports.doctor
        if doctor is not None and doctor.mps == "not-usable":
            where = Evidence(source="doctor: mps", says=doctor.answer)
            return MPS.not_met("MPS cannot be used on that machine", where)
        return MPS.not_checked("no replay ran on MPS of a real Mac to its end")
    for run in finished:
        fallback = run.found("cpu-fallback")
        if fallback is None or fallback.outcome != "pass":
            reason = fallback.reason if fallback else "CPU fallback was not looked for"
            evidence = (evidence_of(fallback, run.name),) if fallback else ()
            if fallback is not None and fallback.outcome == "warn":
                return MPS.not_met(reason, *evidence)
            return MPS.not_checked(reason, *evidence)
    return MPS.met(*(_ran(run) for run in finished[:4]))


def _ran(run: JudgedRun) -> Evidence:
    fallback = run.found("cpu-fallback")
    says = fallback.reason if fallback else ""
    return Evidence(source=f"V15 cpu-fallback ({run.name})", says=says)


def _fallback(case: Case) -> Point:
    planned = case.sealed.policy.intent.fallback == "allowed"
    runs = [run for run in case.on_mac if device_of(run.record) == "mps"]
    if not runs:
        if planned:
            return FALLBACK.not_checked("no replay ran on MPS")
        return FALLBACK.not_applicable(
            "the author plans for no CPU fallback, and nothing ran on MPS"
        )
    for run in runs:
        found = run.found("cpu-fallback")
        if found is None or found.outcome == "not-checked":
            reason = found.reason if found else "CPU fallback was not looked for"
            return FALLBACK.not_checked(reason)
        if found.outcome == "warn" and not planned:
            reason = f"the author plans for no CPU fallback: {found.reason}"
            return FALLBACK.not_met(reason, evidence_of(found, run.name))
    if not planned:
        return FALLBACK.met(
            Evidence(source="policy.json: intent.fallback", says="forbidden"),
            *(_ran(run) for run in runs[:4]),
        )
    return FALLBACK.met(
        Evidence(source="policy.json: intent.fallback", says="allowed"),
        *(_ran(run) for run in runs[:4]),
    )


def _export(case: Case) -> Point:
    if not case.finished:
        return EXPORT.not_checked(NOBODY)
    wanted = [one for one in case.sealed.reference.outputs if one.kind != "log"]
    if not wanted:
        return EXPORT.not_checked("the run writes no result")
    for run in case.finished:
        there = {one.name: one for one in run.record.outputs}
        for one in wanted:
            if one.name not in there and run.record.pass_name == "evidence":
                continue
            got = _form(there.get(one.name))
            if got != _form(one):
                source = f"{run.name}/record.json: outputs {one.name}"
                reason = f"{one.name} is {got}, in the reference {_form(one)}"
                return EXPORT.not_met(reason, Evidence(source=source, says=got))
    last = case.finished[-1]
    told = ", ".join(f"{one.name} {one.format}" for one in wanted[:6])
    source = f"{last.name}/record.json: outputs"
    return EXPORT.met(Evidence(source=source, says=told))


def _form(output: Output | None) -> str:
    """Return what a reader of a file depends on: its format, dtypes and axes."""
    if output is None:
        return "missing"
    arrays = ", ".join(
        f"{one.name or 'array'} {one.dtype} of {len(one.shape)} axes"
        for one in output.arrays
    )
    return f"{output.format}{f' with {arrays}' if arrays else ''}"


def _again(case: Case) -> Point:
    """A second call of replay makes its environment, folder and processes anew."""
    resumed = case.found("restart-differs")
    if resumed is not None and resumed.outcome == "fail":
        return AGAIN.not_met(resumed.reason, evidence_of(resumed))
    if not case.finished:
        return AGAIN.not_checked(NOBODY)
    label = platform_label(case.finished[-1].record)
    alike = case.alike
    for run in alike:
        if run.judgement.exit_status == 10:
            source = f"{run.name} on {label}"
            evidence = Evidence(source=source, says=run.judgement.verdict)
            return AGAIN.not_met("a run on this platform was not reproduced", evidence)
    good = [run for run in alike if run.is_reproduced]
    calls = {run.record.occasion or run.id: run for run in good}
    if len(calls) < 2:
        reason = f"it was replayed in one call only on {label}: replay it again later"
        return AGAIN.not_checked(reason)
    told = [
        Evidence(source=f"{run.name}, {run.record.started}", says=run.judgement.verdict)
        for run in calls.values()
    ]
    return AGAIN.met(*told[-4:])


def _permissions(case: Case) -> Point:
    doctor = case.reports.doctor
    if doctor is None:
        return PERMISSIONS.not_checked(
            f"no report of the machine was given ({_DOCTOR})"
        )
    checks = [one for one in doctor.checks if one.group == "folders"]
    for one in checks:
        where = Evidence(source=f"doctor: folders {one.name}", says=one.got)
        if one.state == "problem":
            return PERMISSIONS.not_met(one.got, where)
        if one.state == "unknown":
            return PERMISSIONS.not_checked(one.got, where)
    if not checks:
        return PERMISSIONS.not_checked("the machine's report tells of no folder")
    told = (
        Evidence(source=f"doctor: folders {one.name}", says=one.got) for one in checks
    )
    return PERMISSIONS.met(*told)
