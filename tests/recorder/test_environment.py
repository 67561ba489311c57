"""Facts about Python, the system and the machine."""

import os
import platform
import sys
from typing import Any

import pytest

from reprobundle.recorder import environment, libraries, macos
from reprobundle.recorder.facts import UnknownFactError, measured, send
from reprobundle.run.events import FactEvent, MemoryEvent

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux files")


@pytest.fixture(scope="module")
def run(launch):
    variables = {"OMP_NUM_THREADS": "1", "SECRET_TOKEN": "hunter2"}
    return launch(["python", "-c", "pass"], variables=variables)


@linux_only
def test_facts_agree_with_the_standard_library(run):
    expected = {
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "os.system": platform.system(),
        "os.kernel": platform.release(),
        "os.name": platform.freedesktop_os_release()["PRETTY_NAME"],
        "machine.architecture": platform.machine(),
        "cpu.logical": os.cpu_count(),
        "memory.total_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    }
    assert {name: run.fact(name) for name in expected} == expected
    assert str(run.fact("os.libc")).split() == list(platform.libc_ver())


def test_only_allowed_variables_are_stored(run):
    assert run.fact("env.OMP_NUM_THREADS") == "1"
    assert "MKL_NUM_THREADS" in run.fact("env.unset")
    assert not any("hunter2" in str(fact) for fact in run.of(FactEvent))


def test_every_fact_is_known_or_says_why_not(run):
    facts = run.of(FactEvent)
    assert len(facts) > 30
    assert all((fact.value is None) == bool(fact.unknown) for fact in facts)
    assert all(fact.source for fact in facts)


def test_every_name_is_sent_once(run):
    names = [fact.name for fact in run.of(FactEvent)]
    assert sorted(set(names)) == sorted(names)


class Heard:
    """A session that keeps what it is told."""

    def __init__(self):
        self.events = []

    def emit_all(self, events):
        self.events += events


PROBES = {
    probe[0]: probe
    for probes in (
        environment.python_probes(),
        environment.linux_probes(),
        macos.probes(lambda argv: ""),
        libraries.end_probes(),
    )
    for probe in probes
}


@pytest.mark.parametrize("broken", sorted(PROBES))
@pytest.mark.parametrize("error", [OSError("gone"), ValueError("odd\nlines")])
def test_a_broken_probe_leaves_all_the_others(broken, error):
    def fail():
        raise error

    probes = [
        (name, source, fail if name == broken else lambda: 1)
        for name, source, _ in PROBES.values()
    ]
    session: Any = Heard()
    known = send(session, probes)
    assert set(known) == set(PROBES) - {broken}
    (lost,) = (event for event in session.events if event["value"] is None)
    assert lost["name"] == broken
    assert type(error).__name__ in lost["unknown"]
    assert "\n" not in lost["unknown"]


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (True, True),
        (3, 3),
        (2**63, str(2**63)),
        (1.5, 1.5),
        ((1, "a"), ["1", "a"]),
        (b"x", "b'x'"),
    ],
)
def test_values_take_a_form_that_facts_have(value, stored):
    assert measured(lambda: value) == (stored, "")


def test_nothing_is_not_a_value():
    assert measured(lambda: None) == (None, "not available here")


# Outputs of an Apple silicon Mac, in the form sysctl(8) and sw_vers(1) print.
SYSCTL = """hw.model: Mac15,6
machdep.cpu.brand_string: Apple M3 Pro
hw.memsize: 19327352832
hw.logicalcpu: 11
hw.physicalcpu: 11
hw.perflevel0.physicalcpu: 5
sysctl.proc_translated: 0
kern.memorystatus_vm_pressure_level: 1
kern.memorystatus_level: 71
vm.swapusage: total = 1024.00M  used = 12.25M  free = 1011.75M  (encrypted)
"""
INTEL = """hw.model: MacBookPro16,1
machdep.cpu.brand_string: Intel(R) Core(TM) i9-9880H CPU @ 2.30GHz
hw.memsize: 34359738368
hw.logicalcpu: 16
hw.physicalcpu: 8
"""
SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t14.6.1\nBuildVersion:\t\t23G93\n"


