import msgspec
import pytest

from reprobundle.format.record import Fact, Randomness
from reprobundle.recorder.variables import VARIABLES
from reprobundle.run.command import NUMERIC_VARIABLES
from reprobundle.verify.environment import (
    NUMERIC_FACTS,
    check_environment,
    compare_environments,
    numeric_kind,
)
from reprobundle.verify.pairs.axes import axis_of
from reprobundle.verify.pairs.changes import find_changes
from tests.verify.builder import ENVIRONMENT, NEAR, Run, found, outputs


@pytest.fixture
def records(tmp_path):
    """Return two records that differ in the given facts."""

    def of(reference, replay, **changes):
        base, _ = Run().build(tmp_path)
        return (
            msgspec.structs.replace(base, environment={**ENVIRONMENT, **reference}),
            msgspec.structs.replace(
                base, environment={**ENVIRONMENT, **replay}, **changes
            ),
        )

    return of


def differences(pair):
    return {d.name: d for d in compare_environments(*pair)}


def environment_findings(pair, name, *, devices="same", identical=False):
    reference, replay = pair
    return [
        one
        for one in check_environment(
            reference,
            replay,
            compare_environments(reference, replay),
            devices=devices,
            identical=identical,
        )
        if one.id == name
    ]


def drift(pair, **options):
    (one,) = environment_findings(pair, "environment-drift", **options)
    return one


def known(value):
    return Fact(value=value, source="x")


def test_equal_environments_have_no_difference(records):
    pair = records({}, {})
    assert differences(pair) == {}
    assert drift(pair).outcome == "pass"


def test_numeric_facts_come_first(records):
    pair = records(
        {"a.b": known(1), "torch.num_threads": known(2)},
        {"a.b": known(2), "torch.num_threads": known(8)},
    )
    assert [(d.name, d.grade) for d in compare_environments(*pair)] == [
        ("torch.num_threads", "numeric"),
        ("a.b", "other"),
    ]


def test_a_fact_that_one_side_does_not_know_is_listed_but_is_no_drift(records):
    pair = records(
        {"torch.num_threads": Fact(unknown="not asked")},
        {"torch.num_threads": known(8), "torch.cudnn.version": known(9)},
    )
    found = differences(pair)
    assert found["torch.num_threads"].reference == "unknown: not asked"
    assert found["torch.cudnn.version"].reference == "not recorded"
    assert {d.grade for d in found.values()} == {"other"}
    assert drift(pair).outcome == "pass"


def test_a_numeric_fact_that_one_side_did_not_record_is_a_named_gap(records):
    pair = records({}, {"torch.cudnn.version": known(9), "a.b": known(1)})
    (gap,) = environment_findings(pair, "environment-gap")
    assert (gap.outcome, gap.where) == ("not-checked", "torch.cudnn.version")
    assert environment_findings(pair, "environment-gap", devices="different") == []


def test_an_environment_of_which_nothing_numeric_is_known_cannot_be_judged(bench):
    bench.pack().replay(Run(outputs=outputs(logits=NEAR)), environment={})
    report = bench.verify()
    assert report.verdict == "INCOMPLETE"
    (unknown,) = found(report, "environment-drift", "not-checked")
    assert "of the replay" in unknown.reason


def test_what_is_bit_identical_needs_no_environment(bench):
    bench.pack().replay(environment={})
    assert bench.verify().exit_status == 0


STILL = {"end.unchanged": known(("torch.autocast.cpu.enabled",))}
OFF = {"torch.autocast.cpu.enabled": known(value=False)}
TURNED_ON = {"end.torch.autocast.cpu.enabled": known(value=True)}


@pytest.mark.parametrize("side", ["reference", "replay"])
def test_a_switch_that_one_script_turned_on_is_drift(records, side):
    sides = [{**OFF, **STILL}, {**OFF, **TURNED_ON}]
    pair = records(*(sides if side == "replay" else reversed(sides)))
    found = differences(pair)["end.torch.autocast.cpu.enabled"]
    told = (found.reference, found.replay)
    assert told == (("False", "True") if side == "replay" else ("True", "False"))
    assert found.grade == "numeric"
    assert drift(pair).outcome == "warn"


