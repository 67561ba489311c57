"""Whether a replay was the same run, ended alike and was watched."""

import msgspec
import pytest

from reprobundle.format.digests import digest_bytes
from reprobundle.format.record import (
    Command,
    Devices,
    Fact,
    FileRead,
    Outcome,
    Phase,
    Process,
    Randomness,
    Remark,
    SeedCall,
)
from reprobundle.verify.protocol import check_protocol
from tests.verify.builder import (
    DATA,
    DRIFTED,
    ENVIRONMENT,
    ERROR,
    FAILED,
    NEAR,
    Run,
    found,
    outputs,
    reasons,
)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"files_digest": "cd" * 32}, "same-files"),
        ({"command": Command(argv=("python", "other.py"), seed=0)}, "same-command"),
        (
            {"command": Command(argv=("python", "train.py", "--epochs", "1"), seed=0)},
            "same-command",
        ),
        (
            {
                "command": Command(
                    argv=("python", "train.py"), seed=0, working_directory="x"
                )
            },
            "same-command",
        ),
        (
            {
                "command": Command(
                    argv=("python", "train.py"),
                    seed=0,
                    environment={"OMP_NUM_THREADS": "1"},
                )
            },
            "same-command",
        ),
        ({"command": Command(argv=("python", "train.py"), seed=1)}, "same-seed"),
        (
            {
                "reads": (
                    FileRead(
                        path="project:data.csv",
                        member="inputs/data.csv",
                        size_bytes=1,
                        blake3="0" * 64,
                    ),
                )
            },
            "same-inputs",
        ),
        ({"runs": 7}, "same-run"),
        ({"claim": "other"}, "same-run"),
        ({"pass_name": "repeat"}, "same-run"),
    ],
)
def test_a_replay_of_something_else_is_not_reproduced(bench, changes, name):
    bench.pack().replay(**changes)
    report = bench.verify()
    assert found(report, name, "fail")
    assert report.judgements[0].verdict == "NOT REPRODUCED"
    assert report.exit_status == 10


def test_unread_inputs_are_reduced_input_and_can_never_be_allowed(bench):
    bench.pack().replay(reads=())
    report = bench.verify(allow=("reduced-input",))
    assert (report.verdict, report.exit_status) == ("REPRODUCED WITH WARNINGS", 12)
    assert "can never be allowed" in found(report, "reduced-input", "warn")[0].advice


def test_a_few_unread_inputs_are_named_and_the_rest_is_counted(bench):
    reads = tuple(
        FileRead(
            path=f"project:shard{n}",
            member="inputs/data.csv",
            size_bytes=len(DATA),
            blake3=digest_bytes(DATA),
        )
        for n in range(5)
    )
    bench.reference = Run(changes={"reads": reads})
    bench.repeat = None
    bench.pack().replay(reads=reads[3:])
    (three,) = found(bench.verify(), "reduced-input", "warn")
    assert three.reason.endswith("shard0, project:shard1, project:shard2")
    bench.replay(reads=reads[4:], occasion="9" * 16)
    four = found(bench.verify(), "reduced-input", "warn")[-1]
    assert four.reason.endswith("shard2 and 1 more")


def test_other_seeds_inside_the_script_are_a_warning(bench):
    bench.pack()
    record, _ = bench.replay_tree()
    calls = (msgspec.structs.replace(record.randomness.calls[0], value="17"),)
    bench.replay(randomness=msgspec.structs.replace(record.randomness, calls=calls))
    report = bench.verify()
    assert found(report, "seed-calls", "warn")[0].got == "torch.manual_seed(17)"


def test_seeds_that_a_worker_process_sets_are_its_own_business(bench):
    worker = SeedCall(function="random.seed", value="99", where="w.py:1", pid=7)
    bench.pack()
    record, _ = bench.replay_tree()
    calls = (*record.randomness.calls, worker)
    bench.replay(randomness=msgspec.structs.replace(record.randomness, calls=calls))
    assert bench.verify().exit_status == 0


