"""What outputs mean for the verdict, among them the classic false passes."""

import msgspec
import numpy as np
import pytest

from reprobundle.format.canonical import encode
from reprobundle.format.policy import (
    DtypeTolerance,
    OutputRule,
    Policy,
    Tolerance,
)
from reprobundle.verify.defaults import default_policy
from tests.outputs import files
from tests.verify.builder import (
    FAR,
    LOGITS,
    NEAR,
    VALUES,
    Run,
    found,
    npy,
    outputs,
    reasons,
)


def test_a_value_outside_the_tolerance_is_not_reproduced(bench):
    bench.pack().replay(Run(outputs(logits=FAR)))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("NOT REPRODUCED", 10)
    assert "output-differs (out/logits.npy)" in reasons(report)
    assert "outside the tolerance" in reasons(report)


def test_a_missing_output_is_not_reproduced(bench):
    bench.pack().replay(Run(outputs(logits=None)))
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "output-missing (out/logits.npy)" in reasons(report)


def test_a_replay_without_any_output_is_not_reproduced(bench):
    bench.pack().replay(Run({}))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_an_additional_output_is_a_warning(bench):
    bench.pack().replay(Run(outputs(extra=b"x")))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("REPRODUCED WITH WARNINGS", 12)
    assert found(report, "output-unexpected")[0].where == "extra"


def test_skipped_steps_are_not_reproduced(bench):
    bench.reference = Run({"loss.csv": b"step,loss\n1,2.5\n2,1.5\n3,0.5\n"})
    bench.repeat = Run({"loss.csv": b"step,loss\n1,2.5\n2,1.5\n3,0.5\n"})
    bench.pack().replay(Run({"loss.csv": b"step,loss\n1,2.5\n2,1.5\n"}))
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "2 rows, expected 3" in reasons(report)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (np.array([1.0, np.nan]), "nan-in-output"),
        (np.zeros(5), "output-all-zero"),
        (np.zeros((0, 5)), "output-empty"),
    ],
)
def test_agreement_that_says_little_is_a_warning(bench, values, name):
    same = {"a.npy": npy(values)}
    bench.reference, bench.repeat = Run(dict(same)), Run(dict(same))
    bench.pack().replay(Run(dict(same)))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, name, "warn")[0].where == "a.npy"


def test_nan_is_reported_too_where_the_bytes_differ(bench):
    bench.reference = Run({"a.npy": npy(np.array([1.0, np.nan]))})
    bench.repeat = None
    bench.pack().replay(Run({"a.npy": npy(np.array([1.0 + 1e-9, np.nan]))}))
    report = bench.verify()
    assert "1 places" in found(report, "nan-in-output", "warn")[0].reason


def test_an_empty_output_file_is_a_warning(bench):
    bench.reference, bench.repeat = Run({"acc.txt": b""}), None
    bench.pack().replay(Run({"acc.txt": b""}))
    assert found(bench.verify(), "output-empty", "warn")


def test_a_shape_without_axes_is_another_shape(bench):
    bench.reference, bench.repeat = Run({"a.npy": npy(np.float32(1.5))}), None
    bench.pack().replay(Run({"a.npy": npy(np.array([1.5], "f4"))}))
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "shape [1], expected []" in reasons(report)


def test_another_format_under_the_same_name_is_not_reproduced(bench):
    bench.pack().replay(Run(outputs(logits=b"x,y\n1,2\n")))
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert "format text, expected npy" in reasons(report)


def test_a_damaged_output_is_not_reproduced(bench):
    bench.pack().replay(Run(outputs(logits=LOGITS[:-3])))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_an_error_hidden_by_the_absolute_tolerance_is_a_warning(bench):
    tiny = np.full(10, 1e-7, "f4")
    bench.reference, bench.repeat = Run({"v.npy": npy(tiny)}), None
    bench.pack().replay(Run({"v.npy": npy(tiny * 3)}))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert "relative L2 error 2" in found(report, "hidden-by-atol", "warn")[0].got


def test_content_that_was_not_kept_is_never_a_success(bench):
    bench.pack().replay(Run(outputs(logits=NEAR), stored="none"))
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("INCOMPLETE", 11)
    assert "content was not kept" in reasons(report)


def test_another_shape_is_found_even_where_the_content_was_not_kept(bench):
    bench.pack().replay(Run(outputs(logits=npy(np.zeros((2, 2), "f4"))), stored="none"))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_a_bundle_whose_outputs_are_all_left_out_compares_nothing(bench):
    rule = OutputRule(match="*", compare=False, reason="too large")
    bench.policy = msgspec.structs.replace(default_policy(), outputs=(rule,))
    bench.pack().replay(Run(outputs(logits=FAR)))
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    assert "nothing-compared" in reasons(report)


def test_a_document_whose_keys_are_all_ignored_is_not_compared(bench):
    bench.reference, bench.repeat = Run({"m.json": b'{"seconds": 1.5}'}), None
    bench.pack().replay(Run({"m.json": b'{"seconds": 9.5}'}))
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    assert "all of it is left out by rule" in reasons(report)


def test_an_output_left_out_by_rule_is_shown_and_takes_nothing(bench):
    rule = OutputRule(match="out/logits.npy", compare=False, reason="sampled")
    bench.policy = msgspec.structs.replace(default_policy(), outputs=(rule,))
    bench.pack().replay(Run(outputs(logits=FAR)))
    report = bench.verify()
    assert report.exit_status == 0
    assert found(report, "output-excluded")[0].reason == "left out by rule: sampled"