def test_a_switch_that_was_not_read_again_is_not_known_at_the_end(records):
    pair = records(OFF, {**OFF, **TURNED_ON})
    found = differences(pair)["end.torch.autocast.cpu.enabled"]
    assert (found.reference, found.grade) == ("not recorded", "other")


def test_a_variable_set_on_one_side_only_is_a_known_difference(records):
    pair = records(
        {
            "env.unset": Fact(
                value=("NVIDIA_TF32_OVERRIDE", "HOME"), source="os.environ"
            )
        },
        {"env.NVIDIA_TF32_OVERRIDE": known("1")},
    )
    found = differences(pair)["env.NVIDIA_TF32_OVERRIDE"]
    assert (found.reference, found.replay, found.grade) == ("(unset)", "1", "numeric")
    assert "env.unset" not in differences(pair)
    assert drift(pair).outcome == "warn"


def test_a_switch_that_the_script_changed_counts_like_the_switch(records):
    pair = records(
        {"end.torch.matmul_precision": known("highest")},
        {"end.torch.matmul_precision": known("high")},
    )
    assert drift(pair).outcome == "warn"


def test_other_draws_from_the_same_seed_are_drift(records):
    pair = records({}, {}, randomness=Randomness(draws={"torch.cpu": "99"}))
    assert differences(pair)["randomness.draws.torch.cpu"].grade == "numeric"
    assert "the same seed draws other numbers" in drift(pair).reason


@pytest.mark.parametrize(
    ("name", "values", "outcome"),
    [
        ("torch.version", ("2.13.0+cpu", "2.13.0"), "pass"),
        ("torch.version", ("2.13.0+cpu", "2.12.0"), "warn"),
        ("torch.cpu_capability", ("AVX512", "DEFAULT"), "pass"),
        ("torch.num_threads", (2, 8), "pass"),
        ("torch.matmul_precision", ("highest", "high"), "warn"),
        ("machine.architecture", ("x86_64", "arm64"), "pass"),
    ],
)
def test_between_two_kinds_of_device_only_what_could_be_equal_counts(
    records, name, values, outcome
):
    pair = records({name: known(values[0])}, {name: known(values[1])})
    assert drift(pair, devices="different").outcome == outcome
    assert drift(pair, devices="same").outcome == "warn"


def test_drift_that_changed_no_bit_is_no_warning_but_is_named(records):
    pair = records({"torch.num_threads": known(2)}, {"torch.num_threads": known(8)})
    found = drift(pair, identical=True)
    assert found.outcome == "pass"
    assert "torch.num_threads is 8, reference 2" in found.reason


def test_what_describes_the_moment_is_no_difference(records):
    pair = records(
        {"state.load": known(0.5), "git.commit": known("ab")},
        {"state.load": known(9.5)},
    )
    assert differences(pair) == {}


def test_a_long_list_of_drift_is_cut(records):
    names = [kind.pattern for kind in NUMERIC_FACTS if "*" not in kind.pattern][:9]
    pair = records(
        {name: known("a") for name in names}, {name: known("b") for name in names}
    )
    assert "and 5 more" in drift(pair).reason


@pytest.mark.parametrize(
    ("name", "numeric"),
    [
        ("torch.cuda.matmul.fp32_precision", True),
        ("torch.cudnn.allow_tf32", True),
        ("torch.cuda.matmul.allow_fp16_reduced_precision_reduction", True),
        ("torch.sdp.flash", True),
        ("env.OMP_NUM_THREADS", True),
        ("os.build", True),
        ("os.version", False),
        ("torch.num_interop_threads", False),
        ("state.load", False),
        ("git.commit", False),
    ],
)
def test_only_facts_known_to_change_numbers_are_numeric(name, numeric):
    assert (numeric_kind(name) is not None) is numeric


def test_every_kind_says_what_it_changes():
    assert all(kind.why for kind in NUMERIC_FACTS)


def test_a_replay_whose_packages_nobody_compared_is_a_named_gap(bench):
    bench.pack().replay()
    report = bench.verify()
    assert "environment-tracked" in report.not_checked
    assert report.exit_status == 0


