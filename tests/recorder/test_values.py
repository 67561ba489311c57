"""Values that a script records, and the functions it may call."""

import json
import struct
import subprocess
import sys

import pytest

from reprobundle.recorder import tensor_file
from reprobundle.run.events import Device, Phases, Trouble, Value, read_events

from .conftest import RECORDER, plain_environment

SIMPLE = """
import math, os, pathlib
import reprobundle
metrics = {'loss': 0.5, 'bad': math.nan, 'best': -math.inf, 3: (1, 'é')}
reprobundle.record('metrics', metrics)
reprobundle.record('metrics', True)
os.chdir('/')
reprobundle.record('text', 'lines\\nof text')
odd = {'set': {2, 1}, 'path': pathlib.Path('a/b'), 'bytes': b'\\x01'}
reprobundle.record('odd', odd)
reprobundle.record('function', print)
with reprobundle.phase('epoch'):
    pass
try:
    with reprobundle.phase('epoch'):
        raise KeyError
except KeyError:
    print('raised', reprobundle.device(), reprobundle.__version__)
"""


def read(run, event):
    return json.loads((run.session / "values" / event.file).read_text())


@pytest.fixture(scope="module", params=["shim", "folder", "package"])
def simple(launch, request):
    # Somebody keeps bundles in a folder of our name, beside the script.
    kept = {"reprobundle/paper.rpb.zip": ""} if request.param == "folder" else {}
    project = launch.project({"run.py": SIMPLE, **kept})
    session = launch.session(project, seed=None, device="mps")
    paths = [str(session / "enter")]
    if request.param == "package":
        paths.append(str(RECORDER.parents[1]))
    variables = {"PYTHONPATH": ":".join(paths), "REPROBUNDLE_SESSION": str(session)}
    # Only an interpreter without our package shows whether the shim works.
    argv = ["python", "-c", _without_package(request.param != "package") + SIMPLE]
    done = launch(argv, project=project, variables=variables)
    return done, session


def _without_package(wanted):
    if not wanted:
        return ""
    return (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
        "sys.meta_path[:] = [f for f in sys.meta_path"
        " if 'editable' not in getattr(f, '__module__', type(f).__module__)]\n"
    )


def _events(session, kind):
    (file,) = read_events(session / "events")
    return [event for event in file.events if isinstance(event, kind)]


def test_plain_values_are_kept_as_json(simple):
    run, session = simple
    assert (run.status, run.stderr) == (0, "")
    values = _events(session, Value)
    names = [value.name for value in values]
    assert names == ["metrics", "metrics#2", "text", "odd"]
    contents = [json.loads((session / "values" / v.file).read_text()) for v in values]
    assert contents == [
        {"loss": 0.5, "bad": "nan", "best": "-inf", "3": [1, "é"]},
        True,
        "lines\nof text",
        {"set": [1, 2], "path": "a/b", "bytes": "01"},
    ]


def test_a_value_without_a_form_is_trouble_and_the_run_goes_on(simple):
    (trouble,) = _events(simple[1], Trouble)
    assert trouble.part == "record"
    assert "builtin_function_or_method cannot be recorded" in trouble.message


def test_named_phases_count_also_when_they_raise(simple):
    phases = _events(simple[1], Phases)[-1].phases
    assert [(phase.name, phase.count) for phase in phases] == [("epoch", 2)]


def test_the_device_is_the_one_asked_for(simple):
    run, _ = simple
    assert run.stdout == "raised mps 0.1.0\n"


