"""Which of the variables that a command read are said to be missing at a replay."""

from __future__ import annotations

import pytest

from reprobundle.format.record import Command
from reprobundle.run.events import EventFile, VariableEvent
from reprobundle.run.missing_variables import (
    as_settled,
    missing_variables,
    names_missing,
)
from tests.run.test_accessed import START

INHERITED = ("PLANT", "HOME", "LC_TIME", "PYTHONPATH", "REPROBUNDLE_DEVICE", "SEEN")


def missing(*names, argv=("python", "train.py"), environment=()):
    events = tuple(
        VariableEvent(t_ns=1, name=name, where=f"train.py:{line}")
        for line, name in enumerate(names, 1)
    )
    file = EventFile(start=START, events=events, damaged_lines=0)
    command = Command(
        argv=argv, working_directory=".", seed=None, environment=dict(environment)
    )
    return list(missing_variables((file, file), command, INHERITED))


def test_a_variable_that_a_replay_drops_is_named_once_with_its_place():
    (remark,) = missing("PLANT")
    assert (remark.id, remark.severity) == ("variable-not-in-bundle", "warning")
    assert remark.where == "train.py:1"
    assert remark.text.startswith("the command read PLANT, which was set here: ")
    assert "-- env PLANT=VALUE COMMAND" in remark.text


@pytest.mark.parametrize("name", INHERITED[1:5])
def test_what_a_replay_has_or_the_launcher_sets_is_not_named(name):
    assert missing(name) == []


def test_what_the_command_was_not_started_with_is_its_own():
    assert missing("MADE_BY_A_LAUNCHER") == []


def test_a_recorded_setting_is_not_missing():
    assert missing("SEEN", environment={"SEEN": "1"}) == []
    assert len(missing("SEEN")) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ("env", "PLANT=rose", "python", "train.py"),
        ("sh", "-c", "export PLANT=rose; python train.py"),
    ],
)
def test_a_variable_that_the_command_sets_is_in_the_bundle(argv):
    assert missing("PLANT", argv=argv) == []


def test_an_argument_of_a_similar_name_sets_nothing():
    assert len(missing("PLANT", argv=("python", "t.py", "--PLANT=1", "XPLANT=2"))) == 1


def read_at(*events, inherited=INHERITED):
    told = tuple(VariableEvent(t_ns=1, name=name, where=at) for name, at in events)
    file = EventFile(start=START, events=told, damaged_lines=0)
    command = Command(argv=("python", "a.py"), working_directory=".", seed=None)
    return list(missing_variables((file,), command, inherited))


PACKAGE = "/venv/lib/python3.11/site-packages/click/core.py:9"


def test_what_a_package_reads_is_a_gap_and_no_name_that_pack_acts_on():
    own, other = read_at(("PLANT", "a.py:3"), ("SEEN", PACKAGE))
    assert (own.severity, other.severity) == ("warning", "gap")
    assert (other.id, other.where) == ("variable-read-by-package", PACKAGE)
    assert "an installed package read SEEN" in other.text
    assert names_missing((own, other)) == ("PLANT",)


def test_each_place_that_goes_through_all_variables_is_told():
    places = ("", "a.py:3"), ("", "a.py:7"), ("", "a.py:3"), ("", PACKAGE)
    found = read_at(*places)
    assert {one.id for one in found} == {"environment-copied"}
    assert [(one.where, one.severity) for one in found] == [
        ("a.py:3", "warning"),
        ("a.py:7", "warning"),
        (PACKAGE, "gap"),
    ]


def test_where_a_replay_lacks_nothing_a_copy_is_not_told():
    assert read_at(("", "a.py:3"), inherited=("HOME", "PATH")) == []


def test_a_repeat_without_them_settles_copies_and_nothing_else():
    copied, read = read_at(("", "a.py:3"), ("PLANT", "a.py:4"))
    assert as_settled(copied).severity == "gap"
    assert as_settled(read) == read
