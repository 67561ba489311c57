"""What the rules ask of a case, one function for each rule but the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprobundle.format.assessment import Evidence
from reprobundle.verify.assessment.answers import (
    FORECAST,
    ON_MAC,
    SCAN,
    Answer,
    no,
    reproduced_on_mps,
    runs_on_mps,
    runs_with_versions,
    stops,
    unknown,
    yes,
)
from reprobundle.verify.assessment.case import Case, JudgedRun, evidence_of
from reprobundle.verify.ending import is_finished

_RECOMMENDED = "torch.mps.recommended_max_bytes"
_KEEPS = "a test on a Mac would not change it"
_CENTRAL = "central: in every step"


def needs_cuda(case: Case) -> Answer:
    """Whether the sources need CUDA in any case."""
    scan = case.reports.scan
    if scan is None:
        return unknown("the sources were not scanned", SCAN)
    source = Evidence(source=f"scan: rule {scan.rule}", says=scan.reason)
    if scan.action == "keep-linux-gpu":
        return yes(f"{scan.reason}; {_KEEPS}", source)
    if scan.action == "not-decided":
        return unknown(f"the scan decided nothing: {scan.reason}", SCAN)
    return no("no place in the sources needs CUDA in any case", source)


def stopped_for_cuda(case: Case) -> Answer:
    """Whether a replay on a Mac stopped for want of CUDA."""
    scan = case.reports.scan
    stopped = stops(case, ("cuda_required",))
    if not stopped:
        return no("no replay on a Mac stopped for want of CUDA")
    if scan is not None and scan.action in ("refactor", "dual-track"):
        return no("it stopped for want of CUDA at a place that can be changed")
    return yes("it stopped for want of CUDA", *stopped)


def can_be_changed(case: Case) -> Answer:
    """Whether what stops it on MPS is named and can be changed."""
    scan, forecast = case.reports.scan, case.reports.forecast
    if scan is not None and scan.action == "refactor":
        source = Evidence(source=f"scan: rule {scan.rule}", says=scan.reason)
        return yes(scan.reason, source)
    blocked = list(_forecast_blockers(case))
    if blocked and not reproduced_on_mps(case):
        text = "the forecast names operators or dtypes that MPS does not have"
        return yes(text, *blocked[:4])
    if scan is None:
        return unknown("the sources were not scanned", SCAN)
    if forecast is None and not reproduced_on_mps(case):
        return unknown("nobody forecast its operators on MPS", FORECAST)
    if forecast is not None and not forecast.steered and not reproduced_on_mps(case):
        return unknown("the command that was forecast asked for no MPS", FORECAST)
    return no("neither scan nor forecast, nor a run on MPS, names a place to change")


def _forecast_blockers(case: Case) -> Iterator[Evidence]:
    forecast = case.reports.forecast
    if forecast is None or forecast.mode == "dry":
        return
    for one in forecast.operators:
        is_cause = one.place == "missing" and not one.follows
        if is_cause and one.certainty == "certain":
            says = one.where or one.note
            yield Evidence(source=f"forecast: {one.operator} is missing", says=says)
    for site in forecast.float64:
        yield Evidence(source=f"forecast: {site.dtype} {site.how}", says=site.where)


def operator_missing(case: Case) -> Answer:
    """Whether a replay on a Mac stopped at an operator or dtype."""
    stopped = stops(case, ("operator", "dtype"))
    if stopped:
        return yes("a run on a Mac stopped at an operator or dtype", *stopped)
    if not runs_on_mps(case):
        return unknown("nothing was run on MPS", ON_MAC)
    return no("no run on a Mac stopped at an operator or dtype")


def memory_exceeded(case: Case) -> Answer:
    """Whether it needs more memory than MPS has room for."""
    stopped = stops(case, ("memory",))
    if stopped:
        return yes("a run on a Mac went beyond its memory", *stopped)
    runs = runs_on_mps(case)
    if not runs:
        return unknown("nothing was run on MPS", ON_MAC)
    shown = []
    for run in runs:
        if run.record.pass_name == "evidence":
            # A traced run states no memory.
            continue
        peak = run.record.memory.peak_device_bytes
        most = run.fact(_RECOMMENDED)
        if not isinstance(peak.value, int) or not isinstance(most.value, int):
            why = peak.unknown or most.unknown or "a size is no number"
            return unknown(f"whether it fits is not known: {why}", ON_MAC)
        source = f"{run.name}/record.json: memory.peak_device_bytes, {_RECOMMENDED}"
        says = f"{peak.value:,} of {most.value:,} bytes"
        shown.append(Evidence(source=source, says=says))
        if peak.value > most.value:
            text = "it needs more than the memory that is recommended for MPS"
            return yes(text, shown[-1])
    if not shown:
        return unknown("no measured run on MPS tells its memory", ON_MAC)
    return no("it stays within the recommended memory", *shown)


def central_fallback(case: Case) -> Answer:
    """Whether an operator of every step ran on the CPU."""
    runs = runs_on_mps(case)
    for run in runs:
        found = run.found("cpu-fallback")
        if found is not None and found.outcome == "warn" and _CENTRAL in found.reason:
            text = "CPU fallback meets a central step, so this is no result of MPS"
            return yes(text, evidence_of(found, run.name))
    return _fallback_known(runs) or no("no central step fell back to the CPU")


def _fallback_known(runs: Sequence[JudgedRun]) -> Answer | None:
    """Return that fallback is not known; None where it is, for every run."""
    if not runs:
        return unknown("nothing was run on MPS", ON_MAC)
    for run in runs:
        found = run.found("cpu-fallback")
        if found is None or found.outcome not in ("pass", "warn"):
            reason = found.reason if found else "CPU fallback was not looked for"
            return unknown(reason, f"{ON_MAC} with --passes measured,evidence")
    return None


def not_reproduced(case: Case) -> Answer:
    """Whether a result on MPS is outside the policy."""
    runs = [run for run in runs_on_mps(case) if is_finished(run.record)]
    for run in runs:
        if run.judgement.exit_status == 10:
            why = run.judgement.reasons[0] if run.judgement.reasons else ""
            source = Evidence(source=f"{run.name}: {run.judgement.verdict}", says=why)
            return yes("the result on MPS is outside the author's policy", source)
    if not runs:
        return unknown("nothing was run on MPS to its end", ON_MAC)
    if not all(run.is_reproduced for run in runs):
        return unknown("a run on MPS has no verdict", ON_MAC)
    return no("every run on MPS lies within the author's policy")


def not_stable(case: Case) -> Answer:
    """Whether the result on the Mac does not repeat."""
    runs = [run for run in runs_with_versions(case) if is_finished(run.record)]
    failed = [run for run in runs if run.judgement.exit_status == 10]
    if failed and any(run.is_reproduced for run in runs):
        source = Evidence(source=failed[-1].name, says=failed[-1].judgement.verdict)
        return yes("on the Mac the same run comes out now so, now otherwise", source)
    resumed = case.found("restart-differs")
    decides_there = any(run.id in case.deciding for run in runs)
    if resumed is not None and resumed.outcome == "fail" and decides_there:
        text = "on the Mac the result does not survive a stop and a resume"
        return yes(text, evidence_of(resumed))
    if len(runs) < 2:
        return unknown("fewer than two runs on MPS", f"{ON_MAC}, with --repeat 2")
    return no(f"{len(runs)} runs on MPS agree")


def both_platforms(case: Case) -> Answer:
    """Whether the result has to count on Linux and on macOS."""
    named = case.sealed.policy.intent.accepting_platforms
    systems = {name.partition("-")[0] for name in named}
    if {"linux", "macos"} <= systems:
        listed = Evidence(
            source="policy.json: intent.accepting_platforms", says=", ".join(named)
        )
        return yes("the result has to count on Linux and on macOS", listed)
    return no("the author does not ask for both Linux and macOS")


def guarded_path(case: Case) -> Answer:
    """Whether the sources have a path of their own for CUDA."""
    scan = case.reports.scan
    if scan is None:
        return unknown("the sources were not scanned", SCAN)
    if scan.action == "dual-track":
        source = Evidence(source=f"scan: rule {scan.rule}", says=scan.reason)
        return yes(scan.reason, source)
    return no("the sources have no path of their own for CUDA")


def fallback_aside(case: Case) -> Answer:
    """Whether operators that are not central ran on the CPU."""
    runs = runs_on_mps(case)
    for run in runs:
        found = run.found("cpu-fallback")
        if found is not None and found.outcome == "warn":
            text = "steps that are not central ran on the CPU: train on Linux"
            return yes(text, evidence_of(found, run.name))
    return _fallback_known(runs) or no("nothing fell back to the CPU")
