"""The vectors of the checks V8 to V23: what replays come to, and with which word.

Most are replay files for one bundle, the one that nobody has replayed.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.conformance import verdict_files as files
from tests.conformance.case import Case, Result
from tests.conformance.documents import (
    ENVIRONMENT,
    INPUT,
    OUTPUT,
    RECORD,
    Array,
    Sampled,
    SampledRows,
    Withheld,
    fact,
    failure,
    files_digest,
    input_read,
    phase,
    tolerance,
)
from tests.conformance.verdict_files import FAR, NAN, NEAR

BIT_IDENTICAL = "REPRODUCED, bit-identical"
WITHIN = "REPRODUCED, within tolerance"
WARNED = "REPRODUCED WITH WARNINGS"
DIFFERS = "NOT REPRODUCED"

UNREPLAYED = "verdict/not_yet_replayed_fail"
FAILING = "verdict/same_failure"
HOLDS_NAN = "verdict/nan_in_same_places"


def _case(
    name: str,
    check: str,
    result: Result,
    verdict: str,
    comment: str,
    make: Callable[[], bytes],
    *,
    arguments: tuple[str, ...] = (),
    bundle: str = UNREPLAYED,
) -> Case:
    """Return a case that is a replay file for another case's bundle."""
    return Case(
        "verdict", name, check, result, verdict, comment, make, arguments, bundle
    )


def _own(
    name: str,
    check: str,
    result: Result,
    verdict: str,
    comment: str,
    make: Callable[[], bytes],
) -> Case:
    """Return a case that is a bundle of its own."""
    return _case(name, check, result, verdict, comment, make, bundle="")


OUTPUTS_CASES = (
    _own(
        "not_yet_replayed",
        "V20",
        "invalid",
        "INTACT, NOT YET REPLAYED",
        "Whole and complete; nobody has replayed it. Other vectors are its replays.",
        lambda: files.unreplayed().forge().build(),
    ),
    _case(
        "bit_identical",
        "V17",
        "valid",
        BIT_IDENTICAL,
        "The replay gave the same bytes. No repeat pass was made, which takes nothing "
        "from the verdict.",
        files.alone(),
    ),
    _case(
        "within_tolerance",
        "V17",
        "valid",
        WITHIN,
        "The example of section 8.1: 2.000004 where the reference has 2.",
        files.alone({"logits.npy": NEAR}),
    ),
    _case(
        "outside_tolerance",
        "V17",
        "invalid",
        DIFFERS,
        "2.00002 where the reference has 2; the bound is 1.26e-5.",
        files.alone({"logits.npy": FAR}),
    ),
    _case(
        "number_outside_tolerance",
        "V17",
        "invalid",
        DIFFERS,
        "A decimal number of a JSON document is outside the rule for `number`.",
        files.alone({OUTPUT: b'{"accuracy": 0.9376}\n'}),
    ),
    _case(
        "scalar_against_vector",
        "V17",
        "invalid",
        DIFFERS,
        "An array of shape (1,) where the reference has shape (), with the same value.",
        files.alone({"loss.npy": Array((0.5,))}),
    ),
    _own(
        "nan_in_same_places",
        "V17",
        "warning",
        WARNED,
        "NaN in the same place on both sides is equal, and is reported.",
        files.attached(files.with_nan()),
    ),
    _case(
        "nan_in_other_places",
        "V17",
        "invalid",
        DIFFERS,
        "One NaN on each side, in two places.",
        files.alone({"logits.npy": Array((1.0, 3.0, NAN))}, of=files.with_nan),
        bundle=HOLDS_NAN,
    ),
    _own(
        "withheld_output_equal_by_digest",
        "V17",
        "warning",
        WARNED,
        "Nobody can look for NaN or zeros in an output whose author keeps it.",
        files.withheld(Withheld()),
    ),
    _own(
        "withheld_output_differs",
        "V17",
        "invalid",
        "INCOMPLETE",
        "The digests of a withheld output differ; whether its values do is not known.",
        files.withheld(Withheld((1.0, 2.0, 3.0))),
    ),
    _case(
        "missing_output",
        "V16",
        "invalid",
        DIFFERS,
        "An output of the reference did not come out.",
        files.alone({OUTPUT: None}),
    ),
    _case(
        "unexpected_output",
        "V16",
        "warning",
        WARNED,
        "An output came out that the reference does not have.",
        files.alone({"z.json": b"1\n"}),
    ),
)