def mac_facts(sysctl):
    def run(argv):
        if argv[0].endswith("sw_vers"):
            return SW_VERS
        return sysctl

    return {name: measured(read) for name, _, read in macos.probes(run)}


def test_reads_an_apple_silicon_mac():
    facts = {name: value for name, (value, _) in mac_facts(SYSCTL).items()}
    assert facts["os.name"] == "macOS"
    assert facts["os.version"] == "14.6.1"
    assert facts["os.build"] == "23G93"
    assert facts["machine.model"] == "Mac15,6"
    assert facts["machine.rosetta"] is False
    assert facts["cpu.model"] == "Apple M3 Pro"
    assert facts["cpu.performance_cores"] == 5
    assert facts["memory.total_bytes"] == 19327352832
    assert facts["state.memory_pressure_level"] == 1
    assert facts["state.swap"].startswith("total = 1024.00M")


def test_tells_a_translated_process():
    translated = SYSCTL.replace("proc_translated: 0", "proc_translated: 1")
    assert mac_facts(translated)["machine.rosetta"] == (True, "")


def test_an_intel_mac_does_not_know_rosetta_and_says_so_for_the_rest():
    facts = mac_facts(INTEL)
    assert facts["machine.rosetta"] == (False, "")
    assert facts["cpu.physical"] == (8, "")
    unknown = (None, "sysctl knows no hw.perflevel0.physicalcpu here")
    assert facts["cpu.performance_cores"] == unknown


def test_a_mac_without_the_commands_gives_reasons():
    def run(argv):
        raise UnknownFactError(f"{argv[0]}: not there")

    facts = {name: measured(read) for name, _, read in macos.probes(run)}
    assert facts["os.build"] == (None, "/usr/bin/sw_vers: not there")
    assert facts["machine.rosetta"] == (None, "/usr/sbin/sysctl: not there")
    assert facts["os.kernel"][0]


def test_each_mac_command_runs_once():
    calls = []

    def run(argv):
        calls.append(argv[0])
        return SW_VERS if argv[0].endswith("sw_vers") else SYSCTL

    for _, _, read in macos.probes(run):
        measured(read)
    assert sorted(calls) == ["/usr/bin/sw_vers", "/usr/sbin/sysctl"]


def test_reads_the_version_of_the_graph_framework(tmp_path):
    plist = tmp_path / "Info.plist"
    plist.write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict>'
        "<key>CFBundleShortVersionString</key><string>6.0</string>"
        "<key>CFBundleVersion</key><string>5.6.2</string></dict></plist>"
    )
    assert macos.graph_version([str(tmp_path / "absent"), str(plist)]) == "5.6.2"
    with pytest.raises(UnknownFactError, match="was not found"):
        macos.graph_version([str(tmp_path / "absent")])


def test_a_failing_command_is_a_reason():
    with pytest.raises(UnknownFactError, match="false ended with status 1"):
        macos.run_command(["false"])
    with pytest.raises(UnknownFactError, match="no-such-program"):
        macos.run_command(["no-such-program"])
    assert macos.run_command(["echo", "x"]) == "x\n"


@linux_only
def test_memory_is_sampled_at_start_and_end_and_by_the_clock(launch):
    script = (
        "import time\n"
        "block = bytearray(64 * 2**20)\n"
        "end = time.monotonic() + 0.9\n"
        "while time.monotonic() < end: sum(range(1000))\n"
        "del block\n"
    )
    run = launch(["python", "run.py"], {"run.py": script})
    points = [event.point for event in run.of(MemoryEvent)]
    assert points[0] == "start"
    assert points[-1] == "end"
    clock = [event for event in run.of(MemoryEvent) if event.point == "clock"]
    assert len(clock) >= 2
    assert max(event.bytes["rss"] for event in clock) > 64 * 2**20
    last = run.of(MemoryEvent)[-1].bytes
    assert last["rss_peak"] > 64 * 2**20 > last["rss"]


def test_the_sampling_thread_is_no_thread_of_the_script(launch):
    code = (
        "import os, threading, warnings\n"
        "warnings.simplefilter('error')\n"
        "print(threading.active_count())\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
    )
    run = launch(["python", "-c", code])
    assert (run.status, run.stdout, run.stderr) == (0, "1\n", "")
