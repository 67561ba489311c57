"""Facts about Python, the system and the machine."""

import os
import platform
import sys
from typing import Any

import pytest

from reprobundle.recorder import (
    environment,
    libraries,
    linux_state,
    macos,
    switches,
    variables,
)
from reprobundle.recorder.facts import UnknownFactError, measured, send
from reprobundle.recorder.hardware import device_kinds
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
        self.troubles = []

    def emit_all(self, events):
        self.events += events

    def trouble(self, part, error):
        self.troubles.append((part, str(error)))


class Anything:
    """A torch that has every attribute; what it answers is never asked here."""

    def __getattr__(self, name):
        return Anything()


FAKE: Any = Anything()
PROBES = {
    probe[0]: probe
    for probes in (
        environment.python_probes(),
        variables.changed_probes({"OMP_NUM_THREADS": "77"}),
        environment.linux_probes(),
        linux_state.probes(),
        macos.probes(lambda argv: ""),
        libraries.numpy_probes(FAKE),
        libraries.torch_probes(FAKE),
        switches.switch_probes(FAKE),
        *(kind.facts(used=True) for kind in device_kinds(FAKE)),
        libraries.end_probes(),
    )
    for probe in probes
}


class Panic(BaseException):
    """What a Rust extension raises."""


@pytest.mark.parametrize("broken", sorted(PROBES))
@pytest.mark.parametrize(
    "error", [OSError("gone"), ValueError("odd\nlines"), SystemExit(3), Panic("at x")]
)
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


def test_the_keyboard_still_ends_the_run_while_facts_are_read():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(interrupted)


def test_probes_that_cannot_be_had_lose_nothing_before_them():
    def probes():
        yield "first", "x", lambda: 1
        raise AttributeError("module 'torch' has no attribute 'version'")

    session: Any = Heard()
    assert send(session, probes()) == {"first": 1}
    assert session.troubles == [("facts", "module 'torch' has no attribute 'version'")]


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
hw.optional.arm.FEAT_FP16: 1
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_SME: 0
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
machdep.cpu.features: FPU SSE4.2 FMA AVX1.0 F16C
machdep.cpu.leaf7_features: RDWRFSGS AVX2 BMI2
"""
SW_VERS = "ProductName:\t\tmacOS\nProductVersion:\t\t14.6.1\nBuildVersion:\t\t23G93\n"


PROFILE = """{
  "SPDisplaysDataType" : [
    {
      "_name" : "kHW_AppleM3ProItem",
      "spdisplays_mtlgpufamilysupport" : "spdisplays_metal3",
      "spdisplays_vendor" : "sppci_vendor_Apple",
      "sppci_bus" : "spdisplays_builtin",
      "sppci_cores" : "14",
      "sppci_model" : "Apple M3 Pro"
    }
  ],
  "SPHardwareDataType" : [
    {
      "_name" : "hardware_overview",
      "chip_type" : "Apple M3 Pro",
      "machine_model" : "Mac15,6",
      "number_processors" : "proc 11:5:6",
      "physical_memory" : "18 GB",
      "platform_UUID" : "8C1D-SECRET",
      "serial_number" : "SERIAL-SECRET"
    }
  ]
}
"""
BATTERY = """Now drawing from 'Battery Power'
 -InternalBattery-0 (id=22806627)\t87%; discharging; 5:58 remaining present: true
"""
SETTINGS = """System-wide power settings:
Currently in use:
 standby              1
 lowpowermode         1
 displaysleep         10
"""
PS = """    1   0.0   7232 launchd
 4312  97.4 524288 Google Chrome Helper (Renderer)
  387  25,0   1024 mds_stores