def test_without_a_recorder_the_functions_do_nothing():
    code = (
        "import sys, reprobundle as r\n"
        "r.record('a', object())\n"
        "with r.phase('b'): print(r.device(), sorted({'torch', 'json', 're', 'typing',"
        " 'contextlib', 'msgspec'} & (set(sys.modules) - before)))\n"
    )
    environment = plain_environment()
    environment["PYTHONPATH"] = str(RECORDER.parents[1])
    done = subprocess.run(
        [sys.executable, "-c", "import sys; before = set(sys.modules)\n" + code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout == "cpu []\n"
    environment["REPROBUNDLE_DEVICE"] = "cuda"
    done = subprocess.run(
        [sys.executable, "-c", "import reprobundle; print(reprobundle.device())"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout == "cuda\n"


TENSORS = """
import numpy as np, torch
import reprobundle
record = reprobundle.record
base = torch.tensor([[0.0, -0.0, 1.5], [float('nan'), float('inf'), -2.0]])
for name in DTYPES:
    record(name, base.nan_to_num(0, 1, 1).to(getattr(torch, name)))
record('float32 specials', base)
record('transposed', base.t())
record('strided', torch.arange(10)[::3])
record('scalar', torch.tensor(7))
record('empty', torch.empty(2, 0, 3))
record('conjugate', torch.tensor([1 + 2j]).conj())
record('complex128', torch.tensor([1 + 2j], dtype=torch.complex128))
record('parameter', torch.nn.Parameter(torch.ones(2)))
record('sparse', torch.eye(2).to_sparse())
record('bool', torch.tensor([True, False]))
record('numpy', np.arange(6, dtype='>i4').reshape(2, 3)[:, ::2])
record('numpy empty', np.zeros((0, 2)))
record('numpy complex', np.array([[1 - 1j]]))
record('numpy number', np.float32(0.1))
record('numpy bool', np.array([True, False]))
record('numpy text', np.array(['a', 'bc']))
record('nested', {'loss': torch.tensor(0.25), 'list': [np.int64(3), np.array([1, 2])]})
print(torch.is_grad_enabled(), torch.get_rng_state().sum().item(), np.random.rand())
"""
DTYPES = (
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)


@pytest.fixture(scope="module")
def tensors(launch):
    return launch(["python", "-c", f"DTYPES = {DTYPES!r}\n" + TENSORS], seed=1)


def raw(run, name):
    """Return dtype, shape and bytes of a recorded tensor, by another reader."""
    from safetensors import deserialize

    (event,) = (event for event in run.of(Value) if event.name == name)
    content = (run.session / "values" / event.file).read_bytes()
    ((key, entry),) = deserialize(content)
    assert key == "value"
    return entry["dtype"], entry["shape"], bytes(entry["data"])


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


@pytest.mark.torch
def test_every_dtype_is_kept_as_it_is(tensors):
    assert (tensors.status, tensors.stderr, tensors.troubles()) == (0, "", [])
    for name in DTYPES:
        dtype, shape, data = raw(tensors, name)
        assert (dtype, shape) == (tensor_file.DTYPES[name], [2, 3]), name
        assert len(data) % 6 == 0


@pytest.mark.torch
def test_values_survive_bit_for_bit(tensors):
    _, _, data = raw(tensors, "float32 specials")
    numbers = struct.unpack("<6I", data)
    assert numbers[:3] == (0, 0x80000000, 0x3FC00000)
    assert numbers[4] == 0x7F800000
    assert raw(tensors, "bfloat16")[2][4:6] == b"\xc0\x3f"
    assert floats(raw(tensors, "transposed")[2])[4] == 1.5
    assert struct.unpack("<4q", raw(tensors, "strided")[2]) == (0, 3, 6, 9)


@pytest.mark.torch
def test_unusual_shapes_and_layouts_are_kept(tensors):
    assert raw(tensors, "scalar") == ("I64", [], (7).to_bytes(8, "little"))
    assert raw(tensors, "empty") == ("F32", [2, 0, 3], b"")
    assert floats(raw(tensors, "conjugate")[2]) == (1, -2)
    assert raw(tensors, "complex128")[:2] == ("F64", [1, 2])
    assert floats(raw(tensors, "parameter")[2]) == (1, 1)
    assert floats(raw(tensors, "sparse")[2]) == (1, 0, 0, 1)
    assert raw(tensors, "bool") == ("BOOL", [2], b"\1\0")


@pytest.mark.torch
def test_numpy_arrays_are_kept_too(tensors):
    dtype, shape, data = raw(tensors, "numpy")
    assert (dtype, shape) == ("I32", [2, 2])
    assert data == b"".join(n.to_bytes(4, "little") for n in (0, 2, 3, 5))
    assert raw(tensors, "numpy empty") == ("F64", [0, 2], b"")
    assert raw(tensors, "numpy complex")[:2] == ("F64", [1, 1, 2])
    assert raw(tensors, "numpy bool") == ("BOOL", [2], b"\1\0")


@pytest.mark.torch
def test_numbers_in_mappings_become_plain_numbers(tensors):
    events = {event.name: event for event in tensors.of(Value)}
    assert read(tensors, events["nested"]) == {"loss": 0.25, "list": [3, [1, 2]]}
    assert read(tensors, events["numpy number"]) == 0.10000000149011612
    assert read(tensors, events["numpy text"]) == ["a", "bc"]


@pytest.mark.torch
def test_recorded_values_count_as_seen_on_their_device(tensors):
    (device,) = tensors.of(Device)
    assert (device.device, device.seen_on) == ("cpu", "recorded value")


def test_a_half_written_value_leaves_no_file(tmp_path):
    class Failing:
        dtype, shape, note = "F32", (1,), ""

        @property
        def data(self):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        tensor_file.write(str(tmp_path / "a.safetensors"), {"value": Failing()})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