def test_the_compatibility_profile_compares_structure_and_says_so(bench):
    bench.policy = msgspec.structs.replace(default_policy(), profile="compat")
    bench.pack().replay(Run(outputs(logits=FAR)))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert found(report, "values-not-compared", "warn")
    bench.replay(Run(outputs(logits=npy(np.zeros(3))), changes={"occasion": "1" * 16}))
    assert bench.verify().verdict == "NOT REPRODUCED"


def test_a_tolerance_that_admits_everything_is_a_warning(bench):
    row = DtypeTolerance(
        dtype="float32",
        devices="same",
        tolerance=Tolerance(rtol=10.0, atol=0.0),
        source="wishful thinking",
    )
    bench.policy = Policy(tolerances=(row,))
    bench.pack().replay(Run(outputs(logits=FAR)))
    report = bench.verify()
    assert report.verdict == "REPRODUCED WITH WARNINGS"
    assert "admits errors as large as the values" in reasons(report)


def test_names_from_strangers_cannot_break_a_report(bench):
    name = "w\ud800\x1b[31m"
    tensor = files.safetensors({name: ("F32", (1,), bytes(4))})
    other = files.safetensors({name: ("F32", (1,), b"\0\0\x80?")})
    bench.reference, bench.repeat = Run({"w.st": tensor}), None
    bench.pack().replay(Run({"w.st": other}))
    report = bench.verify()
    assert report.verdict == "NOT REPRODUCED"
    assert report.judgements[0].outputs[0].parts[0].name == "w\\ud800\\x1b[31m"
    assert encode(report)


def test_a_warning_survives_among_very_many_arrays(bench):
    arrays = {f"a{n}": np.ones(2) for n in range(300)}
    arrays["a150"] = np.array([1.0, np.nan])
    bench.reference, bench.repeat = Run({"m.npz": files.npz(**arrays)}), None
    bench.pack().replay(Run({"m.npz": files.npz(**arrays)}))
    report = bench.verify()
    assert found(report, "nan-in-output", "warn")
    assert [part.name for part in report.judgements[0].outputs[0].parts] == ["a150"]


def test_of_very_many_differing_arrays_the_failing_ones_are_kept(bench):
    arrays = {f"a{n:03}": np.ones(2, "f4") for n in range(300)}
    near = {name: array + np.float32(1e-6) for name, array in arrays.items()}
    near["a250"] = np.full(2, 9, "f4")
    bench.reference, bench.repeat = Run({"m.npz": files.npz(**arrays)}), None
    bench.pack().replay(Run({"m.npz": files.npz(**near)}))
    parts = bench.verify().judgements[0].outputs[0].parts
    assert len(parts) == 100
    assert parts[0].name == "a250"


def test_very_many_arrays_of_zeros_are_still_all_zero(bench):
    arrays = {f"a{n}": np.zeros(2) for n in range(300)}
    bench.reference, bench.repeat = Run({"m.npz": files.npz(**arrays)}), None
    bench.pack().replay(Run({"m.npz": files.npz(**arrays)}))
    assert found(bench.verify(), "output-all-zero", "warn")


def test_the_wider_tolerance_of_another_output_does_not_help(bench):
    rule = OutputRule(
        match="out/other.npy", tolerance=Tolerance(rtol=0.5, atol=0.5), reason="noisy"
    )
    bench.policy = msgspec.structs.replace(default_policy(), outputs=(rule,))
    bench.reference = Run(outputs(**{"out/other.npy": LOGITS}))
    bench.repeat = None
    bench.pack().replay(Run(outputs(logits=FAR, **{"out/other.npy": FAR})))
    report = bench.verify()
    results = {item.name: item.result for item in report.judgements[0].outputs}
    assert results["out/other.npy"] == "within-tolerance"
    assert results["out/logits.npy"] == "outside-tolerance"
    assert report.verdict == "NOT REPRODUCED"


def tensors(values):
    return files.safetensors({"w": ("F32", values.shape, values.tobytes())})


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (1.0, "REPRODUCED, within tolerance"),
        (1 + 5e-7, "REPRODUCED, within tolerance"),
        (1.01, "NOT REPRODUCED"),
    ],
)
def test_checkpoints_are_compared_by_their_exported_tensors(bench, factor, verdict):
    name = "model.pt"
    bench.reference = Run({name: b"\x80\x02}1."}, tensors={name: tensors(VALUES)})
    bench.repeat = None
    changed = tensors(VALUES * np.float32(factor))
    bench.pack().replay(Run({name: b"\x80\x02}2."}, tensors={name: changed}))
    report = bench.verify()
    assert report.verdict == verdict
    if factor == 1.0:
        item = report.judgements[0].outputs[0]
        assert "how they are pickled was not compared" in item.reason


def test_equal_checkpoints_need_no_tensors_different_ones_do(bench):
    bench.reference, bench.repeat = Run({"model.pt": b"\x80\x02}1."}), None
    bench.pack().replay(Run({"model.pt": b"\x80\x02}1."}))
    assert bench.verify().verdict == "REPRODUCED, bit-identical"
    bench.replay(Run({"model.pt": b"\x80\x02}2."}, {"occasion": "1" * 16}))
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    assert "never unpickled" in reasons(report)