@pytest.mark.parametrize(
    ("there", "origin", "outcome"),
    [
        ("--w=/tmp/x/bundle/external/1/w.bin", "~/models/w.bin", "pass"),
        ("--w=/home/b/models/w.bin", "~/models/w.bin", "pass"),
        ("--v=/tmp/x/bundle/external/1/w.bin", "~/models/w.bin", "fail"),
        ("--w=/tmp/x/other.bin", "~/models/w.bin", "fail"),
        ("--w=/tmp/x/other.bin", "", "fail"),
    ],
)
def test_only_a_file_outside_the_project_may_lie_elsewhere(
    bench, there, origin, outcome
):
    read = FileRead(
        path="external:1/w.bin",
        member="external/1/w.bin",
        origin=origin,
        size_bytes=1,
        blake3="",
    )
    bench.pack()
    base, _ = bench.replay_tree()
    left, right = (
        msgspec.structs.replace(
            base, command=Command(argv=("python", argument), seed=0), reads=(read,)
        )
        for argument in ("--w=/home/a/models/w.bin", there)
    )
    outcomes = {one.id: one.outcome for one in check_protocol(left, right)}
    assert outcomes["same-command"] == outcome


def failing(bench):
    bench.reference = Run({}, {"outcome": FAILED})
    bench.repeat = Run({}, {"outcome": FAILED})
    return bench.pack()


def failure(**changes):
    error = msgspec.structs.replace(ERROR, **changes)
    return msgspec.structs.replace(FAILED, error=error)


def test_the_same_expected_failure_is_reproduced(bench):
    failing(bench).replay(Run({}), outcome=FAILED)
    assert bench.verify().verdict == "REPRODUCED, bit-identical"


def test_the_same_failure_in_another_environment_is_reproduced(bench):
    failing(bench).replay(Run({}), outcome=FAILED, environment=DRIFTED)
    report = bench.verify()
    assert report.exit_status == 0
    assert "torch.version" in found(report, "environment-drift", "pass")[0].reason


def test_a_message_that_differs_only_where_it_is_masked_is_the_same_failure(bench):
    outcome = failure(message="out of memory: 99 MB")
    failing(bench).replay(Run({}), outcome=outcome)
    assert bench.verify().verdict == "REPRODUCED, within tolerance"


def test_success_in_place_of_the_expected_failure_is_not_reproduced(bench):
    failing(bench).replay(Run({}), outcome=Outcome(exit_status=0))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("NOT REPRODUCED", 10)
    assert "expected-failure" in reasons(report)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"type": "ModuleNotFoundError"}, "another error type"),
        ({"masked": "shape mismatch"}, "another error message"),
        ({"where": "train.py:99"}, "another place"),
        ({"steps": 0}, "another number of steps"),
    ],
)
def test_another_failure_is_a_different_failure(bench, changes, words):
    failing(bench).replay(Run({}), outcome=failure(**changes))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("DIFFERENT FAILURE", 10)
    assert words in reasons(report)


def test_a_failure_without_a_python_error_is_another_failure(bench):
    killed = Outcome(exit_status=-9, expected_failure=True)
    failing(bench).replay(Run({}), outcome=killed)
    report = bench.verify()
    assert report.verdict == "DIFFERENT FAILURE"
    assert "no Python error, status -9" in found(report, "same-failure", "fail")[0].got


def test_a_command_that_fails_is_not_reproduced(bench):
    outcome = Outcome(exit_status=1, error=ERROR)
    bench.pack().replay(Run({}), outcome=outcome)
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "the command failed: RuntimeError: out of memory" in reasons(report)


@pytest.mark.parametrize(
    "stop", ["operator", "memory", "cuda_required", "dtype", "platform", "data"]
)
def test_a_known_stop_reason_is_not_run_here(bench, stop):
    outcome = Outcome(exit_status=0, completed=False, stop=stop, stop_detail="why")
    nowhere = Devices(reason="the command was not started")
    bench.pack().replay(Run({}), outcome=outcome, processes=(), devices=nowhere)
    report = bench.verify()
    assert report.judgements[0].device == ""
    assert (report.verdict, report.exit_status) == ("NOT RUN HERE", 11)
    assert f"{stop}: why" in reasons(report)


STOPPED = Outcome(exit_status=0, completed=False, stop="platform", stop_detail="why")


