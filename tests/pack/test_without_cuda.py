"""Why a command gets no CUDA under `pack`, and the ways on, with stand-in modules."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reprobundle.pack.without_cuda import cuda_advice

# A torch that has what the question needs, and answers as the folder says.
TORCH = """\
from types import SimpleNamespace
__version__ = "2.13.0"
version = SimpleNamespace(cuda={built!r}, hip=None)
__path__ = []
backends = SimpleNamespace(mps=None)
def _init():
    raise RuntimeError({words!r})
cuda = SimpleNamespace(is_available=lambda: {available}, init=_init)
"""
NO_GPU = "No CUDA GPUs are available"


@pytest.fixture
def advice(tmp_path, monkeypatch):
    """Return the advice for a run with such a torch."""

    def give(built="13.0", words=NO_GPU, available=False, **changes):
        text = TORCH.format(built=built, words=words, available=available)
        (tmp_path / "torch.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        run: Any = SimpleNamespace(
            python=Path(sys.executable),
            command=SimpleNamespace(environment=changes.pop("variables", {})),
            device="cuda",
            mapping="",
        )
        vars(run).update(changes)
        return cuda_advice(run)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return give


def test_hidden_gpus_are_to_be_shown_and_no_other_torch_is_advised(advice, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert advice() == (
        "CUDA_VISIBLE_DEVICES='' leaves torch no GPU: unset CUDA_VISIBLE_DEVICES; or "
        "leave cuda out of --device"
    )


def test_a_variable_of_the_command_itself_counts(advice):
    told = advice(variables={"CUDA_VISIBLE_DEVICES": "-1"}, device="as-is")
    assert told == (
        "CUDA_VISIBLE_DEVICES='-1' leaves torch no GPU: unset CUDA_VISIBLE_DEVICES; or "
        "have its calls mapped: --map-device cuda=cpu"
    )


def test_a_build_without_cuda_is_to_be_replaced(advice):
    assert advice(built=None).startswith(
        "this build of torch (2.13.0) has neither CUDA nor ROCm: install a build"
    )


def test_a_missing_driver_is_told_from_a_missing_gpu(advice):
    told = advice(words="Found no NVIDIA driver on your system.")
    assert told.startswith("torch finds no driver of a GPU: install it")
    assert advice().startswith("torch finds no GPU: see nvidia-smi")


def test_a_command_that_hides_cuda_by_itself_is_sent_to_look_there(advice):
    told = advice(available=True)
    assert told.startswith("torch can use CUDA here, so the command hides it")


def test_under_a_mapping_no_further_mapping_is_advised(advice):
    told = advice(mapping="cuda=cpu", device="cpu")
    assert told.startswith("what only CUDA can do is not mapped; torch finds no GPU")
    assert "--map-device" not in told


@pytest.mark.parametrize("python", [None, Path("/nowhere/python")])
def test_where_nobody_can_be_asked_no_cause_is_claimed(advice, python):
    assert advice(python=python) == (
        "take a build of torch with CUDA, on a machine with a GPU; or leave cuda out "
        "of --device"
    )
