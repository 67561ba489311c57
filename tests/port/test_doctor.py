"""`doctor` tells why MPS is missing and what else stops a run, and never crashes.

No Mac was asked: its probes read recorded outputs in the form the system prints.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from types import SimpleNamespace

import jsonschema
import pytest

from reprobundle.cli.group import run as call
from reprobundle.format.schema import schema_of
from reprobundle.port.doctor import machine
from reprobundle.port.doctor.asked import Facts, ask
from reprobundle.port.doctor.causes import causes, oldest_macos
from reprobundle.port.doctor.doctor import judge
from reprobundle.port.doctor.folders import folder_checks
from reprobundle.recorder import examination, macos, variables
from reprobundle.recorder.facts import UnknownFactError, measured
from reprobundle.recorder.hardware.mps_obstacle import oldest_macos as table_of
from reprobundle.report.examined import render_doctor
from reprobundle.report.screen import Screen
from tests.recorder.test_environment import SYSCTL, mac_run

NO_METAL = '{"SPDisplaysDataType": [], "SPHardwareDataType": []}'


def mac_facts(sysctl=SYSCTL, *, virtual="0", tools="/Library/CLT\n", **changes):
    """Return the facts of a Mac on which everything works, with changes."""
    outputs = {
        name: changes.pop(name)
        for name in ("sw_vers", "system_profiler", "ps")
        if name in changes
    }
    plain = mac_run(sysctl, **outputs)

    def run(argv):
        if argv[0].endswith("xcode-select"):
            if not tools:
                message = "xcode-select ended with status 2"
                raise UnknownFactError(message)
            return tools
        return virtual if "kern.hv_vmm_present" in argv else plain(argv)

    probes = [*macos.probes(run, numbered=True), *examination.mac_extras(run)]
    found = {name: (*measured(read), source) for name, source, read in probes}
    said = {
        "os.system": "Darwin",
        "machine.architecture": "arm64",
        "python.version": "3.11.9",
        "torch.version": "2.13.0",
        "torch.file": "/env/torch",
        "mps.built": True,
        "mps.available": True,
        "mps.trial": "ok",
        "mps.oldest_macos": [
            str(number) for number in table_of(changes.get("torch__version", "2.13.0"))
        ],
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    # A text that starts with "!" is the reason why a fact is unknown.
    for name, value in said.items():
        unknown = isinstance(value, str) and value.startswith("!")
        found[name] = (None, value[1:], "") if unknown else (value, "", "")
    return Facts(found)


MISSING = {"mps__available": False, "mps__trial": "!RuntimeError: no MPS device"}


def report(facts, variables=None, **options):
    return judge(facts, variables or {}, python="/env/python", written={}, **options)


def check(checks, name):
    (found,) = [one for one in checks if one.name == name]
    return found


def test_a_mac_on_which_a_tensor_was_computed_is_usable():
    found = report(mac_facts(), {"TMUX": "x"})
    assert (found.mps, found.exit_status) == ("usable", 0)
    assert {one.answer for one in found.causes} == {"no"}
    assert not [one for one in found.checks if one.state == "problem"]
    assert check(found.checks, "macos").got == "14.6.1"
    assert "14.0 or newer for torch 2.13.0" in check(found.checks, "macos").wanted


@pytest.mark.parametrize(
    ("name", "changes", "environ"),
    [
        ("build", {"mps__built": False}, {}),
        ("macos", {"torch__version": "2.15.0"}, {}),
        (
            "device",
            {"machine__architecture": "x86_64", "system_profiler": NO_METAL},
            {},
        ),
        ("rosetta", {"sysctl": SYSCTL.replace("translated: 0", "translated: 1")}, {}),
        ("virtual", {"virtual": "1\n"}, {}),
        ("sandbox", {}, {"CODEX_SANDBOX": "seatbelt"}),
    ],
)
def test_the_six_causes_are_told_apart(name, changes, environ):
    facts = mac_facts(**{**MISSING, **changes})
    found = report(facts, environ)
    assert [one.name for one in found.causes if one.answer == "yes"] == [name]
    assert len(found.causes) == 6
    assert (found.mps, found.exit_status) == ("not-usable", 10)
    shown = render_doctor(found)
    (cause,) = [one for one in found.causes if one.answer == "yes"]
    assert f"{cause.title}: {cause.remedy}" in " ".join(shown.split())


def test_without_another_cause_a_sandbox_is_possible_and_not_claimed():
    answers = {one.name: one for one in causes(mac_facts(**MISSING), {})}
    assert answers["sandbox"].answer == "unknown"
    assert "would look like this" in answers["sandbox"].because


def test_available_is_not_usable_when_the_trial_fails():
    found = report(mac_facts(mps__trial="!RuntimeError: MPS backend out of memory"))
    assert (found.mps, found.exit_status) == ("not-usable", 10)
    assert "out of memory" in found.answer


def test_a_wrong_sum_is_no_success():
    torch = SimpleNamespace(ones=lambda _, device: Wrong())
    assert examination.trial(torch) == "computed 3.0 where 4 is right"


class Wrong:
    def __mul__(self, other):
        return self

    def sum(self):
        return self

    def item(self):
        return 3.0


def test_the_macos_rule_is_the_recorders_own():
    """One table: replay, records and this say the same of each torch."""
    for version, oldest in (
        ("2.8.0", (13, 0)),
        ("2.14.1", (14, 0)),
        ("2.15.0", (15, 0)),
    ):
        assert oldest_macos(mac_facts(torch__version=version)) == oldest
    assert oldest_macos(Facts({})) is None


def test_a_macos_rule_that_is_not_known_is_no_success_and_no_problem():
    found = report(mac_facts(mps__oldest_macos="!not asked"))
    assert check(found.checks, "macos").state == "unknown"
    (cause,) = [one for one in found.causes if one.name == "macos"]
    assert cause.answer == "unknown"


@pytest.mark.parametrize(
    ("key", "name"), [("rosetta", "rosetta"), ("unfit-gpu", "device")]
)
def test_the_cause_that_replay_gives_is_given_here(key, name):
    facts = mac_facts(
        **MISSING, mps__key=key, mps__cause="as replay says", mps__remedy="do this"
    )
    found = {one.name: one for one in causes(facts, {})}[name]
    assert (found.answer, found.because) == ("yes", "as replay says")
    assert found.remedy == "do this"


def test_every_key_of_a_cause_is_one_that_the_recorder_gives():
    from pathlib import Path

    from reprobundle.port.doctor.causes import _KEYS
    from reprobundle.recorder.hardware import mps_obstacle as module

    source = Path(module.__file__ or "").read_text()
    assert all(f'"{key}"' in source for key in _KEYS)


def test_without_torch_the_rule_of_the_newest_counts(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    found = {
        name: measured(read)
        for name, _, read in examination.torch_probes(lambda _: "", "darwin")
    }
    assert found["torch.version"][0] is None
    assert found["mps.oldest_macos"][0] == ["15", "0"]


def test_linux_says_that_mps_cannot_be_tested_and_that_is_no_success():
    found = report(mac_facts(os__system="Linux", **MISSING), {"TMUX": "x"})
    assert (found.mps, found.exit_status) == ("not-testable", 11)
    assert found.answer == "this is Linux; MPS cannot be tested here"
    assert {one.answer for one in found.causes} == {"not-applicable"}


def test_an_interpreter_that_says_nothing_leaves_everything_unknown():
    found = report(Facts({}))
    assert found.mps == "unknown"
    assert found.exit_status == 10
    assert check(found.checks, "torch").state == "problem"
    assert check(found.checks, "pressure").state == "unknown"
    assert "not known" in render_doctor(found)


def test_a_probe_that_breaks_hides_no_other(monkeypatch):
    def broken(facts):
        raise RuntimeError("boom")

    monkeypatch.setattr(machine, "memory", broken)
    found = report(mac_facts())
    assert check(found.checks, "memory").state == "unknown"
    assert "boom" in check(found.checks, "memory").got
    assert check(found.checks, "clock").state in {"ok", "warn"}


def test_a_group_that_breaks_in_the_interpreter_is_named(monkeypatch):
    def broken():
        raise RuntimeError("boom")

    monkeypatch.setattr(variables, "probes", broken)
    found = examination.examine()
    assert any(
        "boom" in why for name, (_, why, _) in found.items() if "trouble" in name
    )
    assert found["python.version"][0]


def test_missing_tools_and_an_old_python_are_told():
    found = report(mac_facts(tools="", python__version="3.9.1"))
    assert check(found.checks, "python").state == "problem"
    tools = check(found.checks, "xcode-tools")
    assert (tools.state, bool(tools.remedy)) == ("unknown", True)


def test_each_prerequisite_has_its_torch_and_its_date_in_the_terminal():
    found = report(mac_facts())
    rules = [one for one in found.checks if one.group == "prerequisites"]
    assert len(rules) == 4
    shown = " ".join(render_doctor(found, Screen(width=100), verbose=True).split())
    for one in rules:
        assert "torch" in one.wanted
        assert re.search(r"20\d\d", one.wanted)
        assert one.wanted in shown


def test_a_folder_is_written_to_and_not_only_looked_at(tmp_path):
    (tmp_path / "file").touch()
    folders = {"good": tmp_path / "new/one", "bad": tmp_path / "file/below"}
    data = (tmp_path / "file", tmp_path / "absent")
    good, bad, there, absent = folder_checks(folders, data)
    assert good.state in {"ok", "warn"}
    assert not (tmp_path / "new").exists()
    assert f"not there, {tmp_path} is writable" in good.got
    assert (bad.state, absent.state) == ("problem", "problem")
    assert (there.state, "not there" in absent.got) == ("ok", True)
    assert absent.remedy == "look at the path"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize(
    ("level", "state", "words"),
    [("1", "ok", "normal"), ("2", "warn", "warning"), ("4", "warn", "critical")],
)
def test_memory_pressure_is_read_by_its_level(level, state, words):
    facts = mac_facts(SYSCTL.replace("pressure_level: 1", f"pressure_level: {level}"))
    pressure = check(machine.memory(facts), "pressure")
    assert (pressure.state, pressure.got) == (state, words)


def test_the_working_set_of_the_gpu_is_metals_own_figure():
    facts = mac_facts(mps__recommended_max_bytes=12 << 30)
    found = check(machine.memory(facts), "gpu-working-set")
    assert (found.state, found.got) == ("ok", "12.0 GiB recommended by Metal")
    unknown = mac_facts(mps__recommended_max_bytes="!torch before 2.5")
    found = check(machine.memory(unknown), "gpu-working-set")
    assert (found.state, found.got) == ("unknown", "torch before 2.5")
    linux = check(machine.memory(mac_facts(os__system="Linux")), "gpu-working-set")
    assert linux.state == "not-applicable"


def test_without_mps_metal_is_not_asked_for_a_working_set():
    def asked():
        raise AssertionError("an allocator without a device was asked")

    torch = SimpleNamespace(
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False)),
        mps=SimpleNamespace(recommended_max_memory=asked),
    )
    value, unknown = measured(lambda: examination.working_set(torch))
    assert (value, unknown) == (None, "MPS is not available")


def test_heavy_programs_are_named():
    facts = mac_facts(ps=" 512   1.0 9000000 Docker\n")
    heavy = check(machine.memory(facts), "heavy-processes")
    assert heavy.state == "warn"
    assert "Docker 8.6 GiB (pid 512)" in heavy.got


def test_variables_that_change_numbers_or_memory_are_told():
    name = "PYTORCH_ENABLE_MPS_FALLBACK"
    states = {
        value: check(machine.settings({name: value}), name).state
        for value in ("0", "1")
    }
    assert states == {"0": "ok", "1": "warn"}
    ratio = "PYTORCH_MPS_HIGH_WATERMARK_RATIO"
    assert check(machine.settings({ratio: "0.0"}), ratio).state == "warn"


@pytest.mark.parametrize(
    ("environ", "hangup", "state"),
    [
        ({"TMUX": "x"}, signal.SIG_DFL, "ok"),
        ({"STY": "x"}, signal.SIG_DFL, "ok"),
        ({}, signal.SIG_IGN, "ok"),
        ({"SSH_CONNECTION": "x"}, signal.SIG_DFL, "warn"),
    ],
)
def test_whether_a_job_outlives_the_terminal(environ, hangup, state):
    checks = list(machine.session(environ, hangup=hangup))
    found = check(checks, "survives-disconnect")
    assert found.state == state
    assert bool(found.remedy) == (state == "warn")


def test_whether_a_mac_stays_awake():
    found = [
        check(machine.session({}, processes=names, is_mac=True), "stays-awake").state
        for names in ("caffeinate", "Finder", "")
    ]
    assert found == ["ok", "warn", "unknown"]


def test_a_wrong_clock_is_told(tmp_path):
    assert machine.clock(tmp_path).state == "ok"
    assert machine.clock(tmp_path, now=lambda: 0.0).state == "warn"
    assert machine.clock(tmp_path / "absent").state == "unknown"


@pytest.fixture(scope="module")
def asked():
    from pathlib import Path

    return ask(Path(sys.executable), {"PATH": "/usr/bin", "OMP_NUM_THREADS": "1"})


def test_the_interpreter_is_asked_in_a_process_of_its_own(asked):
    torch = pytest.importorskip("torch")
    assert asked.value("torch.version") == torch.__version__
    assert asked.value("env.OMP_NUM_THREADS") == "1"
    if sys.platform == "linux":
        assert asked.value("mps.trial") is None
        assert "MPS exists on macOS only" in asked.text("mps.cause")
        assert report(asked).mps == "not-testable"


def test_what_is_no_interpreter_is_no_crash(tmp_path):
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho nonsense\n")
    program.chmod(0o755)
    facts = ask(program, {})
    assert "could not be asked" in facts.why("python.version")
    assert report(facts).mps == "unknown"


def test_the_command_line_gives_text_and_json(capsys):
    options = ["--python", sys.executable]
    status = call(["doctor", *options, "--json"])
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema_of("doctor")).validate(document)
    assert document["exit_status"] == status
    assert call(["doctor", "--python", "/absent/python"]) == 20
    assert "no interpreter" in capsys.readouterr().err
