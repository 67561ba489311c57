"""The conditions under which a Mac can be chosen: all of them, or it is not."""

from __future__ import annotations

from reprobundle.format.assessment import Evidence
from reprobundle.verify.assessment.answers import (
    DOCTOR,
    ON_MAC,
    SCAN,
    Answer,
    no,
    runs_on_mps,
    unknown,
    yes,
)
from reprobundle.verify.assessment.case import Case
from reprobundle.verify.assessment.objects import find_objects
from reprobundle.verify.assessment.path import find_path
from reprobundle.verify.ending import is_finished


def all_conditions(case: Case) -> Answer:
    """All five conditions of B62, with the objects, the machine and the intent."""
    missing: list[str] = []
    against: list[str] = []
    evidence: list[Evidence] = []
    for answer in (
        _verdict_is_plain(case),
        _intent_is_mac(case),
        _sources_are_free(case),
        _machine_is_fit(case),
        _objects_are_met(case),
    ):
        evidence += answer.evidence
        if answer.fires is None:
            missing += answer.missing or (answer.text,)
        elif not answer.fires:
            against.append(answer.text)
    if against:
        return Answer(False, "; ".join(against), tuple(evidence))
    if missing:
        return unknown("evidence for a Mac is missing", *missing)
    return yes(
        "the result comes out on MPS within its policy, fits its memory, needs no "
        "CUDA, and all five objects are met",
        *evidence,
    )


def _verdict_is_plain(case: Case) -> Answer:
    runs = [run for run in runs_on_mps(case) if is_finished(run.record)]
    if not runs:
        return unknown("nothing was run on MPS to its end", ON_MAC)
    decided = [run for run in runs if run.id in case.deciding]
    if not decided:
        return unknown("the runs on MPS do not decide the verdict", ON_MAC)
    source = Evidence(source="verdict", says=f"{case.verdict} ({case.exit_status})")
    if case.exit_status != 0:
        return no(f"the verdict is {case.verdict}", source)
    return yes("reproduced on MPS", source)


def _intent_is_mac(case: Case) -> Answer:
    intent = case.sealed.policy.intent
    if not case.counts_on_mac:
        return unknown(
            "the author does not say that the result is to count on macos-mps",
            "pack --accepting-platforms macos-mps",
        )
    if not (intent.purpose or intent.scenario):
        return unknown("the author states no purpose", "pack --purpose TEXT")
    says = intent.purpose or intent.scenario
    return yes("stated", Evidence(source="policy.json: intent", says=says))


def _sources_are_free(case: Case) -> Answer:
    scan = case.reports.scan
    if scan is None:
        return unknown("the sources were not scanned", SCAN)
    source = Evidence(source=f"scan: rule {scan.rule}", says=scan.reason)
    if scan.exit_status != 0 or scan.action != "nothing-found":
        return no(f"the scan says {scan.action}", source)
    return yes("nothing needs CUDA", source)


def _machine_is_fit(case: Case) -> Answer:
    doctor = case.reports.doctor
    if doctor is None:
        return unknown("the Mac was not examined", DOCTOR)
    source = Evidence(source="doctor: mps", says=doctor.answer)
    if doctor.exit_status == 10 or doctor.mps == "not-usable":
        return no(f"on the examined machine MPS is {doctor.mps}", source)
    if doctor.exit_status != 0 or doctor.mps != "usable":
        return unknown(f"on the examined machine MPS is {doctor.mps}", DOCTOR)
    builds = {run.fact("os.build").value for run in runs_on_mps(case)}
    if not builds or any(not one or str(one) not in doctor.machine for one in builds):
        text = "the examined machine is not known to be the one of the replay"
        return unknown(text, DOCTOR)
    return yes("MPS is usable", source)


def _objects_are_met(case: Case) -> Answer:
    points = [*find_objects(case), *find_path(case)]
    not_met = [one for one in points if one.state == "not-met"]
    if not_met:
        return no(f"{not_met[0].id} is not met: {not_met[0].reason}")
    objects = [one for one in points if one.group == "object"]
    open_ = [f"{one.id}: {one.reason}" for one in objects if one.state != "met"]
    open_ += [
        f"{one.id}: {one.reason}"
        for one in points
        if one.group == "path" and one.state == "not-checked"
    ]
    if open_:
        return unknown("points of the acceptance are open", *open_)
    return yes("all met", *(one.evidence[0] for one in objects))