PROTOCOL = (
    _case(
        "other_files",
        "V12",
        "invalid",
        DIFFERS,
        "The replay started from other files.",
        files.alone(files_digest=files_digest({"a.py": b"", "x.csv": INPUT})),
    ),
    _case(
        "other_command",
        "V12",
        "invalid",
        DIFFERS,
        "The replay ran with another argument.",
        files.alone(command=files.command(argv=["python", "a.py", "--fast"])),
    ),
    _case(
        "other_seed",
        "V12",
        "invalid",
        DIFFERS,
        "The replay was started with another seed.",
        files.alone(command=files.command(seed=1), randomness={"seed": 1}),
    ),
    _own(
        "other_start",
        "V12",
        "warning",
        WARNED,
        "The replay began with other weights, and its logits differ in a last digit.",
        files.attached(
            files.begun(),
            {"logits.npy": NEAR},
            randomness=files.began("11" * 8),
        ),
    ),
    _case(
        "skipped_steps",
        "V12",
        "warning",
        WARNED,
        "The replay made optimizer steps, the reference made none.",
        files.alone(phases=[phase(), phase(name="optimizer")]),
    ),
    _case(
        "other_input",
        "V12",
        "invalid",
        DIFFERS,
        "The replay read other content under the same name.",
        files.alone(reads=[{**input_read(b"1\n3\n"), "member": ""}]),
    ),
    _case(
        "reduced_input",
        "V12",
        "warning",
        WARNED,
        "The replay did not read an input of the reference. Its warning cannot be "
        "allowed away.",
        files.alone(reads=[]),
        arguments=("--allow", "reduced-input"),
    ),
    _case(
        "standin_data",
        "V12",
        "invalid",
        "PARTIAL",
        "The replay says that its data stands in for the real ones.",
        files.alone(remarks=files.remark("standin-data", "warning")),
    ),
    _case(
        "no_such_run",
        "V12",
        "invalid",
        DIFFERS,
        "The replay stands against a sealed run that there is not.",
        files.alone(runs=9),
    ),
    _case(
        "python_not_entered",
        "V13",
        "warning",
        WARNED,
        "A Python process ran without the recorder.",
        files.alone(processes=[files.process(1), files.process(2, entered=False)]),
    ),
    _case(
        "nothing_entered",
        "V13",
        "invalid",
        "INCOMPLETE",
        "The recorder was in no process, so nothing is known of the run.",
        files.alone(processes=[files.process(1, entered=False)]),
    ),
    _case(
        "masked_failure",
        "V13",
        "invalid",
        DIFFERS,
        "A Python process failed, and the command ended with status 0.",
        files.alone(
            processes=[files.process(1), files.process(2, exit_status=3)],
            remarks=files.remark("masked-failure", "failure"),
        ),
    ),
)

ENDING = (
    _case(
        "command_failed",
        "V14",
        "invalid",
        DIFFERS,
        "The replayed command ended with status 1.",
        files.alone(outcome={"exit_status": 1}),
    ),
    _case(
        "interrupted",
        "V14",
        "invalid",
        "INCOMPLETE",
        "The replay was interrupted.",
        files.alone(outcome=files.unfinished("interrupted")),
    ),
    _case(
        "stopped",
        "V14",
        "invalid",
        "NOT RUN HERE",
        "The replay stopped because an operator is missing on its device.",
        files.alone(outcome=files.unfinished("operator")),
    ),
    _own(
        "same_failure",
        "V14",
        "valid",
        BIT_IDENTICAL,
        "An error is the result; the attached replay gave the same one.",
        files.attached(files.failing()),
    ),
    _case(
        "different_failure",
        "V14",
        "invalid",
        "DIFFERENT FAILURE",
        "An error was expected, and another one came.",
        files.alone(of=files.failing, outcome=failure("division by zero")),
        bundle=FAILING,
    ),
    _case(
        "failure_did_not_happen",
        "V14",
        "invalid",
        DIFFERS,
        "An error was expected, and the command succeeded.",
        files.alone(of=files.failing, outcome={"exit_status": 0}),
        bundle=FAILING,
    ),
)

