"""An attached acceptance is derived again: it holds, is stale, or is contradicted."""

from __future__ import annotations

import datetime

import msgspec
import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.attach import attach_acceptance, detach_replay
from reprobundle.format.canonical import encode
from reprobundle.format.scan_report import ScanReport
from reprobundle.verify.assessment.making import (
    Statement,
    make_acceptance,
    read_report,
)
from reprobundle.verify.assessment.versions import compare_here
from reprobundle.verify.selftest.of_acceptance import ACCEPTANCE_MUTATIONS
from reprobundle.verify.selftest.selftest import selftest
from tests.verify.accepted_mac import ALL_OUTPUTS, FACTS, Mac, fact, scan
from tests.verify.builder import FAR, Run, found

WHEN = datetime.datetime(2026, 12, 3, 1, 2, 3, tzinfo=datetime.timezone.utc)
SAID = Statement("A. Tester", "lab 1", "evaluator", "B. Second", "", WHEN)
MAC = Mac()


@pytest.fixture
def bench(tmp_path):
    return MAC.made(tmp_path)


def made(bench, mac=MAC):
    reports = mac.reports(bench.id)
    report = bench.verify(acceptance=True, reports=reports)
    return make_acceptance(report, SAID, reports)


def accept(bench, **changes):
    """Attach an acceptance record with these fields and return its id."""
    record = msgspec.structs.replace(made(bench), **changes)
    return attach_acceptance(bench.path, encode(record))


def the_one(report):
    (one,) = report.acceptances
    return one


def test_an_attached_acceptance_holds_and_changes_nothing_else(bench):
    before = bench.verify()
    identifier = accept(bench)
    report = bench.verify()
    one = the_one(report)
    assert (one.id, one.state, one.reasons) == (identifier, "holds", ())
    assert (one.by, one.where, one.role) == ("A. Tester", "lab 1", "evaluator")
    assert (one.second_person, one.when) == ("B. Second", "2026-12-03T01:02:03Z")
    assert (one.acceptance, one.choice) == ("accepted", "choose-mac")
    assert (report.bundle, report.verdict, report.exit_status) == (
        before.bundle,
        before.verdict,
        before.exit_status,
    )
    assert found(report, "acceptance-derived", "pass")
    assert found(report, "acceptance-current", "pass")


def test_without_a_record_the_check_does_not_apply(bench):
    (one,) = found(bench.verify(), "acceptance-record")
    assert one.outcome == "not-applicable"


def test_several_acceptances_are_judged_each_by_itself(bench):
    accept(bench)
    MAC.replayed(bench, "c" * 16)
    accept(bench, by="C. Third")
    states = [(one.by, one.state) for one in bench.verify().acceptances]
    assert states == [("A. Tester", "holds"), ("C. Third", "holds")]


def test_integrity_alone_derives_nothing_and_says_so(bench):
    accept(bench)
    report = bench.verify(integrity_only=True)
    assert report.exit_status == 0
    assert "acceptance-derived" in report.not_checked


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("torch.version", "2.14.0"),
        ("os.build", "26A1"),
        ("mps.graph_version", "7.0"),
        ("replay.environment.differences", 3),
    ],
)
def test_a_newer_run_with_another_version_makes_it_stale(bench, name, new):
    accept(bench)
    other = MAC.but(facts={**FACTS, name: fact(new)})
    other.replayed(bench, "c" * 16)
    report = bench.verify()
    one = the_one(report)
    assert one.state == "stale"
    assert any(reason.startswith(f"{name}: ") for reason in one.reasons)
    assert f"{new} on replays/" in one.reasons[0]
    assert found(report, "acceptance-current", "not-checked")
    assert "acceptance-current" in report.not_checked


def test_a_newer_run_on_another_platform_leaves_it_as_it_is(bench):
    accept(bench)
    bench.replay(Run(dict(ALL_OUTPUTS), roles=dict(MAC.roles)), occasion="e" * 16)
    assert the_one(bench.verify()).state == "holds"


def test_a_newer_run_that_says_no_makes_it_stale(bench):
    accept(bench)
    MAC.but(outputs={**ALL_OUTPUTS, "out/logits.npy": FAR}).replayed(bench, "c" * 16)
    one = the_one(bench.verify())
    assert one.state == "stale"
    assert one.reasons[0].startswith("a newer run says NOT REPRODUCED")


