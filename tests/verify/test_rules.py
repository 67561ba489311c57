import msgspec
import pytest

from reprobundle.format.policy import OutputRule, Policy, Tolerance
from reprobundle.verify.defaults import default_policy
from reprobundle.verify.rules import ignores, rule_for, tolerance_for

WIDE = Tolerance(rtol=0.5, atol=0.5)
RULES = (
    OutputRule(match="out/noisy*.npy", tolerance=WIDE, reason="sampled"),
    OutputRule(match="out/*", ignore=("step_id",), reason="ids are random"),
)


def test_the_first_matching_rule_wins():
    policy = Policy(outputs=RULES)
    assert rule_for(policy, "out/noisy1.npy") is RULES[0]
    assert rule_for(policy, "out/logits.npy") is RULES[1]
    assert rule_for(policy, "other.npy") is None


def test_the_tolerance_of_one_output_is_not_applied_to_another():
    policy = Policy(outputs=RULES, tolerances=default_policy().tolerances)
    noisy = tolerance_for(policy, "out/noisy1.npy", "float32", "same")
    other = tolerance_for(policy, "out/logits.npy", "float32", "same")
    assert noisy == WIDE
    assert other == Tolerance(rtol=1.3e-6, atol=1e-5)


def test_a_dtype_the_policy_does_not_mention_has_no_tolerance():
    assert tolerance_for(Policy(), "a.npy", "float32", "same") is None
    policy = default_policy()
    assert tolerance_for(policy, "a.st", "float8_e4m3fn", "same") is None


@pytest.mark.parametrize(
    "key",
    [
        "seconds",
        "train_seconds",
        "elapsed_ms",
        "wallTime",
        "Peak memory MB",
        "data.path",
        "samples_per_second",
        "timestamp",
    ],
)
def test_times_hosts_and_paths_are_left_out(key):
    assert ignores(default_policy(), "m.json")((key,))


@pytest.mark.parametrize(
    "key",
    ["loss", "time_constant", "path_length", "accuracy", "dates_seen", "s", "user"],
)
def test_results_are_not_left_out(key):
    assert not ignores(default_policy(), "m.json")((key,))


def test_a_rule_leaves_out_exactly_what_it_names():
    leave_out = ignores(Policy(outputs=RULES), "out/table.csv")
    assert leave_out(("step_id",))
    assert not leave_out(("my_step_id",))
    assert not ignores(Policy(outputs=RULES), "table.csv")(("step_id",))


def test_a_rule_keeps_results_that_are_called_like_times():
    rule = OutputRule(match="m.json", keep=("relaxation_time",), reason="a result")
    policy = msgspec.structs.replace(default_policy(), outputs=(rule,))
    leave_out = ignores(policy, "m.json")
    assert not leave_out(("relaxation_time",))
    assert leave_out(("train_time",))
    assert ignores(policy, "other.json")(("relaxation_time",))