@pytest.mark.parametrize("outcome", [STOPPED, Outcome(exit_status=-2, completed=False)])
def test_a_replay_that_came_to_no_end_replayed_nothing(bench, outcome):
    bench.pack().replay(Run({}), outcome=outcome)
    report = bench.verify()
    for name, words in (("replayed", "no replay"), ("claim-replayed", "did not come")):
        (told,) = found(report, name)
        assert told.outcome == "not-checked"
        assert words in told.reason


def test_of_two_replays_the_one_that_ended_counts_and_the_newest_decides(bench):
    bench.pack().replay()
    bench.replay(Run({}), outcome=STOPPED, occasion="1" * 16)
    report = bench.verify()
    (told,) = found(report, "replayed", "pass")
    assert told.reason == "1 replay records; 1 more came to no end"
    assert found(report, "claim-replayed", "not-checked")
    assert report.verdict == "NOT RUN HERE"


def test_a_stop_on_a_device_names_that_device(bench):
    outcome = Outcome(exit_status=1, stop="memory", stop_detail="80 GB were not enough")
    seen = Devices(observed=("cuda",), fallback="none-possible", reason="x")
    bench.pack().replay(Run({}), outcome=outcome, devices=seen)
    judgement = bench.verify().judgements[0]
    assert (judgement.verdict, judgement.device) == ("NOT RUN HERE", "cuda")


@pytest.mark.parametrize("stop", ["", "interrupted"])
def test_an_interrupted_replay_is_incomplete_even_if_outputs_are_missing(bench, stop):
    outcome = Outcome(exit_status=-2, completed=False, stop=stop)
    bench.pack().replay(Run({}), outcome=outcome)
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    assert report.judgements[0].outputs == ()


def test_a_python_that_was_not_entered_is_a_warning(bench):
    processes = (
        Process(pid=1, kind="main", ended=True),
        Process(pid=2, argv=("python", "-I", "x.py"), entered=False),
    )
    bench.pack().replay(processes=processes)
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, "python-not-entered", "warn")[0].where == "python -I x.py"


def test_a_run_that_was_not_observed_at_all_is_incomplete(bench):
    bench.pack().replay(processes=(Process(pid=2, entered=False),))
    assert bench.verify().verdict == "INCOMPLETE"


@pytest.mark.parametrize(
    ("name", "severity", "finding", "verdict"),
    [
        ("network-used", "warning", "network-used", "REPRODUCED WITH WARNINGS"),
        ("masked-failure", "failure", "masked-failure", "NOT REPRODUCED"),
        ("anything-new", "failure", "run-failure", "INCOMPLETE"),
        ("anything-new", "warning", "run-warning", "REPRODUCED WITH WARNINGS"),
        ("network-used", "failure", "run-failure", "INCOMPLETE"),
        ("recorder-trouble", "gap", "run-gap", "REPRODUCED, bit-identical"),
        ("standin-data", "warning", "standin-data", "PARTIAL"),
        ("reduced-input", "warning", "reduced-input", "REPRODUCED WITH WARNINGS"),
    ],
)
def test_what_a_run_remarks_is_judged_by_its_severity(
    bench, name, severity, finding, verdict
):
    remark = Remark(id=name, severity=severity, text="it happened", where="x")
    bench.pack().replay(remarks=(remark,))
    report = bench.verify()
    assert report.verdict == verdict
    assert [one for one in found(report, finding) if one.outcome != "pass"]


def test_reading_outside_the_project_is_harmless_where_the_digests_are_known(bench):
    remark = Remark(
        id="read-outside-project", severity="warning", text="read", where="x"
    )
    unknown = FileRead(path="missing:x", size_bytes=0, blake3="")
    bench.pack()
    record, _ = bench.replay_tree()
    bench.replay(remarks=(remark,), occasion="1" * 16)
    assert bench.verify().exit_status == 0
    reads = (*record.reads, unknown)
    bench.replay(remarks=(remark,), reads=reads, occasion="2" * 16)
    assert bench.verify().exit_status == 12


def test_drift_with_different_outputs_is_a_warning_that_can_be_allowed(bench):
    bench.pack().replay(Run(outputs(logits=NEAR)), environment=DRIFTED)
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("REPRODUCED WITH WARNINGS", 12)
    assert "torch.version is 2.12.0+cpu, reference 2.13.0+cpu" in reasons(report)
    allowed = bench.verify(allow=("environment-drift",))
    assert (allowed.verdict, allowed.exit_status) == ("REPRODUCED, within tolerance", 0)
    assert reasons(allowed).startswith("allowed: environment-drift")
    assert found(allowed, "environment-drift")[0].allowed