def test_a_replay_tells_how_its_packages_stand_to_the_lock(bench):
    count = Fact(value=3, source="the lock")
    told = {**ENVIRONMENT, "replay.environment.differences": count}
    bench.pack().replay(environment=told)
    (tracked,) = found(bench.verify(), "environment-tracked", "pass")
    assert tracked.reason == "3 differences to the lock"


def test_of_two_lists_only_what_differs_is_told(bench):
    ours = {**ENVIRONMENT, "system.packages": Fact(value=("a 1", "b 1"), source="x")}
    theirs = {**ENVIRONMENT, "system.packages": Fact(value=("a 1", "b 2"), source="x")}
    bench.reference = Run(changes={"environment": ours})
    bench.pack().replay(environment=theirs)
    (difference,) = bench.verify().judgements[0].environment
    assert (difference.reference, difference.replay) == ("b 1", "b 2")


def test_another_model_revision_counts_and_a_stated_one_is_not_compared(records):
    pair = records(
        {"observed.models": known(("a/b@1",)), "stated.model": known("x")},
        {"observed.models": known(("a/b@2",)), "stated.model": known("y")},
    )
    assert drift(pair).where == "observed.models"
    assert "stated.model" not in differences(pair)


@pytest.mark.parametrize(
    "name",
    [
        "end.torch.autocast.cuda.enabled",
        "at_torch.env.PYTORCH_MPS_FAST_MATH",
        "torch.flush_denormal",
        "torch.blas_threads",
    ],
)
def test_switches_count_at_whatever_moment_they_were_read(name):
    assert numeric_kind(name) is not None


def test_the_moment_and_what_did_not_change_are_not_compared(records):
    moment = "state.pressure_memory_some_percent"
    pair = records(
        {moment: known(1.0), "end.unchanged": known(("torch.num_threads",))},
        {moment: known(50.0), "end.unchanged": known(())},
    )
    assert differences(pair) == {}


def test_a_fact_that_changes_numbers_says_what_it_changes(records):
    facts = {"torch.allow_tf32": Fact(value=False, source="x")}
    other = {"torch.allow_tf32": Fact(value=True, source="x")}
    model = {"cpu.model": Fact(value="a", source="x")}
    found = differences(
        records({**facts, **model}, {**other, "cpu.model": Fact(value="b", source="x")})
    )
    assert found["torch.allow_tf32"].why == "TF32 keeps 10 mantissa bits of a product"
    assert found["torch.allow_tf32"].grade == "numeric"
    assert (found["cpu.model"].grade, found["cpu.model"].why) == ("other", "")


@pytest.mark.parametrize(("value", "differs"), [("0", False), ("1", True)])
def test_the_fallback_variable_that_a_replay_sets_to_off_is_no_drift(
    records, value, differs
):
    name = "env.PYTORCH_ENABLE_MPS_FALLBACK"
    unset = {"env.unset": Fact(value=(name[4:],), source="os.environ")}
    pair = records(unset, {name: Fact(value=value, source="os.environ")})
    assert (name in differences(pair)) == differs
    (found,) = environment_findings(pair, "environment-drift")
    assert found.outcome == ("warn" if differs else "pass")


TF32 = "env.NVIDIA_TF32_OVERRIDE"
NOT_SET = {"env.unset": known(("NVIDIA_TF32_OVERRIDE",))}
NOTHING_CHANGED = {"at_torch.env.changed": known(())}
SET_BEFORE_TORCH = {
    "at_torch.env.changed": known(("NVIDIA_TF32_OVERRIDE",)),
    f"at_torch.{TF32}": known("1"),
}


@pytest.mark.parametrize(
    ("before", "told"), [(NOT_SET, "(unset)"), ({TF32: known("0")}, "0")]
)
def test_a_switch_set_before_torch_in_one_run_only_is_known_of_the_other(
    records, before, told
):
    pair = records({**before, **NOTHING_CHANGED}, {**before, **SET_BEFORE_TORCH})
    found = differences(pair)[f"at_torch.{TF32}"]
    assert (found.reference, found.replay, found.grade) == (told, "1", "numeric")
    assert [(one.axis, one.name) for one in find_changes(*pair)] == [
        ("precision", f"at_torch.{TF32}")
    ]


