"""Which device a run may use: what is hidden, and why one cannot be had."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from reprobundle.recorder.availability import cuda_obstacle, mps_obstacle
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


def nothing(name):
    return False


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


@pytest.mark.parametrize(
    ("torch", "platform", "switches", "cause"),
    [
        (fake(), "linux", (), "MPS exists on macOS only"),
        (fake(), "darwin", ("sysctl.proc_translated",), "Rosetta"),
        (fake(built=False), "darwin", (), "has no MPS"),
        (fake(macos=False), "darwin", (), "older than 14"),
        (fake(), "darwin", ("kern.hv_vmm_present",), "virtual machine"),
        (fake(), "darwin", (), "sandbox"),
    ],
)
def test_each_cause_why_mps_is_missing_has_its_remedy(torch, platform, switches, cause):
    told, remedy = mps_obstacle(torch, platform, lambda name: name in switches)
    assert cause in told
    assert remedy


def test_each_cause_why_cuda_is_missing_has_its_remedy(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert "neither CUDA nor ROCm" in cuda_obstacle(fake())[0]
    assert "no usable GPU" in cuda_obstacle(fake(cuda="12.8"))[0]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    cause, remedy = cuda_obstacle(fake(cuda="12.8"))
    assert "hides every GPU" in cause
    assert remedy == "unset CUDA_VISIBLE_DEVICES"


def test_a_device_that_is_there_has_no_obstacle():
    assert mps_obstacle(fake(available=True), "darwin", nothing) == ("", "")
    assert cuda_obstacle(fake(cuda="12.8", gpu=True)) == ("", "")