DEVICES = (
    _case(
        "device_not_used",
        "V15",
        "invalid",
        "INCOMPLETE",
        "CUDA was asked for; tensors were seen on the CPU only.",
        files.alone(devices={**RECORD["devices"], "requested": "cuda"}),
    ),
    _case(
        "fallback_seen",
        "V15",
        "warning",
        WARNED,
        "Operators of MPS ran on the CPU. This warning cannot be allowed away.",
        files.alone(**files.mps(fallback="seen", reason="aten::foo")),
        arguments=("--allow", "cpu-fallback"),
    ),
    _case(
        "fallback_not_checked",
        "V15",
        "invalid",
        "INCOMPLETE",
        "Whether operators of MPS ran on the CPU is not known.",
        files.alone(**files.mps(fallback="not-checked", reason="not traced")),
    ),
    _case(
        "stand_in",
        "V15",
        "warning",
        WARNED,
        "A stand-in took the place of MPS on Linux. This warning cannot be allowed "
        "away.",
        files.alone(**{**files.mps(standin=True), "platform": "linux"}),
        arguments=("--allow", "standin-device"),
    ),
    _case(
        "device_mapped",
        "V15",
        "warning",
        WARNED,
        "The replay ran with the calls that name CUDA mapped to the CPU.",
        files.alone(devices=files.mapped()),
    ),
    _own(
        "other_platform",
        "V15",
        "invalid",
        "NOT DECIDABLE HERE",
        "The result counts on macos-mps only; the attached replay ran on linux-cpu.",
        files.attached(files.small(intent={"accepting_platforms": ["macos-mps"]})),
    ),
    _case(
        "environment_drift",
        "V18",
        "warning",
        WARNED,
        "Another version of torch, and values that are not bit-identical.",
        files.alone(
            {"logits.npy": NEAR},
            environment={**ENVIRONMENT, "torch.version": fact("2.12.1")},
        ),
    ),
    _case(
        "unsynchronised_timing",
        "V19",
        "warning",
        WARNED,
        "A phase was timed without waiting for the device.",
        files.alone(phases=[phase(synchronized="none")]),
    ),
    _case(
        "unsynchronised_timing_allowed",
        "V19",
        "valid",
        BIT_IDENTICAL,
        "The same, and the caller accepts this warning by name.",
        files.alone(phases=[phase(synchronized="none")]),
        arguments=("--allow", "unsynchronised-timing"),
    ),
    _case(
        "half_synchronised_timing",
        "V19",
        "warning",
        WARNED,
        "On MPS one of two clock readings had no wait before it.",
        files.alone(**{**files.mps(), "phases": [files.half_waited()]}),
    ),
    _case(
        "self_check_contradicts_itself",
        "V19",
        "warning",
        WARNED,
        "The same entries took longer without the last wait than with it.",
        files.alone(**{**files.mps(), "phases": [files.contradicting()]}),
    ),
    _own(
        "memory_limits",
        "V21",
        "warning",
        WARNED,
        "The replay's allocator had another limit: the memory logs are not comparable.",
        files.attached(
            files.with_memory(),
            memory={**files.LOG, "limits": {"PYTORCH_CUDA_ALLOC_CONF": "x"}},
        ),
    ),
    _own(
        "memory_growth",
        "V21",
        "warning",
        WARNED,
        "The replay's memory grows in every step, the reference's did not.",
        files.attached(files.with_memory(), memory={**files.LOG, "course": "linear"}),
    ),
    _own(
        "memory_course_unknown",
        "V21",
        "valid",
        BIT_IDENTICAL,
        "The replay was too short to say whether its memory grows: not checked.",
        files.attached(
            files.with_memory(), memory={**files.LOG, "course": "not-classified"}
        ),
    ),
)

