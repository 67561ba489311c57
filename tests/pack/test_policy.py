from __future__ import annotations

import json

import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.policy import Intent
from reprobundle.pack.policy import parse_metric, read_policy, with_intent
from reprobundle.verify.defaults import default_policy


def write(tmp_path, **fields):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(fields))
    return path


RULE = {
    "dtype": "float32",
    "devices": "same",
    "tolerance": {"rtol": 0.5, "atol": 0.5},
    "source": "test",
}


def test_without_a_file_the_defaults_apply():
    assert read_policy(None) == default_policy()


def test_a_stated_tolerance_replaces_the_default_of_its_dtype_and_pair_only(tmp_path):
    policy = read_policy(
        write(tmp_path, tolerances=[RULE], author="me", reason="because")
    )
    rules = {(r.dtype, r.devices): r.tolerance.rtol for r in policy.tolerances}
    standard = {
        (r.dtype, r.devices): r.tolerance.rtol for r in default_policy().tolerances
    }
    assert rules == {**standard, ("float32", "same"): 0.5}


@pytest.mark.parametrize("missing", ["author", "reason"])
def test_a_tolerance_needs_author_and_reason(tmp_path, missing):
    fields = {"tolerances": [RULE], "author": "me", "reason": "because"}
    del fields[missing]
    with pytest.raises(BadCallError, match="without saying who and why"):
        read_policy(write(tmp_path, **fields))


def test_a_rule_for_an_output_needs_a_reason(tmp_path):
    with pytest.raises(BadCallError, match="states no reason"):
        read_policy(write(tmp_path, outputs=[{"match": "*", "reason": " "}]))


LEFT_OUT = {"match": "debug/*", "compare": False, "reason": "no result"}


@pytest.mark.parametrize("missing", ["author", "reason"])
@pytest.mark.parametrize(
    "fields", [{"ignore_keys": ["loss"]}, {"outputs": [LEFT_OUT]}], ids=["keys", "rule"]
)
def test_leaving_something_out_needs_author_and_reason(tmp_path, fields, missing):
    said = {**fields, "author": "me", "reason": "because"}
    assert read_policy(write(tmp_path, **said)).author == "me"
    del said[missing]
    with pytest.raises(BadCallError, match="without saying who and why"):
        read_policy(write(tmp_path, **said))


def test_ignored_keys_are_added_to_the_defaults(tmp_path):
    policy = read_policy(
        write(tmp_path, ignore_keys=["throughput"], author="me", reason="a speed")
    )
    assert set(policy.ignore_keys) == {*default_policy().ignore_keys, "throughput"}


def test_a_field_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(BadCallError, match="tolerance_for_everything"):
        read_policy(write(tmp_path, tolerance_for_everything=1))


def test_a_claim_other_than_main_needs_a_command(tmp_path):
    with pytest.raises(BadCallError, match="claim 'smoke' has no command"):
        read_policy(write(tmp_path, claims=[{"name": "smoke"}]))


def test_the_main_claim_has_the_command_behind_the_dashes(tmp_path):
    claim = {"name": "main", "command": ["python", "x.py"]}
    with pytest.raises(BadCallError, match="the policy gives it another one"):
        read_policy(write(tmp_path, claims=[claim]))


def test_the_name_of_the_run_on_samples_is_reserved(tmp_path):
    claim = {"name": "stand-in", "command": ["python", "x.py"]}
    with pytest.raises(BadCallError, match="cannot be called 'stand-in'"):
        read_policy(write(tmp_path, claims=[claim]))


def test_a_claim_named_twice_is_refused(tmp_path):
    claim = {"name": "smoke", "command": ["python", "x.py"]}
    with pytest.raises(BadCallError, match="names a claim twice"):
        read_policy(write(tmp_path, claims=[claim, claim]))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadCallError, match=r"gone\.json' cannot be read"):
        read_policy(tmp_path / "gone.json")


@pytest.mark.parametrize("text", ["loss", "=x", "loss=", "a b=x"])
def test_a_metric_has_a_name_and_a_pattern(text):
    with pytest.raises(BadCallError, match="NAME=REGEX"):
        parse_metric(text)


def test_a_metric_pattern_must_be_a_regular_expression():
    with pytest.raises(BadCallError, match="no regular expression"):
        parse_metric("loss=(")


def test_intent_of_the_command_line_wins_over_the_files(tmp_path):
    policy = read_policy(write(tmp_path, intent={"purpose": "file", "scenario": "s"}))
    merged = with_intent(policy, Intent(purpose="line"), ())
    assert (merged.intent.purpose, merged.intent.scenario) == ("line", "s")


def test_two_metrics_of_one_name_are_a_bad_call():
    metric = parse_metric(r"loss=loss (\d+)")
    with pytest.raises(BadCallError, match="metric 'loss' is stated twice"):
        with_intent(default_policy(), Intent(), (metric, metric))