def test_a_replay_that_is_gone_leaves_it_unconfirmed(bench):
    accept(bench)
    detach_replay(bench.path, bench.verify().judgements[0].replay)
    report = bench.verify()
    assert the_one(report).state == "not-confirmed"
    (said,) = found(report, "acceptance-derived")
    assert said.outcome == "not-checked"
    assert "not attached" in said.reason


def ticked(record):
    points = tuple(
        msgspec.structs.replace(one, state="not-checked", reason="x")
        if one.id == "path-mps"
        else one
        for one in record.assessment.points
    )
    return msgspec.structs.replace(record.assessment, points=points)


def test_what_another_release_derived_otherwise_is_not_known(bench):
    accept(bench, assessment=ticked(made(bench)), tool="reprobundle 99.1")
    report = bench.verify()
    assert the_one(report).state == "not-confirmed"
    (said,) = found(report, "acceptance-derived", "not-checked")
    assert "path-mps is not-checked, the evidence gives met" in said.reason
    assert report.exit_status == 0


def test_what_another_release_derived_alike_holds(bench):
    accept(bench, tool="reprobundle 99.1")
    assert the_one(bench.verify()).state == "holds"


def test_other_rules_are_not_guessed(bench):
    accept(bench, rules=2)
    report = bench.verify()
    assert the_one(report).state == "not-confirmed"
    assert "rules 2" in found(report, "acceptance-derived")[0].reason


def test_a_record_that_the_evidence_contradicts_is_an_alteration(bench):
    accept(bench, assessment=ticked(made(bench)))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("TAMPERED", 21)
    assert the_one(report).state == "contradicted"
    assert "path-mps" in the_one(report).reasons[0]


def test_a_report_of_another_bundle_inside_a_record_counts_for_nothing(bench):
    accept(bench, scan=scan(bundle="0" * 64))
    report = bench.verify()
    assert the_one(report).state == "contradicted"


def test_signing_later_changes_nothing_that_is_compared(bench):
    record = made(bench)
    points = tuple(
        msgspec.structs.replace(one, state="not-applicable", reason="as it was then")
        if one.id == "lists-second-person"
        else one
        for one in record.assessment.points
    )
    accept(bench, assessment=msgspec.structs.replace(record.assessment, points=points))
    assert the_one(bench.verify()).state == "holds"


def test_every_altered_acceptance_is_caught(bench):
    report = selftest(bench.path, mutations=ACCEPTANCE_MUTATIONS)
    assert [(row.name, row.result) for row in report.rows] == [
        (one.name, "caught") for one in ACCEPTANCE_MUTATIONS
    ]
    assert {verdict for row in report.rows for verdict in row.verdicts} == {"TAMPERED"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"by": ""}, "statement cannot be taken"),
        ({"where": " "}, "statement cannot be taken"),
        ({"by": "x" * 501}, "statement cannot be taken"),
        ({"note": "two\nlines"}, "cannot be shown"),
    ],
)
def test_a_statement_has_to_say_who_and_where(bench, changes, message):
    report = bench.verify(acceptance=True)
    with pytest.raises(BadCallError, match=message):
        make_acceptance(report, SAID._replace(**changes), MAC.reports(bench.id))


def test_a_bundle_that_is_not_whole_cannot_be_accepted(bench):
    report = bench.verify(integrity_only=True)
    with pytest.raises(BadCallError, match="cannot be assessed"):
        make_acceptance(report, SAID, MAC.reports(bench.id))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not what reprobundle scan"),
        (b"{}", "is not what reprobundle scan"),
        (encode(scan()), "is about no bundle"),
        (encode(scan(bundle="0" * 64)), "is about bundle 000000000000"),
    ],
)
def test_a_report_of_something_else_is_refused(tmp_path, data, message):
    path = tmp_path / "scan.json"
    path.write_bytes(data)
    with pytest.raises(BadCallError, match=message):
        read_report(path, ScanReport, bundle="1" * 64)


def test_a_machine_is_compared_with_the_accepted_runs(bench):
    assessment = made(bench).assessment
    same = dict(assessment.holds_for[0].versions)
    here = compare_here(assessment, platform="macos", here=same)
    assert here == ((), (), ())
    here = compare_here(assessment, platform="macos", here={**same, "os.build": "26A1"})
    assert here.changed == ("os.build: 25D125 when accepted, 26A1 on this machine",)
    less = {name: value for name, value in same.items() if name != "torch.version"}
    here = compare_here(assessment, platform="macos", here=less)
    assert here.unknown == ("torch.version",)
    assert compare_here(assessment, platform="linux", here={}).changed == ()