SAMPLES = (
    _own(
        "sample_within_tolerance",
        "V17",
        "valid",
        WITHIN,
        "Both sides kept a sample; 2.000004 where the reference has 2.",
        files.sampled(Sampled(NEAR.values)),
    ),
    _own(
        "sample_outside_tolerance",
        "V17",
        "invalid",
        DIFFERS,
        "Both sides kept a sample; 2.00002 where the reference has 2.",
        files.sampled(Sampled(FAR.values)),
    ),
    _own(
        "moments_beside_a_sample_differ",
        "V17",
        "invalid",
        DIFFERS,
        "The sampled values are within tolerance, and the summary of the whole array "
        "states another maximum.",
        files.sampled(Sampled(NEAR.values, told={"maximum": 3.0})),
    ),
    _own(
        "nan_count_beside_a_sample_differs",
        "V17",
        "invalid",
        DIFFERS,
        "The sampled values are within tolerance, and the summary of the whole array "
        "counts one NaN.",
        files.sampled(Sampled(NEAR.values, told={"nan": 1})),
    ),
    _own(
        "sample_of_another_policy",
        "V6",
        "invalid",
        "TAMPERED",
        "The replay's sample was taken at the places that another policy decides.",
        files.sampled(Sampled(NEAR.values, key="0" * 64)),
    ),
    _own(
        "rows_within_tolerance",
        "V17",
        "valid",
        WITHIN,
        "Both sides kept rows of a table; 1.500001 where the reference has 1.5.",
        files.sampled_rows(SampledRows((2.0, 1.500001, 1.25))),
    ),
    _own(
        "rows_outside_tolerance",
        "V17",
        "invalid",
        DIFFERS,
        "Both sides kept rows of a table; 1.6 where the reference has 1.5.",
        files.sampled_rows(SampledRows((2.0, 1.6, 1.25))),
    ),
    _own(
        "rows_of_another_count",
        "V17",
        "invalid",
        DIFFERS,
        "Both sides kept rows of a table; the replay's has one row more.",
        files.sampled_rows(SampledRows((2.0, 1.5, 1.25, 1.25))),
    ),
    _own(
        "text_beside_rows_differs",
        "V17",
        "invalid",
        DIFFERS,
        "Both sides kept rows of a table; another text stands in one column.",
        files.sampled_rows(SampledRows(tag="b")),
    ),
    _own(
        "moments_beside_rows_differ",
        "V17",
        "invalid",
        DIFFERS,
        "The sampled rows are within tolerance, and what is told of all rows states "
        "another maximum.",
        files.sampled_rows(SampledRows((2.0, 1.500001, 1.25), told={"maximum": 3.0})),
    ),
    _own(
        "rows_missing_from_sample",
        "V17",
        "invalid",
        "INCOMPLETE",
        "The replay's sample holds one row less than its record says.",
        files.sampled_rows(SampledRows((2.0, 1.500001, 1.25), held=2)),
    ),
    _own(
        "rows_of_another_policy",
        "V6",
        "invalid",
        "TAMPERED",
        "The replay's rows were taken at the places that another policy decides.",
        files.sampled_rows(SampledRows((2.0, 1.500001, 1.25), key="0" * 64)),
    ),
)