90117   3.1 3145728 python3.11
"""
OUTPUTS = {
    "sw_vers": SW_VERS,
    "system_profiler": PROFILE,
    "ps": PS,
    "pmset -g": SETTINGS,
    "pmset -g batt": BATTERY,
}


def mac_run(sysctl=SYSCTL, **others):
    """Return what stands in for running the commands of a Mac."""

    def run(argv):
        name = argv[0].rpartition("/")[2]
        if name == "sysctl":
            return sysctl
        return {**OUTPUTS, **others}[
            " ".join([name, *argv[1:]]) if name == "pmset" else name
        ]

    return run


def mac_facts(sysctl=SYSCTL, **others):
    run = mac_run(sysctl, **others)
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
    assert facts["cpu.flags"] == ["FEAT_BF16", "FEAT_DotProd", "FEAT_FP16"]
    assert facts["machine.chip"] == "Apple M3 Pro"
    assert facts["gpu.models"] == ["Apple M3 Pro"]
    assert facts["gpu.cores"] == 14
    assert facts["gpu.metal"] == "spdisplays_metal3"
    assert facts["state.power_source"] == "battery"
    assert facts["state.low_power_mode"] is True
    assert facts["state.running_processes"] == [
        "Google Chrome Helper (Renderer) 97 %",
        "mds_stores 25 %",
    ]
    assert facts["state.large_processes"] == ["python3.11 3.0 GiB"]


def test_serial_numbers_of_a_mac_are_never_stored():
    assert "SECRET" not in str(mac_facts())


def test_a_mac_with_a_high_power_mode_is_not_in_low_power():
    facts = mac_facts(**{"pmset -g": " powermode            2\n"})
    assert facts["state.low_power_mode"] == (False, "")


@pytest.mark.parametrize(
    ("output", "name", "reason"),
    [
        (
            {"system_profiler": "{}"},
            "gpu.cores",
            "system_profiler lists no sppci_cores",
        ),
        ({"system_profiler": "{"}, "gpu.cores", ""),
        ({"pmset -g batt": ""}, "state.power_source", "pmset names no power source"),
        ({"pmset -g": ""}, "state.low_power_mode", "this Mac has no low power mode"),
        ({"ps": "a b c d\n"}, "state.running_processes", "ValueError"),
    ],
)
def test_output_of_another_form_is_a_reason(output, name, reason):
    value, unknown = mac_facts(**output)[name]
    assert value is None
    assert unknown
    assert reason in unknown


def test_what_takes_half_a_second_is_asked_by_one_process_only():
    calls = []

    def run(argv):
        calls.append(argv[0])
        return mac_run()(argv)

    for _, _, read in macos.probes(run, moment=False):
        measured(read)
    assert sorted(calls) == ["/usr/bin/sw_vers", "/usr/sbin/sysctl"]


def test_tells_a_translated_process():
    translated = SYSCTL.replace("proc_translated: 0", "proc_translated: 1")
    assert mac_facts(translated)["machine.rosetta"] == (True, "")


def test_an_intel_mac_does_not_know_rosetta_and_says_so_for_the_rest():
    facts = mac_facts(INTEL)
    assert facts["machine.rosetta"] == (False, "")
    assert facts["cpu.physical"] == (8, "")
    assert facts["cpu.flags"][0] == ["AVX1.0", "AVX2", "F16C", "FMA", "SSE4.2"]
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
        calls.append(" ".join(argv[:3]))
        return mac_run()(argv)

    for _, _, read in macos.probes(run):
        measured(read)
    assert len(calls) == len(set(calls)) == 6


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


@pytest.fixture
def root(tmp_path):
    """Return a folder that stands for / on a machine with three processes."""

    def process(pid, name, state, pages):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        fields = [state, *["0"] * 20, str(pages), *["0"] * 28]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")

    process(900001, "busy) R (x", "R", 10)
    process(900002, "waits", "D", 2**20)
    process(900003, "idle", "S", 10)
    (tmp_path / "proc/meminfo").write_text("MemTotal:  16777216 kB\n")
    pressure = tmp_path / "proc/pressure"
    pressure.mkdir()
    (pressure / "memory").write_text(
        "some avg10=12.50 avg60=1.00 avg300=0.00 total=5\n"
        "full avg10=3.25 avg60=0.00 avg300=0.00 total=2\n"
    )
    (pressure / "io").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n")
    return tmp_path


def test_reads_what_the_machine_is_doing(root):
    facts = {name: measured(read) for name, _, read in linux_state.probes(str(root))}
    assert facts["state.pressure_memory_some_percent"] == (12.5, "")
    assert facts["state.pressure_memory_full_percent"] == (3.25, "")
    assert facts["state.pressure_cpu_some_percent"] == (
        None,
        "this kernel keeps no pressure stall information",
    )
    assert facts["state.pressure_io_full_percent"][1] == (
        "the pressure file has no line 'full'"
    )
    assert facts["state.running_processes"] == (["busy) R (x", "waits"], "")
    assert facts["state.large_processes"] == (["waits 4.0 GiB"], "")
    assert linux_state.large_processes(str(root), numbered=True) == [
        "waits 4.0 GiB (pid 900002)"
    ]
    assert "waits (pid 900002)" in linux_state.running_processes(
        str(root), numbered=True
    )
    assert "no power supply" in facts["state.power_source"][1]
    assert "clock rates" in facts["cpu.governor"][1]


def test_reads_power_and_governor(root):
    supply = root / "sys/class/power_supply/AC"
    supply.mkdir(parents=True)
    (supply / "online").write_text("0\n")
    clock = root / "sys/devices/system/cpu/cpu0/cpufreq"
    clock.mkdir(parents=True)
    (clock / "scaling_governor").write_text("powersave\n")
    assert linux_state.power_source(str(root)) == "battery"
    assert linux_state.governor(str(root)) == "powersave"
    (supply / "online").write_text("1\n")
    assert linux_state.power_source(str(root)) == "mains"


@linux_only
def test_one_process_of_a_run_tells_about_the_moment(launch):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])"
    run = launch(["python", "-c", code])
    names = [fact.name for fact in run.of(FactEvent)]
    assert names.count("python.version") == 2
    assert names.count("state.running_processes") == 1
    assert names.count("state.pressure_memory_some_percent") == 1


def test_variables_in_force_are_those_at_the_import_of_torch(launch):
    files = {
        "torch.py": "import os\nos.environ['OMP_NUM_THREADS'] = '9'\n",
        "run.py": (
            "import os\n"
            "os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'\n"
            "os.environ.pop('MKL_NUM_THREADS')\n"
            "import torch\n"
            "os.environ['PYTORCH_MPS_FAST_MATH'] = '1'\n"
        ),
    }
    variables = {"MKL_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}
    run = launch(["python", "run.py"], files, variables=variables)
    assert run.status == 0, run.stderr
    assert run.fact("at_torch.env.PYTORCH_ENABLE_MPS_FALLBACK") == "1"
    assert run.fact("at_torch.env.MKL_NUM_THREADS") == "(unset)"
    assert run.fact("env.MKL_NUM_THREADS") == "3"
    # Set while torch was imported, and after: too late to be in force.
    assert run.fact("at_torch.env.OMP_NUM_THREADS") is None
    assert set(run.fact("at_torch.env.changed")) == {
        "PYTORCH_ENABLE_MPS_FALLBACK",
        "MKL_NUM_THREADS",
    }


CONFIG = """PyTorch built with:
  - GCC 13.3
  - Build settings: BLAS_INFO=mkl, BUILD_TYPE=Release, LAPACK_INFO=open, USE_CUDA=0,