def test_drift_that_changed_nothing_is_listed_and_takes_nothing(bench):
    bench.pack().replay(environment=DRIFTED)
    report = bench.verify()
    assert report.verdict == "REPRODUCED, bit-identical"
    assert report.judgements[0].environment[0].name == "torch.version"
    assert report.judgements[0].environment[0].grade == "numeric"


def test_facts_that_change_no_number_are_no_drift(bench):
    other = {**ENVIRONMENT, "machine.model": Fact(value="laptop", source="dmi")}
    bench.pack().replay(Run(outputs(logits=NEAR)), environment=other)
    report = bench.verify()
    assert report.exit_status == 0
    assert [d.grade for d in report.judgements[0].environment] == ["other"]


def test_a_replay_without_facts_is_not_checked_for_drift(bench):
    bench.pack().replay(Run(outputs(logits=NEAR)), environment={})
    assert "environment-drift" in bench.verify().not_checked


def optimized(steps):
    return Phase(
        name="optimizer",
        count=steps,
        total_ns=9,
        median_ns=1,
        longest_ns=2,
        synchronized="cpu",
    )


def test_a_traced_pass_made_no_fewer_steps_for_keeping_no_counts(bench):
    bench.reference = Run(changes={"phases": (optimized(184),)})
    bench.pack().replay(Run(), phases=(), pass_name="evidence")
    assert found(bench.verify(), "same-steps")[0].outcome == "not-applicable"


def test_a_replay_with_fewer_steps_is_told(bench):
    bench.reference = Run(changes={"phases": (optimized(184),)})
    bench.pack().replay(Run(), phases=(optimized(3),))
    (told,) = found(bench.verify(), "same-steps")
    assert (told.outcome, told.expected, told.got) == ("warn", "184", "3")


def test_a_replay_that_was_stopped_is_not_sent_to_look_for_lost_steps(bench):
    bench.reference = Run(changes={"phases": (optimized(184),)})
    stop = Outcome(exit_status=1, completed=False, stop="operator", stop_detail="x")
    bench.pack().replay(Run(), phases=(optimized(3),), outcome=stop)
    report = bench.verify()
    (told,) = found(report, "same-steps")
    assert (told.outcome, told.advice) == ("not-checked", "")
    assert told.reason == "the replay was stopped after 3 of 184 optimizer steps"
    assert report.verdict == "NOT RUN HERE"


PIPE = Remark(id="masked-failure", severity="warning", text="status 1", where="run.py")
FAILED_INSIDE = (Process(pid=1, kind="main", ended=True, exit_status=1),)


def test_a_failure_behind_status_zero_that_the_reference_lacks_is_a_no(bench):
    bench.pack().replay(remarks=(PIPE,), processes=FAILED_INSIDE)
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "in the reference none failed" in report.reasons[0]
    assert report.judgements[0].causes[0].id == "masked-failure"


def test_one_that_the_reference_has_too_is_a_warning(bench):
    bench.reference.changes = {"remarks": (PIPE,), "processes": FAILED_INSIDE}
    bench.pack().replay(remarks=(PIPE,), processes=FAILED_INSIDE)
    assert bench.verify().verdict == "REPRODUCED WITH WARNINGS"


def test_seed_calls_do_not_depend_on_which_process_of_a_pipeline_came_first(bench):
    def run(first, second):
        processes = tuple(
            msgspec.convert(
                {"pid": pid, "parent_pid": 9, "kind": kind, "ended": True}, Process
            )
            for pid, kind in ((first, "main"), (second, "python"))
        )
        call = SeedCall(function="torch.manual_seed", value="0", where="a.py:1", pid=1)
        return Run(
            changes={
                "processes": processes,
                "randomness": Randomness(seed=0, calls=(call,)),
            }
        )

    bench.reference = bench.repeat = bench.evidence = run(1, 2)
    bench.pack().replay(run(2, 1))
    assert found(bench.verify(), "seed-calls", "pass")
