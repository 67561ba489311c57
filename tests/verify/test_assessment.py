"""Points are met and rules fire by evidence alone; what is missing is never a yes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from reprobundle.format.assessment import Evidence, Point
from reprobundle.format.policy import Intent
from reprobundle.format.record import (
    Command,
    Devices,
    Fact,
    FileRead,
    Memory,
    OperatorUse,
    Outcome,
    Remark,
)
from reprobundle.verify.assessment.rules import RULES
from tests.verify.accepted_mac import (
    ALL_OUTPUTS,
    FACTS,
    FITS,
    FLOAT64,
    INTENT,
    META,
    MISSING,
    Mac,
    answers,
    doctor,
    fact,
    forecast,
    points,
    scan,
)
from tests.verify.builder import FAR, NEAR, WITNESSES, on, used

ROOT = Path(__file__).parents[2]
OBJECTS = (
    "environment-built",
    "model-import",
    "representative-input",
    "result-export",
    "restart-reproduction",
)
ONCE = on("mps", "seen", operators=(used("aten.mode.default", steps=1, phase="data"),))
CENTRAL = on("mps", "seen", operators=(used("aten.mode.default"),))


def stopped(reason):
    """Return a Mac on which a later call stopped for this reason."""
    return Mac(
        calls=1,
        traced=False,
        measured=Devices(requested="mps", reason="it stopped"),
        changes={"outcome": Outcome(exit_status=1, completed=False, stop=reason)},
    )


def test_with_all_evidence_a_mac_is_chosen_and_the_result_accepted(tmp_path):
    got = Mac().assessed(tmp_path)
    advice = got.recommendation
    assert (advice.choice, advice.rule) == ("choose-mac", "all-conditions"), advice
    assert got.acceptance == "accepted"
    assert (got.verdict, got.exit_status) == ("REPRODUCED, bit-identical", 0)
    assert {points(got)[name].state for name in OBJECTS} == {"met"}
    assert not advice.missing
    assert [one.answer for one in advice.answers] == ["no"] * 11 + ["yes"]
    (held,) = {one.platform for one in got.holds_for}
    assert held == "macos-mps"
    versions = got.holds_for[0].versions
    assert versions["os.build"] == "25D125"
    assert versions["mps.graph_version"] == "6.4.2"
    assert versions["torch.version"] == "2.13.0"


def other_bundle():
    return Mac(scan=scan(bundle="0" * 64))


LESS = {
    "no scan": Mac(scan=None),
    "a scan of another bundle": other_bundle(),
    "a scan that decided nothing": Mac(scan=scan("not-decided", status=10)),
    "no doctor": Mac(doctor=None),
    "a doctor of another machine": Mac(doctor=doctor(machine="macOS 15 24A1 arm64")),
    "a doctor that saw no tensor": Mac(doctor=doctor(mps="unknown", exit_status=11)),
    "a doctor of another bundle": Mac(doctor=doctor(bundle="0" * 64)),
    "folders that were not examined": Mac(doctor=doctor(checks=())),
    "no replay": Mac(calls=0),
    "one call": Mac(calls=1),
    "no traced run": Mac(traced=False),
    "an environment that was there": Mac(
        facts={**FACTS, "replay.environment": fact("current")}
    ),
    "packages not compared": Mac().without("replay.environment.differences"),
    "system packages not known": Mac().without("system.packages"),
    "no recommended size": Mac().without("torch.mps.recommended_max_bytes"),
    "no peak": Mac(
        memory=msgspec.structs.replace(FITS, peak_device_bytes=Fact(unknown="no"))
    ),
    "no build of the system": Mac().without("os.build"),
    "no purpose": Mac(intent=Intent(accepting_platforms=("macos-mps",))),
    "any platform": Mac(intent=Intent(purpose="any")),
    "no metadata": Mac(roles={"out/metrics.json": "metrics"}),
    "no metrics": Mac(roles={"out/meta.json": "metadata"}),
    "a stand-in": Mac(measured=on("mps-standin"), evidence=on("mps-standin")),
    "another system": Mac(changes={"platform": "linux"}),
    "witnesses that did not look": Mac(evidence=on("mps", witnesses=WITNESSES[:1])),
    "an input that was not read": Mac(changes={"reads": ()}),
    "an experiment": Mac(facts={**FACTS, "asked.threads": fact("1")}),
}


@pytest.mark.parametrize("name", LESS)
def test_missing_evidence_never_chooses_a_mac(tmp_path, name):
    got = LESS[name].assessed(tmp_path)
    assert got.recommendation.choice != "choose-mac"
    if got.recommendation.choice == "undecided" and not got.recommendation.missing:
        assert answers(got)["all-conditions"] == "no"


FIRES = {
    "needs-cuda": Mac(scan=scan("keep-linux-gpu", status=10)),
    "stopped-for-cuda": stopped("cuda_required"),
    "operator-missing": stopped("operator"),
    "memory-exceeded": Mac(
        memory=msgspec.structs.replace(FITS, peak_device_bytes=fact(1_000_001))
    ),
    "central-fallback": Mac(evidence=CENTRAL),
    "not-reproduced": Mac(outputs={**ALL_OUTPUTS, "out/logits.npy": FAR}),
    "replaceable": Mac(scan=scan("refactor", status=10)),
    "both-platforms": Mac(
        intent=Intent(purpose="x", accepting_platforms=("macos-mps", "linux-cpu"))
    ),
    "guarded-path": Mac(scan=scan("dual-track")),
    "fallback-aside": Mac(evidence=ONCE),
    "all-conditions": Mac(),
}
CHOICES = {rule.name: rule.choice for rule in RULES}


@pytest.mark.parametrize("name", FIRES)
def test_each_rule_fires_on_its_evidence(tmp_path, name):
    advice = FIRES[name].assessed(tmp_path).recommendation
    assert (advice.rule, advice.choice) == (name, CHOICES[name]), advice.text
    assert advice.evidence
    assert advice.text


@pytest.mark.parametrize("reason", ["memory", "dtype"])
def test_a_run_that_stopped_on_a_mac_stops_the_migration(tmp_path, reason):
    advice = stopped(reason).assessed(tmp_path).recommendation
    assert advice.choice == "stop"
    assert advice.evidence[0].says.startswith(reason)


def test_a_result_that_does_not_repeat_on_the_mac_stops_the_migration(tmp_path):
    mac = Mac(calls=1)
    bench = mac.made(tmp_path)
    mac.but(outputs={**ALL_OUTPUTS, "out/logits.npy": FAR}).replayed(bench, "f" * 16)
    mac.replayed(bench, "a" * 16)
    report = bench.verify(acceptance=True, reports=mac.reports(bench.id))
    advice = report.assessment.recommendation
    assert (advice.rule, advice.choice) == ("not-stable", "stop"), advice.answers
    assert points(report.assessment)["path-restart"].state == "not-met"


def test_every_rule_has_a_case_and_stands_in_the_documents():
    assert {*FIRES, "not-stable"} == {rule.name for rule in RULES}
    spec = (ROOT / "spec.md").read_text()
    page = (ROOT / "docs/acceptance.md").read_text()
    for rule in RULES:
        assert f"`{rule.name}`" in spec
        assert f"| `{rule.name}` | {rule.choice} |" in page
    assert RULES[-1].choice == "choose-mac"
    assert [rule.choice for rule in RULES].count("choose-mac") == 1


@pytest.mark.parametrize(
    "told",
    [forecast(operators=(MISSING,), exit_status=10), forecast(float64=(FLOAT64,))],
)
def test_a_forecast_of_what_mps_lacks_says_what_to_change(tmp_path, told):
    advice = Mac(calls=0, forecast=told).assessed(tmp_path).recommendation
    assert (advice.rule, advice.choice) == ("replaceable", "refactor")


def test_a_forecast_of_a_run_without_mps_proves_nothing(tmp_path):
    told = forecast(steered=False, exit_status=11)
    got = Mac(calls=0, forecast=told).assessed(tmp_path)
    assert answers(got)["replaceable"] == "unknown"


def test_a_dry_forecast_proves_nothing(tmp_path):
    told = forecast(operators=(MISSING,), mode="dry", exit_status=10)
    got = Mac(calls=0, forecast=told).assessed(tmp_path)
    assert answers(got)["replaceable"] != "yes"


NOT_MET = {
    "environment-built": [
        Mac(facts={**FACTS, "replay.environment.differences": fact(2)}),
        stopped("platform"),
    ],
    "model-import": [
        Mac(changes={"files_digest": "0" * 64}),
        Mac(changes={"command": Command(argv=("python", "other.py"), seed=0)}),
        Mac(measured=on("mps", mapping="cuda=mps")),
    ],
    "representative-input": [
        Mac(changes={"reads": ()}),
        Mac(
            changes={
                "remarks": (Remark(id="standin-data", severity="warning", text="x"),)
            }
        ),
    ],
    "result-export": [
        Mac(outputs={**ALL_OUTPUTS, "out/meta.json": b'{"columns": ["x"]}\n'}),
        Mac(outputs={**ALL_OUTPUTS, "out/metrics.json": b'{"accuracy": 0.5}\n'}),
        Mac(outputs={**ALL_OUTPUTS, "out/logits.npy": FAR}),
    ],
    "restart-reproduction": [Mac(outputs={**ALL_OUTPUTS, "out/logits.npy": FAR})],
    "path-packages": [Mac(facts={**FACTS, "replay.environment.differences": fact(1)})],
    "path-mps": [stopped("operator"), Mac(evidence=ONCE)],
    "path-fallback": [Mac(evidence=ONCE)],
    "path-export": [Mac(outputs={**ALL_OUTPUTS, "out/logits.npy": META})],
    "path-restart": [Mac(outputs={**ALL_OUTPUTS, "out/logits.npy": FAR})],
    "path-permissions": [
        Mac(
            doctor=doctor(
                checks=(
                    msgspec.structs.replace(
                        doctor().checks[0], state="problem", got="read-only"
                    ),
                )
            )
        )
    ],
}


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, at) for name, macs in NOT_MET.items() for at in range(len(macs))],
)
def test_a_point_that_evidence_speaks_against_is_not_met(tmp_path, name, number):
    got = NOT_MET[name][number].assessed(tmp_path)
    point = points(got)[name]
    assert point.state == "not-met", point
    assert point.reason
    assert got.acceptance == "not-accepted"


def test_a_device_that_is_missing_says_nothing_of_the_environment(tmp_path):
    missing = {**FACTS, "torch.mps.missing": fact("built-without-mps")}
    got = stopped("platform").but(facts=missing).assessed(tmp_path)
    assert points(got)["environment-built"].state == "not-checked"


def checkpoint(digest):
    return FileRead(
        path="project:model.safetensors",
        member="",
        size_bytes=3,
        blake3=digest,
    )


@pytest.mark.parametrize(
    ("replayed", "state"), [("a" * 64, "met"), ("b" * 64, "not-met")]
)
def test_a_checkpoint_has_to_be_loaded_as_in_the_reference(tmp_path, replayed, state):
    mac = Mac(changes={"reads": (checkpoint(replayed),)})
    bench = mac.but(calls=0).made(tmp_path)
    bench.reference.changes["reads"] = (checkpoint("a" * 64),)
    bench.pack()
    mac.replayed(bench, "0" * 16)
    got = bench.verify(acceptance=True).assessment
    assert points(got)["path-model"].state == state


def test_fallback_that_is_planned_for_is_shown_and_met(tmp_path):
    intent = msgspec.structs.replace(INTENT, fallback="allowed")
    got = Mac(evidence=ONCE, intent=intent).assessed(tmp_path)
    point = points(got)["path-fallback"]
    assert point.state == "met"
    assert "mixed run" in point.evidence[1].says
    assert points(got)["path-mps"].state == "not-met"


def test_a_platform_that_the_author_leaves_out_is_not_applicable(tmp_path):
    got = Mac(intent=Intent(accepting_platforms=("linux-cpu",))).assessed(tmp_path)
    assert points(got)["path-mps"].state == "not-applicable"


def test_within_tolerance_is_accepted_too(tmp_path):
    got = Mac(outputs={**ALL_OUTPUTS, "out/logits.npy": NEAR}).assessed(tmp_path)
    assert (got.verdict, got.acceptance) == ("REPRODUCED, within tolerance", "accepted")


def test_a_warning_keeps_the_answer_open(tmp_path):
    got = Mac(memory=Memory(**{**_fields(FITS), "limits": {"X": "1"}})).assessed(
        tmp_path
    )
    assert got.exit_status == 0
    got = Mac(changes={"remarks": (_network(),)}).assessed(_sub(tmp_path))
    assert (got.exit_status, got.acceptance) == (12, "not-decided")
    assert got.recommendation.choice == "undecided"


def _fields(struct):
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _network():
    return Remark(id="network-used", severity="warning", text="it used the network")


def _sub(folder):
    inner = folder / "inner"
    inner.mkdir()
    return inner


def test_allowing_a_warning_changes_no_assessment(tmp_path):
    mac = Mac(changes={"remarks": (_network(),)})
    bench = mac.made(tmp_path)
    report = bench.verify(
        acceptance=True, reports=mac.reports(bench.id), allow=("network-used",)
    )
    assert (report.exit_status, report.assessment.exit_status) == (0, 12)


def test_a_tick_needs_evidence_and_anything_else_a_reason():
    with pytest.raises(ValueError, match="states no evidence"):
        Point(id="x", group="object", title="x", state="met")
    with pytest.raises(ValueError, match="states no reason"):
        Point(id="x", group="object", title="x", state="not-met")
    Point(
        id="x", group="path", title="x", state="met", evidence=(Evidence(source="y"),)
    )


def test_an_operator_of_every_step_is_central():
    assert isinstance(used("aten.mode.default"), OperatorUse)
