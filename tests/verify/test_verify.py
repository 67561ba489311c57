"""Whole bundles: which replay decides, what is allowed, what is said."""

import subprocess
import sys

import msgspec
import pytest

from reprobundle.errors import BadCallError, EnvironmentUnusableError
from reprobundle.format.findings import EXIT_STATUS, Verdict
from reprobundle.format.policy import (
    Claim,
)
from reprobundle.format.record import Outcome
from reprobundle.verify.checks import ITEMS
from reprobundle.verify.defaults import default_policy
from tests.verify.builder import (
    DRIFTED,
    FAR,
    METRICS,
    NEAR,
    Run,
    found,
    outputs,
    reasons,
)


def test_a_sound_replay_is_reproduced_bit_identical(bench):
    bench.pack().replay()
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("REPRODUCED, bit-identical", 0)
    assert report.reasons == ()


def test_small_errors_are_reproduced_within_tolerance(bench):
    bench.pack().replay(Run(outputs(logits=NEAR)))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("REPRODUCED, within tolerance", 0)


def test_times_inside_a_document_do_not_count(bench):
    bench.pack().replay(Run(outputs(metrics=METRICS.replace(b"12.5", b"99.5"))))
    report = bench.verify()
    assert report.verdict == "REPRODUCED, bit-identical"
    metrics = report.judgements[0].outputs[1]
    assert metrics.ignored == ("train_seconds",)


def test_a_bundle_that_nobody_replayed_is_not_reproduced(bench):
    report = bench.pack().verify()
    assert (report.verdict, report.exit_status) == ("INTACT, NOT YET REPLAYED", 11)
    assert "nobody has replayed it" in reasons(report)


def test_integrity_alone_answers_intact(bench):
    report = bench.pack().verify(integrity_only=True)
    assert (report.verdict, report.exit_status) == ("INTACT", 0)


def test_a_report_names_what_was_not_checked(bench):
    bench.repeat = None
    bench.pack().replay()
    report = bench.verify()
    assert report.exit_status == 0
    assert "expect-id" in report.not_checked
    assert "reference-not-repeatable" in report.not_checked


def test_every_verdict_has_a_place_and_a_status():
    assert set(EXIT_STATUS) == set(Verdict)


@pytest.mark.parametrize("name", ["nonsense", "member-digest", "output-differs"])
def test_only_warnings_can_be_allowed(bench, name):
    bench.pack().replay()
    with pytest.raises(BadCallError, match="no warning") as caught:
        bench.verify(allow=(name,))
    assert "environment-drift" in caught.value.advice
    for never in ("cpu-fallback", "member-digest"):
        assert never not in caught.value.advice


def test_an_allowance_takes_away_only_the_warning_it_names(bench):
    bench.pack().replay(Run(outputs(logits=NEAR, extra=b"x")), environment=DRIFTED)
    report = bench.verify(allow=("environment-drift",))
    assert report.exit_status == 12
    assert "output-unexpected" in reasons(report)


def test_nothing_but_warnings_is_allowed_away(bench):
    bench.pack().replay(Run(outputs(logits=FAR)), environment=DRIFTED)
    assert bench.verify(allow=("environment-drift",)).exit_status == 10


CLAIMS = (
    Claim(name="main"),
    Claim(name="smoke", command=("python", "train.py")),
    Claim(name="ablation", command=("python", "train.py"), outputs=("out/logits.npy",)),
)


def with_claims(bench):
    bench.policy = msgspec.structs.replace(default_policy(), claims=CLAIMS)
    bench.claims = {"smoke": Run(), "ablation": Run()}
    return bench.pack()


def test_only_the_quick_claim_is_partial(bench):
    with_claims(bench).replay(claim="smoke", runs=3)
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("PARTIAL", 11)
    assert "the claim 'main' was not replayed" in reasons(report)


def test_a_claim_that_was_not_replayed_is_partial_the_quick_one_is_not_needed(bench):
    with_claims(bench).replay()
    report = bench.verify()
    assert report.verdict == "PARTIAL"
    assert "'ablation'" in reasons(report)
    assert "'smoke'" not in reasons(report)
    bench.replay(claim="ablation", runs=4)
    assert bench.verify().exit_status == 0


def test_a_claim_is_judged_by_its_own_outputs(bench):
    with_claims(bench).replay()
    changed = outputs(metrics=b'{"accuracy": 0.1}')
    bench.replay(Run(changed, {"claim": "ablation", "runs": 4}))
    report = bench.verify()
    assert report.exit_status == 0
    excluded = found(report, "output-excluded")
    assert excluded[0].reason == "it belongs to another claim"