@pytest.mark.parametrize(
    "side",
    [NOT_SET, {**NOT_SET, "at_torch.env.changed": known(("NVIDIA_TF32_OVERRIDE",))}],
    ids=["without torch", "changed to what is not told"],
)
def test_what_a_record_does_not_tell_of_it_stays_unknown(records, side):
    found = differences(records(side, {**NOT_SET, **SET_BEFORE_TORCH}))[
        f"at_torch.{TF32}"
    ]
    assert (found.reference, found.grade) == ("not recorded", "other")


@pytest.mark.parametrize(
    ("version", "outcome"), [("3.11.9", "pass"), ("3.12.0", "warn"), ("3.1.7", "warn")]
)
def test_another_minor_version_of_python_counts_and_a_patch_does_not(
    records, version, outcome
):
    pair = records(
        {"python.version": known("3.11.7")}, {"python.version": known(version)}
    )
    assert drift(pair).outcome == outcome


@pytest.mark.parametrize("devices", ["same", "different"])
def test_a_numeric_package_that_left_the_lock_is_drift(records, devices):
    told = known(("scipy: 1.10.0 -> 1.13.1", "mkl (files): blake3 a -> blake3 b"))
    pair = records({}, {"replay.environment.numeric": told})
    found = drift(pair, devices=devices)
    assert (found.outcome, found.where) == ("warn", "package.mkl (files)")
    one = differences(pair)["package.scipy"]
    assert (one.reference, one.replay, one.grade) == ("1.10.0", "1.13.1", "numeric")
    assert drift(pair, devices=devices, identical=True).outcome == "pass"


def test_an_unknown_torch_of_the_replay_is_no_known_environment(records):
    reference, replay = records({}, {})
    bare = {
        name: fact
        for name, fact in replay.environment.items()
        if not name.startswith("torch.version")
    }
    replay = msgspec.structs.replace(replay, environment=bare)
    found = drift((reference, replay))
    assert (found.outcome, "torch of the replay" in found.reason) == (
        "not-checked",
        True,
    )
    assert drift((reference, replay), identical=True).outcome == "pass"


# Variables that are recorded and known to change no number: where something runs, what
# is shown or kept, how memory is taken, which files are loaded.
CHANGES_NO_NUMBER = {
    *("OMP_PROC_BIND", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"),
    *("KMP_BLOCKTIME", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    *("CUDA_LAUNCH_BLOCKING", "CUDNN_DETERMINISTIC", "PYTORCH_ALLOC_CONF"),
    *("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"),
    *("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_MPS_HIGH_WATERMARK_RATIO"),
    *("PYTORCH_MPS_LOW_WATERMARK_RATIO", "PYTORCH_MPS_ALLOC_CONF"),
    *("PYTORCH_MPS_GRAPH_CACHE_POLICY", "PYTORCH_DEBUG_MPS_ALLOCATOR"),
    *("PYTORCH_MPS_LOG_PROFILE_INFO", "PYTORCH_MPS_TRACE_SIGNPOSTS"),
    *("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"),
    *("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"),
    *("RANK", "WORLD_SIZE", "MTL_DEBUG_LAYER", "MTL_CAPTURE_ENABLED"),
    *("METAL_DEVICE_WRAPPER_TYPE", "LANG", "LC_ALL", "LC_NUMERIC", "TZ"),
}


def test_whatever_changes_numbers_is_a_change_that_a_pair_counts():
    # What a generator draws follows from other changes and is none of its own.
    names = {kind.pattern.replace("*", "x") for kind in NUMERIC_FACTS}
    names |= {f"env.{one}" for one in VARIABLES if numeric_kind(f"env.{one}")}
    uncounted = {name for name in names if axis_of(name) == "other"}
    assert uncounted == {"randomness.draws.x"}


def test_every_recorded_variable_is_graded_and_what_counts_is_set_by_a_replay():
    graded = {one for one in VARIABLES if numeric_kind(f"env.{one}") is not None}
    assert set(VARIABLES) - graded == CHANGES_NO_NUMBER
    assert graded <= set(NUMERIC_VARIABLES)
