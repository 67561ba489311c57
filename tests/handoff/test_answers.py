"""A machine that answers in another form is told, in one line, and believed nothing."""

from __future__ import annotations

import json

import msgspec
import pytest

from reprobundle.cli.group import run
from reprobundle.errors import EnvironmentUnusableError
from reprobundle.handoff import state
from reprobundle.handoff.answers import understood
from reprobundle.handoff.errors import RefusedThereError
from reprobundle.handoff.far import agent
from reprobundle.handoff.far.files import MARK
from reprobundle.handoff.pythons import find_machine
from reprobundle.handoff.ssh import Agent, Destination

ESCAPES = "\x1b]0;owned\x07"


@pytest.fixture
def real(tmp_path):
    """What the agent answers here to three requests that change nothing."""
    request = {"root": str(tmp_path), "name": "x"}
    verbs = ("look", "status", "listing")
    return {verb: agent.VERBS[verb](dict(request)) for verb in verbs}


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Return a function that makes `ssh` print what it is given, whatever is asked."""

    def answers(text):
        (tmp_path / "said").write_bytes(text.encode())
        ssh = tmp_path / "bin" / "ssh"
        ssh.parent.mkdir(exist_ok=True)
        ssh.write_text(f"#!/bin/sh\ncat {tmp_path}/said\ncat >/dev/null\n")
        ssh.chmod(0o755)
        monkeypatch.setenv("PATH", f"{ssh.parent}:/usr/bin:/bin")
        return Agent(Destination("host"), "/usr/bin/python3", "~/r", "x")

    return answers


def test_what_our_own_program_answers_is_understood_whole(real):
    for verb, answer in real.items():
        assert understood(verb, json.dumps(answer).encode()) == answer


def test_every_answer_without_one_of_its_parts_or_with_another_type_is_none(real):
    optional = {"ended", "process", "asked"}
    for verb, answer in real.items():
        for key in answer.keys() - optional:
            for other in (
                {name: value for name, value in answer.items() if name != key},
                {**answer, key: {"an": ["other", "thing"]}},
            ):
                if verb == "status" and key == "cancelled" and key in other:
                    continue  # a document of any form
                with pytest.raises(msgspec.DecodeError):
                    understood(verb, json.dumps(other).encode())


@pytest.mark.parametrize(
    "answer",
    [
        "[]",
        "null",
        '{"size": -1, "sha256": ""}',
        '{"size": 1e99, "sha256": ""}',
        '{"refused": "no"}',
        "[" * 5000,
    ],
)
def test_no_answer_leaves_a_traceback(hostile, answer):
    with pytest.raises(EnvironmentUnusableError) as caught:
        hostile(f"{MARK}{answer}\n").ask("get", path="x", offset=0)
    assert "another form" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_refusal_cannot_steer_the_terminal(hostile, tmp_path, monkeypatch, capsys):
    refusal = json.dumps({"refused": f"no {ESCAPES}", "errno": 13})
    with pytest.raises(RefusedThereError):
        hostile(f"{MARK}{refusal}\n").ask("cancel")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state.save(
        state.State(
            name="0" * 12 + "-host",
            bundle="0" * 64,
            path="b.rpb.zip",
            destination="host",
            root="~/r",
            python="/usr/bin/python3",
            began=state.now(),
        )
    )
    assert run(["handoff", "cancel", "0" * 12 + "-host", "--retries", "0"]) != 0
    told = capsys.readouterr().err
    assert "\\x1b" in told
    assert "\x1b" not in told


def test_an_interpreter_with_an_odd_version_is_passed_over(hostile):
    lines = ["system\tLinux\tx86_64"]
    lines += [
        f"python\t{version}\tCPython\tx86_64\t/p/{version}"
        for version in ("3.x", "3", "", "3.12.1", f"3.{'9' * 5000}")
    ]
    hostile("".join(f"reprobundle-found\t{line}\n" for line in lines))
    found = find_machine(Destination("host"))
    assert [one.version for one in found.pythons] == ["3.12.1"]


def test_a_named_interpreter_cannot_end_its_quotes(hostile, tmp_path):
    marker = tmp_path / "ran"
    (tmp_path / "bin").mkdir()
    shell = tmp_path / "bin" / "ssh"
    hostile("")
    shell.write_text("#!/bin/sh\nexec /bin/sh -s\n")
    find_machine(Destination("host"), f"'; touch {marker}; '")
    assert not marker.exists()
