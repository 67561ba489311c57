"""Switches that a replay asks for reach torch before the script does anything."""

from __future__ import annotations

import json

import pytest

from reprobundle.run.events import Seed

SCRIPT = """\
import json, torch
b = torch.backends
print(json.dumps({
    "tf32": [b.cuda.matmul.allow_tf32, b.cudnn.allow_tf32],
    "precision": torch.get_float32_matmul_precision(),
    "sums": b.cuda.matmul.allow_fp16_reduced_precision_reduction,
    "deterministic": torch.are_deterministic_algorithms_enabled(),
    "benchmark": b.cudnn.benchmark,
}))
torch.manual_seed(3)
"""
ASKED = {
    "allow_tf32": "true",
    "reduced_precision_sums": "false",
    "deterministic": "true",
    "benchmark": "true",
}


def told(run):
    assert run.status == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def switched(launch):
    return launch(("python", "a.py"), {"a.py": SCRIPT}, switches=ASKED)


def test_every_switch_is_set_when_the_script_begins(switched):
    answer = told(switched)
    assert answer["tf32"] == [True, True]
    assert answer["sums"] is False
    assert answer["deterministic"] is True
    assert answer["benchmark"] is True
    assert switched.troubles() == []


def test_a_switch_makes_no_seed_of_its_own(switched):
    (call,) = switched.of(Seed)
    assert (call.function, call.value) == ("torch.manual_seed", "3")


def test_the_precision_of_products_is_set_by_its_word(launch):
    run = launch(
        ("python", "a.py"), {"a.py": SCRIPT}, switches={"matmul_precision": "medium"}
    )
    assert told(run)["precision"] == "medium"


def test_nothing_is_set_where_nobody_asked_and_an_unknown_switch_is_reported(launch):
    plain = launch(("python", "a.py"), {"a.py": SCRIPT}, recorded=False)
    run = launch(("python", "a.py"), {"a.py": SCRIPT}, switches={"speed": "true"})
    assert told(run) == told(plain)
    assert any("knows no switch speed" in one for one in run.troubles())
