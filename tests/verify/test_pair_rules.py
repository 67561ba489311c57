"""Decision tables, repeats of a reduced run, and what a run was asked for."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from reprobundle.errors import BadCallError
from reprobundle.format.difference_report import Axis
from reprobundle.format.record import Command, Fact, Growth
from reprobundle.run.asked import parse_asked
from reprobundle.verify.pairs.arguments import changed_arguments
from reprobundle.verify.pairs.axes import COUNTED
from reprobundle.verify.pairs.chosen_run import choose_run
from reprobundle.verify.pairs.diff import diff_runs
from tests.verify.builder import ENVIRONMENT, FAR, Run, outputs


def told(**asked):
    facts = {
        f"{kind}.{name}": Fact(value=word, source="replay")
        for name, word in asked.items()
        for kind in ("asked", "heard")
    }
    return {**ENVIRONMENT, **facts}


def side(bench, course, shapes=1, slope=0.0, **asked):
    """Return a run with this course of memory that was asked for this."""
    record, _ = Run().build(bench.path.parent)
    memory = msgspec.structs.replace(
        record.memory,
        course=course,
        distinct_shapes=shapes,
        growth=(Growth(counter="anonymous", kind=course, bytes_per_round=slope),),
    )
    return {"memory": memory, "environment": told(**asked)}


def pair(bench, left, right, replay=None):
    bench.reference = Run(changes=left)
    bench.pack().replay(replay, **right)
    with ExitStack() as stack:
        one = choose_run(str(bench.path), stack)
        return diff_runs(one, choose_run(f"{bench.path}:newest", stack))


def held(report):
    (table,) = report.tables
    return table.requirement, [row.means for row in table.rows if row.holds]


@pytest.mark.parametrize(
    ("constant", "dynamic", "means"),
    [
        ("flat", "with-shapes", "the growth comes with the shapes"),
        ("linear", "linear", "references that are kept"),
        ("flat", "step", "neither grows"),
        ("linear", "flat", "only constant shapes grow"),
    ],
)
def test_shapes_are_decided_by_the_table(bench, constant, dynamic, means):
    report = pair(
        bench,
        side(bench, constant) | {"environment": told(shapes="constant")},
        side(bench, dynamic, 5) | {"environment": told(shapes="dynamic")},
    )
    requirement, rows = held(report)
    assert requirement == "C21"
    assert len(rows) == 1
    assert rows[0].startswith(means)


def test_a_command_that_does_not_change_its_shapes_decides_nothing(bench):
    report = pair(
        bench,
        side(bench, "flat") | {"environment": told(shapes="constant")},
        side(bench, "linear", 1) | {"environment": told(shapes="dynamic")},
    )
    assert held(report) == ("C21", [])
    assert "did not change its shapes" in report.tables[0].undecided


def test_an_unclassified_side_decides_nothing(bench):
    report = pair(
        bench,
        side(bench, "flat") | {"environment": told(shapes="constant")},
        side(bench, "unclear", 5) | {"environment": told(shapes="dynamic")},
    )
    assert held(report) == ("C21", [])
    assert "unclear" in report.tables[0].undecided


@pytest.mark.parametrize(
    ("full", "minimal", "means"),
    [
        (("linear", 900.0), ("flat", 0.0), "Python references"),
        (("linear", 900.0), ("linear", 300.0), "Python references"),
        (("linear", 900.0), ("linear", 880.0), "caches"),
        (("flat", 0.0), ("flat", 0.0), "the full run does not grow"),
    ],
)
def test_what_is_kept_is_decided_by_the_table(bench, full, minimal, means):
    report = pair(
        bench,
        side(bench, full[0], 1, full[1], round="full"),
        side(bench, minimal[0], 1, minimal[1], round="minimal"),
    )
    requirement, rows = held(report)
    assert requirement == "C30"
    assert len(rows) == 1
    assert rows[0].startswith(means)


def test_a_minimal_round_that_computes_something_else_decides_nothing(bench):
    report = pair(
        bench,
        side(bench, "linear", 1, 900.0, round="full"),
        side(bench, "flat", 1, 0.0, round="minimal"),
        Run(outputs(logits=FAR)),
    )
    assert held(report) == ("C30", [])
    assert "computation was not the same" in report.tables[0].undecided


def test_a_reduced_run_counts_after_three_runs_of_one_protocol(bench):
    smaller = {"command": Command(argv=("python", "train.py", "--batch", "2"), seed=0)}
    rules = []
    bench.pack()
    for second in (1, 2, 3):
        bench.replay(None, started=f"2025-01-01T00:00:0{second}Z", **smaller)
        with ExitStack() as stack:
            left = choose_run(str(bench.path), stack)
            right = choose_run(f"{bench.path}:newest", stack)
            rules.append(diff_runs(left, right).conclusions[-1].rule)
    assert rules == [*["reduced-run-not-yet"] * 2, "reduced-run-counts"]


def test_a_switch_that_the_script_set_again_is_named(bench):
    environment = {
        **ENVIRONMENT,
        "asked.deterministic": Fact(value="true", source="replay"),
        "end.torch.deterministic": Fact(value=False, source="torch"),
    }
    report = pair(bench, {}, {"environment": environment})
    assert "asked-not-kept" in [one.rule for one in report.conclusions]


def test_a_request_that_nobody_listens_to_is_named(bench):
    environment = {
        **ENVIRONMENT,
        "asked.round": Fact(value="minimal", source="replay"),
    }
    report = pair(bench, {}, {"environment": environment})
    assert "asked-not-heard" in [one.rule for one in report.conclusions]


def test_two_arguments_are_two_changes():
    changes = list(
        changed_arguments(
            ("python", "t.py", "--batch-size=8", "--dtype", "fp32"),
            ("python", "t.py", "--batch-size=4", "--dtype", "bf16"),
        )
    )
    assert [one.axis for one in changes] == ["batch", "precision"]


def test_the_documented_axes_are_those_that_count():
    text = Path("docs/diff.md").read_text()
    listed = re.search(r"on one of these axes:([^.]*)\.", text)
    assert listed is not None
    names = {name.strip() for name in listed[1].replace("\n", " ").split(",")}
    assert names == COUNTED == set(get_args(Axis)) - {"other"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("threads=0", "a number of threads"),
        ("allow_tf32=maybe", "true, false"),
        ("PATH=/x", "switch or a library"),
    ],
)
def test_a_setting_that_is_not_known_is_refused(text, words):
    with pytest.raises(BadCallError, match=words):
        parse_asked([text])


def test_a_switch_reaches_torch_by_variable_or_by_the_recorder():
    asked = parse_asked(["threads=2", "allow_tf32=false"], shapes="constant")
    assert asked.settings["OMP_NUM_THREADS"] == "2"
    assert asked.of_recorder == {"allow_tf32": "false"}
    assert asked.applied(("a.py", "{shapes}")) == ("a.py", "constant")
    assert asked.told == {"REPROBUNDLE_SHAPES": "constant"}
