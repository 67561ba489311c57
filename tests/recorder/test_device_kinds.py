"""One interface for all kinds of devices, and only documented functions behind it."""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from reprobundle.recorder import hardware
from reprobundle.recorder.hardware import device_kinds
from reprobundle.recorder.hardware.kind import DeviceKind
from reprobundle.recorder.hardware.obstacle import Machine

RECORDER = Path(hardware.__file__).parents[1]

# Function of torch.mps or torch.backends.mps → first release of torch that has it, by
# the ``__init__.py`` of both in the wheels of 2.0 to 2.15.
DOCUMENTED = {
    "synchronize": (2, 0),
    "get_rng_state": (2, 0),
    "set_rng_state": (2, 0),
    "manual_seed": (2, 0),
    "seed": (2, 0),
    "empty_cache": (2, 0),
    "set_per_process_memory_fraction": (2, 0),
    "current_allocated_memory": (2, 0),
    "driver_allocated_memory": (2, 0),
    "is_built": (2, 0),
    "is_available": (2, 0),
    "is_macos_or_newer": (2, 3),
    "device_count": (2, 4),
    "recommended_max_memory": (2, 5),
    "get_name": (2, 9),
    "get_core_count": (2, 9),
    # Documented as torch.mps.event.Event.
    "Event": (2, 1),
}
OLDEST_TORCH = (2, 9)


def fake(**answers):
    values = {
        "current_allocated_memory": 7,
        "driver_allocated_memory": 9,
        "recommended_max_memory": 11,
    }
    mps = {
        name: partial(int, value)
        for name, value in values.items()
        if name not in answers.get("without", ())
    }
    return SimpleNamespace(
        __version__="2.13.0",
        version=SimpleNamespace(cuda=answers.get("cuda"), hip=answers.get("hip")),
        mps=SimpleNamespace(**mps),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False)),
        cuda=SimpleNamespace(is_initialized=lambda: True),
    )


def asked_of_mps():
    """Yield each function of MPS's modules that the recorder calls, with its place."""
    for path in sorted(RECORDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (
                "mps",
                "torch.mps",
                "self._torch.mps",
                "torch.backends.mps",
                "backends.mps",
                "torch().backends.mps",
            ):
                yield path.name, node.attr


def test_every_kind_answers_all_that_is_asked_of_one():
    wanted = {name for name in vars(DeviceKind) if not name.startswith("_")}
    wanted |= set(DeviceKind.__annotations__)
    assert len(wanted) == 14
    for kind in device_kinds(fake()):
        assert (
            wanted - {name for name in dir(kind) if not name.startswith("_")} == set()
        )


@pytest.mark.parametrize(
    ("platform", "name"), [("darwin", "mps"), ("linux", "mps-standin")]
)
def test_the_platform_tells_an_apple_gpu_from_its_stand_in(platform, name):
    kinds = device_kinds(fake(), platform)
    assert [kind.type for kind in kinds] == ["cpu", "cuda", "mps"]
    assert [kind.name for kind in kinds] == ["cpu", "cuda", name]
    facts = {fact: read for fact, _, read in kinds[2].facts(used=True)}
    assert facts["torch.mps.standin"]() is (platform != "darwin")


def test_only_documented_functions_of_mps_are_called():
    found = set(asked_of_mps())
    assert ("mps.py", "synchronize") in found
    undocumented = {
        one for one in found if DOCUMENTED.get(one[1], (9, 9)) > OLDEST_TORCH
    }
    # Asked for by attribute: a generator that no released torch documents.
    assert undocumented == set()


def test_a_counter_that_an_older_torch_lacks_is_left_out():
    mps = device_kinds(fake(without=["recommended_max_memory"]))[2]
    assert dict(mps.counters(whole=True)) == {"mps_allocated": 7, "mps_driver": 9}
    mps = device_kinds(fake())[2]
    assert dict(mps.counters(whole=False)) == {"mps_allocated": 7, "mps_driver": 9}
    assert dict(mps.counters(whole=True))["mps_recommended_max"] == 11


@pytest.mark.parametrize("asks_the_driver", [True, False])
def test_every_gpu_that_is_used_is_waited_for_and_no_other(asks_the_driver):
    waited = []
    used = {1, 3}
    torch = fake(cuda="13.0")
    torch._C = SimpleNamespace()
    if asks_the_driver:
        torch._C._cuda_hasPrimaryContext = used.__contains__
    torch.cuda = SimpleNamespace(
        is_initialized=lambda: True,
        synchronize=lambda number=1: waited.append(number),
        device_count=lambda: 4,
        current_device=lambda: 1,
        memory_reserved=lambda number: 512 * (number in used),
    )
    device_kinds(torch)[1].synchronize()
    assert waited == [1, 3]


def test_a_build_for_rocm_is_a_build_for_cuda():
    for answers in ({"cuda": "13.0"}, {"hip": "6.4"}):
        cuda = device_kinds(fake(**answers))[1]
        assert cuda.starts_unseen
        assert cuda.is_used(frozenset())
    # Without either nothing of torch.cuda is asked.
    assert not device_kinds(fake())[1].is_used({"cuda"})


def test_the_cpu_is_never_waited_for_and_never_missing():
    cpu = device_kinds(fake())[0]
    cpu.synchronize()
    assert cpu.is_used(frozenset())
    assert dict(cpu.counters(whole=True)) == {}
    assert cpu.obstacle(Machine(platform="darwin", run=lambda argv: "")) is None


def test_cuda_is_asked_by_the_function_that_was_there_before_a_mapping():
    torch = fake(cuda="13.0")
    torch.cuda.is_initialized = lambda: False
    cuda = next(kind for kind in device_kinds(torch) if kind.name == "cuda")
    torch.cuda.is_initialized = lambda: True  # as --map-device answers
    assert not cuda.is_used(frozenset())
    assert not cuda.held_tensors()
