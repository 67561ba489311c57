"""Which variables of its caller a script is said to read, and that it cannot tell."""

from __future__ import annotations

import pytest

from reprobundle.run.events import VariableEvent
from tests.recorder.conftest import Launcher, Run

SCRIPT = """\
import copy, os, tempfile, traceback
import helper
os.environ["OWN"] = "changed"
for _ in range(3):
    os.environ.get("GET")
os.getenv("GETENV", "none")
os.environ["ITEM"]
"CONTAINED" in os.environ
os.environ.setdefault("DEFAULTED", "1")
os.path.expandvars("$EXPANDED/x")
helper.read()
tempfile.gettempdir()
os.environ.get("OWN")
os.environ.get("NOT_SET")
os.environ.get("OMP_NUM_THREADS")
os.environ.setdefault("SET_HERE", "1")
os.environ.get("SET_HERE")
dict(os.environ.items()), os.environ.copy(), list(os.environ)
for key in os.environ: os.environ[key] if key == "BY_KEY" else None
dict(os.environ)
{**os.environ}
copy.deepcopy(os.environ)
os.environ.pop("POPPED")
try:
    os.environ["ABSENT"]
except KeyError:
    print(traceback.format_exc())
try:
    os.environ[3]
except TypeError as error:
    print(error)
"""
HELPER = """\
import os
def read():
    return os.environ.get("IN_A_MODULE")
"""
READ = {
    "GET": "run.py:5",
    "GETENV": "run.py:6",
    "ITEM": "run.py:7",
    "CONTAINED": "run.py:8",
    "DEFAULTED": "run.py:9",
    "EXPANDED": "run.py:10",
    "IN_A_MODULE": "helper.py:3",
    "BY_KEY": "run.py:19",
    "POPPED": "run.py:23",
}
# Each place that goes through all of them, without a name.
COPIES = {"run.py:18", "run.py:19", "run.py:20", "run.py:21"}


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {"run.py": SCRIPT, "helper.py": HELPER}


@pytest.fixture(scope="module")
def run(launch: Launcher, files: dict[str, str]) -> Run:
    variables = dict.fromkeys(READ, "a value that nobody may keep")
    variables |= {"OWN": "given", "UNREAD": "1", "TMPDIR": "/tmp"}
    variables |= {"OMP_NUM_THREADS": "1"}
    return launch(["python", "run.py"], files, variables=variables)


def test_each_name_is_told_once_with_the_place_that_read_it(run):
    told = [event for event in run.of(VariableEvent) if event.name]
    places = {event.name: event.where.rpartition("/")[2] for event in told}
    assert places == READ
    assert len(told) == len(READ)
    assert run.troubles() == []


def test_each_place_that_takes_the_whole_environment_is_told_once(run):
    places = [event.where for event in run.of(VariableEvent) if not event.name]
    assert sorted(place.rpartition("/")[2] for place in places) == sorted(COPIES)


def test_what_packages_read_is_told_but_not_what_they_copy_or_look_for_at_import(
    launch,
):
    files = {
        "run.py": "import sys; sys.path.insert(0, 'x/site-packages'); import tool\n"
        "tool.settings()",
        "x/site-packages/tool.py": "import os\n"
        "NAMES = [name for name in os.environ if name.startswith('TOOL_')]\n"
        "def settings():\n"
        "    os.environ.copy()\n"
        "    os.environ.get('TOOL_A')\n"
        "    return {name: value for name, value in os.environ.items()}\n",
    }
    run = launch(["python", "run.py"], files, variables={"TOOL_A": "1"})
    told = [(e.name, e.where.rpartition("/")[2]) for e in run.of(VariableEvent)]
    assert told == [("TOOL_A", "tool.py:5"), ("", "tool.py:6")]
    assert run.troubles() == []


def test_no_value_leaves_the_process(run):
    texts = [path.read_text() for path in (run.session / "events").glob("*.jsonl")]
    assert texts
    assert not any("that nobody may keep" in text for text in texts)


def test_the_script_sees_what_it_sees_without_us(run, launch, files):
    variables = dict.fromkeys(READ, "a value that nobody may keep")
    plain = launch(["python", "run.py"], files, variables=variables, recorded=False)
    assert "KeyError: 'ABSENT'" in plain.stdout
    assert "str expected, not int" in plain.stdout
    own = str(run.project), str(plain.project)
    assert run.stdout.replace(*own) == plain.stdout


def test_a_form_of_environ_that_is_not_known_is_a_trouble(launch):
    script = """\
import os, sys
recorder = sys.modules["_reprobundle_recorder.read_variables"]
session = sys.modules["_reprobundle_recorder"]._active.session
os.environ = {}
recorder.ReadVariables(session).install()
"""
    run = launch(["python", "run.py"], {"run.py": script})
    text = "os.environ has another form here: what is read of it is not known"
    assert run.troubles() == [f"variables: {text}"]