def test_all_passes_of_one_replay_decide_together(bench):
    bench.pack().replay()
    bench.replay(Run(outputs(logits=FAR)), runs=2, pass_name="repeat")
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert [one.exit_status for one in report.judgements] == [0, 10]


def test_the_newest_replay_decides_and_an_older_no_is_not_forgotten(bench):
    bench.pack().replay(Run(outputs(logits=FAR)), occasion="1" * 16)
    assert bench.verify().exit_status == 10
    bench.replay(occasion="2" * 16)
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("REPRODUCED WITH WARNINGS", 12)
    assert "replays-disagree" in reasons(report)
    assert bench.verify(allow=("replays-disagree",)).exit_status == 0


def test_one_replay_can_be_asked_for_by_the_start_of_its_id(bench):
    first = bench.pack().replay(Run(outputs(logits=FAR)), occasion="1" * 16)
    bench.replay(occasion="2" * 16)
    report = bench.verify(replay=first[:12])
    assert [one.replay for one in report.judgements] == [first]
    assert report.exit_status == 10
    for wrong in (first[:3], "0" * 12):
        with pytest.raises(BadCallError, match="replays match"):
            bench.verify(replay=wrong)


def test_a_replay_that_travels_alone_is_judged_without_being_attached(bench):
    alone = bench.pack().replay_alone(Run(outputs(logits=FAR)))
    report = bench.verify(replay_file=alone)
    assert report.verdict == "NOT REPRODUCED"
    assert bench.verify().verdict == "INTACT, NOT YET REPLAYED"


def test_a_damaged_replay_file_is_unreadable_by_its_name(bench, tmp_path):
    alone = tmp_path / "mine.rpr.zip"
    alone.write_bytes(b"PK\x03\x04 nonsense")
    report = bench.pack().verify(replay_file=alone)
    assert (report.verdict, report.exit_status) == ("UNREADABLE", 21)
    assert "mine.rpr.zip" in reasons(report)


LIGHT = """
import sys
from pathlib import Path
from reprobundle.verify.verify import verify_bundle
report = verify_bundle(Path(sys.argv[1]), integrity_only=True)
heavy = {"numpy", "rich", "zstandard", "jsonschema", "torch", "safetensors"}
print(report.verdict, sorted(heavy & set(sys.modules)))
"""


def test_integrity_imports_nothing_heavy(bench):
    bench.pack().replay()
    done = subprocess.run(
        [sys.executable, "-c", LIGHT, str(bench.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "INTACT []\n"


def test_judging_imports_no_torch(bench):
    bench.pack().replay(Run(outputs(logits=NEAR)))
    code = LIGHT.replace(", integrity_only=True", "").replace('"numpy", ', "")
    done = subprocess.run(
        [sys.executable, "-c", code, str(bench.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "REPRODUCED, within tolerance []\n"


def test_a_file_that_is_not_there_is_a_bad_call(tmp_path):
    from reprobundle.verify.verify import verify_bundle

    with pytest.raises((BadCallError, EnvironmentUnusableError)) as caught:
        verify_bundle(tmp_path / "missing.rpb.zip")
    assert caught.value.exit_status == 20


def test_every_finding_of_a_full_report_is_in_the_table(bench):
    bench.pack().replay()
    report = bench.verify()
    everything = [*report.findings, *report.judgements[0].findings]
    assert {one.id for one in everything} <= set(ITEMS)
    assert all(one.check == ITEMS[one.id].check for one in everything)


@pytest.mark.parametrize("told", ["", "hello", "ab" * 31, "ab" * 32 + "0", "xy" * 32])
def test_what_is_no_whole_id_is_a_bad_call_and_never_green(bench, told):
    bench.pack().replay()
    with pytest.raises(BadCallError, match="64 hexadecimal digits"):
        bench.verify(expect_id=told)


def test_a_replay_that_never_began_is_not_said_to_have_done_otherwise(bench):
    stopped = Outcome(exit_status=0, completed=False, stop="platform", stop_detail="x")
    bench.pack().replay(outcome=stopped, processes=(), phases=(), reads=())
    report = bench.verify()
    assert report.verdict == "NOT RUN HERE"
    names = {one.id for one in report.judgements[0].findings if one.outcome == "warn"}
    assert not names & {"same-steps", "seed-calls", "reduced-input"}