BUNDLE_CASES = (
    _own(
        "judged_by_its_own_device",
        "V11",
        "warning",
        WARNED,
        "Runs on CUDA and on the CPU are sealed and differ; the replay on the CPU "
        "equals its own.",
        files.attached(
            files.on_two_devices(),
            {OUTPUT: b'{"accuracy": 0.5}\n'},
            devices=files.used("cpu"),
        ),
    ),
    _own(
        "references_agree",
        "V11",
        "valid",
        BIT_IDENTICAL,
        "Runs on CUDA and on the CPU are sealed and agree; so does a replay on CUDA.",
        files.attached(files.agreeing_on_two_devices(), devices=files.used("cuda")),
    ),
    _own(
        "reference_chosen_by_the_replay",
        "V12",
        "invalid",
        DIFFERS,
        "A replay on CUDA names the run on the CPU, which it equals, and not its own.",
        files.attached(
            files.on_two_devices(),
            {OUTPUT: b'{"accuracy": 0.5}\n'},
            devices=files.used("cuda"),
            runs=2,
        ),
    ),
    _own(
        "linux_reference_attached",
        "V9",
        "valid",
        BIT_IDENTICAL,
        "Packed on a Mac; an attached record made on Linux is marked as the reference.",
        files.linux_reference(),
    ),
    _own(
        "linux_reference_differs",
        "V17",
        "warning",
        WARNED,
        "Packed on a Mac; a replay equals the origin and not the Linux reference that "
        "is attached.",
        files.beside_linux(),
    ),
    _own(
        "linux_reference_unmarked",
        "V9",
        "invalid",
        "INCOMPLETE",
        "Packed on a Mac; the attached record made on Linux is marked by nobody.",
        files.linux_reference(reference_by=""),
    ),
    _own(
        "linux_reference_copied",
        "V9",
        "invalid",
        "INCOMPLETE",
        "The marked record took the time of the origin to the nanosecond: a copy.",
        files.linux_reference(elapsed_ns=RECORD["elapsed_ns"]),
    ),
    _own(
        "linux_reference_relabelled",
        "V9",
        "invalid",
        "INCOMPLETE",
        "The marked record says linux, and its environment Darwin.",
        files.linux_reference(environment={**ENVIRONMENT, "os.system": fact("Darwin")}),
    ),
    _own(
        "linux_reference_of_another_claim",
        "V9",
        "invalid",
        DIFFERS,
        "The marked record serves another claim than the reference.",
        files.linux_reference(claim="another"),
    ),
    _case(
        "copied_replay",
        "V12",
        "invalid",
        "INCOMPLETE",
        "The replay took the time of the reference to the nanosecond: a copy.",
        files.alone(elapsed_ns=RECORD["elapsed_ns"]),
    ),
    _case(
        "replay_in_the_future",
        "V12",
        "warning",
        WARNED,
        "The replay started in the year 9000.",
        files.alone(started="9000-01-01T00:00:00Z"),
    ),
    _case(
        "no_measured_pass",
        "V20",
        "invalid",
        "PARTIAL",
        "The replay's only record is that of a traced pass.",
        files.alone(pass_name="evidence", phases=[]),
    ),
    _own(
        "copied_repeat_pass",
        "V11",
        "invalid",
        "INCOMPLETE",
        "The repeat pass took the time of the reference to the nanosecond.",
        files.attached(files.repeat_copied()),
    ),
    _case(
        "environment_unknown",
        "V18",
        "invalid",
        "INCOMPLETE",
        "The outputs differ within the tolerance, and the replay's environment is "
        "not known.",
        files.alone({"logits.npy": NEAR}, environment={}),
    ),
    _own(
        "vacuous_bound",
        "V8",
        "warning",
        WARNED,
        "A rule of the author's own admits zeros in the place of every value.",
        files.attached(files.bound_beyond_values()),
    ),
    _own(
        "vacuous_tolerance",
        "V8",
        "warning",
        WARNED,
        "The policy admits errors as large as the values.",
        files.attached(files.small(tolerances=[tolerance("float32", rtol=1.0)])),
    ),
    _own(
        "reference_interrupted",
        "V11",
        "invalid",
        "INCOMPLETE",
        "The reference did not come to its end; the attached replay did.",
        files.attached(
            files.recorded(outcome={"exit_status": 0, "completed": False}),
            outcome={"exit_status": 0},
        ),
    ),
    _own(
        "repeat_differs",
        "V11",
        "warning",
        WARNED,
        "The repeat pass is outside the tolerance; the attached replay is not.",
        files.attached(files.repeat_differs()),
    ),
    _own(
        "restart_differs",
        "V22",
        "warning",
        WARNED,
        "Stopped after a checkpoint and resumed, the author's run gave another result.",
        files.attached(files.restarted(b"0.5")),
    ),
    _own(
        "restart_resumed_nothing",
        "V22",
        "invalid",
        "INCOMPLETE",
        "The restart pass says itself that nothing was resumed.",
        files.attached(files.restarted(b"0.75", reason="it began anew")),
    ),
    _own(
        "truth_whole",
        "V23",
        "valid",
        "REPRODUCED, bit-identical",
        "A float64 run in which nothing was left short: it decides nothing.",
        files.attached(files.with_truth()),
    ),
    _own(
        "truth_left_short",
        "V23",
        "valid",
        "REPRODUCED, bit-identical",
        "A float64 run with an operator in float32 is no truth, and decides nothing.",
        files.attached(
            files.with_truth({"operator": "add.Tensor", "why": "short", "count": 1})
        ),
    ),
    _own(
        "claim_not_replayed",
        "V20",
        "invalid",
        "PARTIAL",
        "One of two claims was replayed.",
        files.attached(files.two_claims()),
    ),
    _case(
        "experiment",
        "V20",
        "invalid",
        "INTACT, NOT YET REPLAYED",
        "The only run beside the seal is one side of a pair: it decides nothing.",
        files.alone(experiment={"id": "ab" * 8, "side": "A"}),
    ),
    _case(
        "experiment_without_mark",
        "V20",
        "invalid",
        "INTACT, NOT YET REPLAYED",
        "A run that says what it was asked to do otherwise, without the mark.",
        files.alone(environment={**ENVIRONMENT, "asked.threads": fact("1")}),
    ),
    _case(
        "older_replay_disagrees",
        "V20",
        "warning",
        WARNED,
        "The newest replay decides; an older one that says no is not forgotten.",
        files.newer_says_yes,
    ),
)

CASES = (*OUTPUTS_CASES, *PROTOCOL, *ENDING, *DEVICES, *SAMPLES, *BUNDLE_CASES)
