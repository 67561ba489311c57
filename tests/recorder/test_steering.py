"""Which device a run may use: what is hidden, and why one cannot be had."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from reprobundle.recorder import missing_mps
from reprobundle.recorder.availability import obstacle as obstacle_of
from reprobundle.recorder.facts import measured
from reprobundle.recorder.hardware.cuda_obstacle import cuda_obstacle
from reprobundle.recorder.hardware.mps_obstacle import mps_obstacle, oldest_macos
from reprobundle.recorder.hardware.obstacle import Machine
from reprobundle.recorder.hiding import hide_accelerators


def fake(*, available=False, built=True, macos=True, cuda=None, gpu=False):
    """A torch that answers as told."""
    mps = SimpleNamespace(
        __name__="torch.backends.mps",
        is_available=lambda: available,
        is_built=lambda: built,
        is_macos_or_newer=lambda major, minor: macos,
    )
    accelerator = SimpleNamespace(
        __name__="torch.accelerator",
        is_available=lambda: available or gpu,
        current_accelerator=lambda: "mps",
    )
    return SimpleNamespace(
        __version__="2.13.0",
        backends=SimpleNamespace(mps=mps),
        accelerator=accelerator,
        cuda=SimpleNamespace(is_available=lambda: gpu),
        version=SimpleNamespace(cuda=cuda, hip=None),
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_mps_is_hidden_from_a_script_that_was_asked_for_another_device(device):
    torch = fake(available=True)
    hide_accelerators(torch, device)
    assert torch.backends.mps.is_available() is False


def test_on_the_cpu_no_accelerator_is_the_current_one():
    torch = fake(available=True)
    hide_accelerators(torch, "cpu")
    assert torch.accelerator.is_available() is False
    assert torch.accelerator.current_accelerator() is None


@pytest.mark.parametrize("device", ["as-is", "mps"])
def test_nothing_is_hidden_that_was_asked_for_or_left_open(device):
    torch = fake(available=True)
    hide_accelerators(torch, device)
    assert torch.backends.mps.is_available() is True
    assert torch.accelerator.current_accelerator() == "mps"


ARM = "hw.optional.arm64: 1\nkern.hv_vmm_present: 0\nsysctl.proc_translated: 0\n"
INTEL = "kern.hv_vmm_present: 0\n"
ROSETTA = ARM.replace("translated: 0", "translated: 1")
GUEST = ARM.replace("present: 0", "present: 1")
METAL = "Graphics/Displays:\n    Apple M2:\n      Metal Support: Metal 3\n"
NO_METAL = "Graphics/Displays:\n    Display:\n      VRAM (Dynamic, Max): 5 MB\n"


def mac(sysctl=ARM, displays=METAL, macos="13.7.4\n"):
    """What the commands of a Mac print."""
    answers = {"sysctl": sysctl, "system_profiler": displays, "sw_vers": macos}
    return lambda argv: answers[argv[0].rpartition("/")[2]]


def asked(torch, device, platform, run=None, environ=None, tried=True):
    machine = Machine(
        platform=platform, run=run or mac(), environ=environ or {}, tried=tried
    )
    found = obstacle_of(torch, device, machine)
    return (found.cause, found.remedy) if found else ("", "")


def obstacle(torch, platform="darwin", run=None, environ=None, tried=True):
    return asked(torch, "mps", platform, run, environ, tried)


@pytest.mark.parametrize(
    ("torch", "run", "environ", "cause"),
    [
        (fake(built=False), mac(ROSETTA), {}, "Rosetta"),
        (fake(built=False), mac(INTEL), {}, "Intel processor"),
        (fake(built=False), mac(), {}, "has no MPS"),
        (fake(macos=False), mac(), {}, "macOS 13.7.4 is older than 14.0"),
        (fake(), mac(GUEST), {}, "virtual machine"),
        (fake(), mac(), {"CODEX_SANDBOX": "seatbelt"}, "CODEX_SANDBOX is set"),
        (fake(), mac(), {"APP_SANDBOX_CONTAINER_ID": "x"}, "sandbox without the GPU"),
        (fake(), mac(displays=NO_METAL), {}, "no GPU with Metal"),
        (fake(), mac(), {}, "without a login session"),
        (fake(), lambda argv: "", {}, "without a login session"),
    ],
)
def test_each_cause_why_mps_is_missing_has_its_remedy(torch, run, environ, cause):
    told, remedy = obstacle(torch, run=run, environ=environ)
    assert cause in told
    assert remedy


def test_the_page_about_macs_names_every_cause_as_it_is_printed():
    page = (Path(__file__).parents[2] / "docs/mac.md").read_text(encoding="utf-8")
    text = " ".join(page.split())
    torch = fake(available=True)
    torch.ones = lambda *shape, device: SimpleNamespace(item=lambda: 0.0)
    causes = [
        obstacle(fake(), "linux"),
        obstacle(fake(built=False), run=mac(ROSETTA)),
        obstacle(fake(built=False), run=mac(INTEL)),
        obstacle(fake(built=False)),
        obstacle(fake(macos=False)),
        obstacle(fake(), run=mac(GUEST)),
        obstacle(fake(), environ={"CODEX_SANDBOX": "seatbelt"}),
        obstacle(fake(), run=mac(displays=NO_METAL)),
        obstacle(fake()),
        obstacle(torch),
    ]
    varying = ("linux", "13.7.4", "14.0", "2.13.0", "CODEX_SANDBOX")
    for cause, _ in causes:
        told = cause.partition(" (it does")[0]
        for word in varying:
            told = told.replace(word, "…")
        assert told in text, told


def test_off_a_mac_no_command_is_asked():
    told, remedy = obstacle(fake(), "linux", run=None)
    assert told == "MPS exists on macOS only, this is linux"
    assert remedy == "replay on a Mac"


@pytest.mark.parametrize(
    ("version", "oldest"),
    [
        ("2.5.1", (12, 3)),
        ("2.8.0", (13, 0)),
        ("2.9.0", (14, 0)),
        ("2.14.0+cpu", (14, 0)),
        ("2.15.0a0+gitd0f2af8", (15, 0)),
        ("3.0.0", (15, 0)),
        ("unknown", (12, 3)),
    ],
)
def test_each_torch_needs_its_own_macos(version, oldest):
    assert oldest_macos(version) == oldest


def test_a_device_that_is_offered_and_holds_no_tensor_is_no_device():
    torch = fake(available=True)

    def fail(*shape, device):
        raise RuntimeError("MPS backend out of memory (MPS allocated: 0 bytes)")

    torch.ones = fail
    told, remedy = obstacle(torch, run=mac(GUEST))
    assert "virtual machine whose GPU cannot run MPS" in told
    assert "MPS backend out of memory" in told
    assert remedy
    assert "first tensor fails" in obstacle(torch)[0]
    # In the user's own process no tensor is made to find out.
    assert obstacle(torch, tried=False) == ("", "")


def test_a_device_that_loses_what_it_was_given_is_no_device():
    torch = fake(available=True)
    torch.ones = lambda *shape, device: SimpleNamespace(item=lambda: 0.0)
    assert "does not give back" in obstacle(torch)[0]


# What torch says when it initialises CUDA (c10/cuda/CUDAFunctions.cpp).
NO_DRIVER = (
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU "
    "and installed a driver"
)
OLD_DRIVER = (
    "The NVIDIA driver on your system is too old (found version 12080). Please update"
)
NO_GPU = "No CUDA GPUs are available"
BROKEN = "CUDA unknown error - this may be due to an incorrectly set up environment"
HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}


def without_gpu(words, cuda="13.0"):
    """A torch that is built for CUDA and cannot start it."""
    torch = fake(cuda=cuda)

    def init():
        raise RuntimeError(words)

    torch.cuda.init = init
    return torch


@pytest.mark.parametrize(
    ("torch", "environ", "key", "cause", "remedy"),
    [
        (fake(), HIDDEN, "build-without-cuda", "neither CUDA nor ROCm", "install a"),
        (without_gpu(NO_GPU), HIDDEN, "cuda-hidden", "='' leaves", "unset CUDA_V"),
        (
            without_gpu(NO_GPU),
            {"CUDA_VISIBLE_DEVICES": "7"},
            "cuda-hidden",
            "CUDA_VISIBLE_DEVICES='7' leaves torch no GPU",
            "unset CUDA_VISIBLE_DEVICES",
        ),
        (
            without_gpu("No HIP GPUs are available"),
            {"HIP_VISIBLE_DEVICES": "-1"},
            "cuda-hidden",
            "HIP_VISIBLE_DEVICES='-1'",
            "unset HIP_VISIBLE_DEVICES",
        ),
        # Where there is no driver, no variable helps.
        (without_gpu(NO_DRIVER), HIDDEN, "no-cuda-driver", "no driver", "install it"),
        (without_gpu(NO_DRIVER), {}, "no-cuda-driver", "no driver", "nvidia-smi"),
        (
            without_gpu(OLD_DRIVER),
            {},
            "old-cuda-driver",
            "the driver (CUDA 12.8) is too old for this build of torch (CUDA 13.0)",
            "update the driver, or install a build of torch for an older CUDA",
        ),
        (without_gpu(NO_GPU), {}, "no-cuda-gpu", "torch finds no GPU", "nvidia-smi"),
        (without_gpu(BROKEN), {}, "cuda-fails", "CUDA unknown error", "nvidia-smi"),
    ],
)
def test_each_cause_why_cuda_is_missing_has_its_remedy(
    torch, environ, key, cause, remedy
):
    here = Machine(platform="linux", run=mac(), environ=environ, tried=True)
    found = obstacle_of(torch, "cuda", here)
    assert found is not None
    assert found.key == key
    assert cause in found.cause
    assert remedy in found.remedy


def test_the_page_about_devices_names_every_cause_why_cuda_is_missing():
    page = (Path(__file__).parents[2] / "docs/devices.md").read_text(encoding="utf-8")
    source = Path(cuda_obstacle.__code__.co_filename).read_text(encoding="utf-8")
    keys = set(re.findall(r'Obstacle\(\s*"([a-z-]+)"', source))
    assert len(keys) == 6
    assert {key for key in keys if f"| `{key}` |" not in page} == set()


def test_in_the_process_of_the_user_cuda_is_not_started_to_find_out():
    torch = without_gpu(NO_DRIVER)
    torch.cuda.init = lambda: pytest.fail("started")
    here = Machine(platform="linux", run=mac(), environ={}, tried=False)
    found = obstacle_of(torch, "cuda", here)
    assert found is not None
    assert found.key == "no-cuda-gpu"


def test_a_device_that_is_there_has_no_obstacle():
    torch = fake(available=True)
    torch.ones = lambda *shape, device: SimpleNamespace(item=lambda: 1.0)
    assert obstacle(torch) == ("", "")
    assert asked(fake(cuda="12.8", gpu=True), "cuda", "linux") == ("", "")


def missing(torch, device="as-is", platform="darwin", **machine):
    """What the record of a run says about MPS, value or reason why it is unknown."""
    here = Machine(platform=platform, run=machine.get("run", mac()), environ={})
    at_end = missing_mps.probes_at_end(torch, device, here)
    return {name: measured(read) for name, _, read in at_end}


def test_a_run_without_mps_records_the_cause_with_key_and_remedy():
    found = missing(fake(built=False), run=mac(ROSETTA))
    assert found == {
        "torch.mps.missing": ("rosetta", ""),
        "torch.mps.missing_cause": (
            "this Python is an Intel program that runs translated (Rosetta)",
            "",
        ),
        "torch.mps.missing_remedy": (
            "install a Python for Apple Silicon and torch for it",
            "",
        ),
    }


def test_a_run_with_mps_records_that_it_is_not_missing():
    found = missing(fake(available=True))
    assert set(found.values()) == {(None, "MPS is there")}


@pytest.mark.parametrize(
    ("available", "key"), [(True, "hidden"), (False, "no-metal-device")]
)
def test_mps_that_was_hidden_is_told_from_mps_that_is_not_there(available, key):
    torch = fake(available=available)
    hide_accelerators(torch, "cpu")
    assert missing(torch, "cpu")["torch.mps.missing"] == (key, "")


def test_where_mps_may_not_be_asked_yet_nothing_is_said_about_it():
    asked: list[object] = []

    def run(argv):
        asked.append(argv)
        return ""

    torch = fake()
    torch.backends.mps.is_available = lambda: asked.append("available")
    for platform, built in (("darwin", False), ("darwin", True), ("linux", True)):
        torch.backends.mps.is_built = lambda built=built: built
        here = Machine(platform=platform, run=run)
        for _, _, read in missing_mps.probes_at_import(torch, here):
            assert measured(read) == (None, "asked only at the end of a process")
    assert asked == []
    torch.backends.mps.is_built = lambda: False
    here = Machine(platform="linux", run=lambda argv: "")
    names = {n: measured(r)[0] for n, _, r in missing_mps.probes_at_import(torch, here)}
    assert names["torch.mps.missing"] == "not-macos"


def test_every_key_of_a_cause_stands_on_the_page_about_macs():
    page = (Path(__file__).parents[2] / "docs/mac.md").read_text(encoding="utf-8")
    source = Path(mps_obstacle.__code__.co_filename).read_text(encoding="utf-8")
    source += Path(missing_mps.__file__).read_text(encoding="utf-8")
    keys = set(re.findall(r'Obstacle\(\s*"([a-z-]+)"', source))
    assert len(keys) == 11
    assert {key for key in keys if f"| `{key}` |" not in page} == set()