"""
PARALLEL = """ATen/Parallel:
\tat::get_num_threads() : 1
OpenMP 201511 (a.k.a. OpenMP 4.5)
\tomp_get_max_threads() : 1
Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605
\tmkl_get_max_threads() : 4
"""


def test_the_library_for_matrices_is_read_from_what_torch_prints():
    assert libraries.build_setting(CONFIG) == "mkl"
    assert libraries.build_setting(CONFIG, "LAPACK_INFO") == "open"
    assert libraries.blas_threads(PARALLEL) == 4
    with pytest.raises(UnknownFactError, match="name no BLAS_INFO"):
        libraries.build_setting("PyTorch built with:\n")
    with pytest.raises(UnknownFactError, match="only builds with MKL"):
        libraries.blas_threads("ATen/Parallel:\n")


# Breaks every probe in turn inside a run with torch, and computes in between.
BREAKING = """
import sys, torch
torch.manual_seed(0)
package = sys.modules.get('_reprobundle_recorder')
def break_all():
    from _reprobundle_recorder import facts
    recorder = package._active
    real = facts.measured
    broken = []
    def measured(read, place=[0]):
        place[0] += 1
        if place[0] == wanted:
            broken.append(wanted)
            def read():
                raise MemoryError('probe %d is broken' % wanted)
        return real(read)
    facts.measured = measured
    wanted = 0
    total = 1000
    while wanted < total:
        wanted += 1
        measured.__defaults__[0][0] = 0
        recorder._send_facts()
        recorder.libraries._switches = {}
        recorder.libraries.on_torch(torch)
        recorder.libraries.report_end()
        total = measured.__defaults__[0][0]
    facts.measured = real
    assert broken == list(range(1, total + 1)), broken
    recorder.session.emit('fact', name='broken.probes', value=total, source='test')
before = torch.randn(3)
if package:
    break_all()
print(before.tolist(), torch.randn(3).tolist(), torch.get_num_threads())
sys.exit(7)
"""


@linux_only
def test_no_broken_probe_changes_result_or_exit_status(launch):
    plain = launch(["python", "run.py"], {"run.py": BREAKING}, recorded=False)
    run = launch(["python", "run.py"], {"run.py": BREAKING})
    assert (plain.status, run.status) == (7, 7), run.stderr
    assert (run.stdout, run.stderr) == (plain.stdout, plain.stderr)
    broken = run.fact("broken.probes")
    assert isinstance(broken, int)
    assert broken > 100
    lost = {fact.unknown for fact in run.of(FactEvent) if "is broken" in fact.unknown}
    assert len(lost) == broken
