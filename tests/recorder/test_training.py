"""What is said about a training loop, and that the loop does not notice."""

import random
import re
import sys

import pytest

from reprobundle.run.events import (
    AllocatorEvent,
    Device,
    Error,
    Generators,
    MemoryEvent,
    Open,
    Phases,
    Seed,
    ShapesEvent,
    Start,
    Value,
    WarningEvent,
)

pytestmark = pytest.mark.torch

LOOP = """
import random, sys
import numpy as np
import torch
from torch import nn
try:
    import reprobundle
except ImportError:
    reprobundle = None

random.seed(1); np.random.seed(2); torch.manual_seed(3)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
model = nn.Sequential(
    nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 3)
)
data = torch.utils.data.TensorDataset(torch.randn(96, 20), torch.randint(0, 3, (96,)))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast('cpu', dtype=torch.bfloat16, enabled=epoch == 2):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    schedule.step()

state = model.state_dict()
torch.save({'model': state, 'optimizer': optimizer.state_dict()}, 'model.pt')
torch.save(state, open('handle.pt', 'wb'))
torch.load('model.pt', weights_only=True)
from safetensors import safe_open
from safetensors.torch import load_file, save_file
save_file(state, 'model.safetensors')
load_file('model.safetensors')
with safe_open('model.safetensors', 'pt') as file:
    print(isinstance(file, safe_open), len(file.keys()), safe_open | None)
import warnings
float(loss)
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    scripted = torch.jit.trace(model.eval(), torch.zeros(2, 20))
    torch.jit.save(scripted, 'scripted.pt')
    scripted.save('method.pt')
    torch.jit.load('scripted.pt')
torch.arange(8, dtype=torch.float32).numpy().tofile('raw.bin')
print(torch.from_file('raw.bin', size=8).sum().item())

closure_optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
calls = 0
def closure():
    global calls
    calls += 1
    closure_optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss
print(closure_optimizer.step(closure).item().hex())

print('closure calls', calls)
import hashlib
drawn = torch.randn(1000, generator=torch.Generator().manual_seed(0)).tolist()
print('draws', hashlib.blake2b(repr(drawn).encode(), digest_size=8).hexdigest())
print('versions', torch.__version__, torch.version.git_version)
if reprobundle:
    with reprobundle.phase('own'):
        sum(range(1000))
    reprobundle.record('probabilities', torch.softmax(model(x), 1))
    reprobundle.record('probabilities', torch.zeros(0, 3))
torch.cuda.empty_cache()
print(torch.rand(3).tolist(), random.random(), np.random.rand())
print(torch.initial_seed(), torch.get_rng_state().sum().item())
"""


@pytest.fixture(scope="module")
def plain(launch):
    return launch(["python", "run.py"], {"run.py": LOOP}, recorded=False)


@pytest.fixture(scope="module")
def run(launch, plain):
    return launch(["python", "run.py"], {"run.py": LOOP})


def test_every_number_is_bit_identical_with_and_without_us(run, plain):
    assert plain.status == 0, plain.stderr
    assert run.status == 0, run.stderr
    assert run.stdout == plain.stdout
    own, alone = str(run.project), str(plain.project)
    assert run.stderr.replace(own, alone) == plain.stderr


def test_no_part_had_trouble(run):
    assert run.troubles() == []


def test_phases_are_counted_exactly(run):
    totals = {phase.name: phase for phase in run.of(Phases)[-1].phases}
    (calls,) = re.findall(r"closure calls (\d+)", run.stdout)
    # 18 batches; the call that ends an epoch is none. A step with a closure makes
    # passes of its own.
    assert totals["data"].count == 18
    assert totals["optimizer"].count == 19
    assert totals["backward"].count == 18 + int(calls)
    assert totals["forward"].count > totals["backward"].count
    assert totals["own"].count == 1
    assert totals["checkpoint"].count == 5
    # Two files of TorchScript.
    assert totals["export"].count == 2
    # Two linear layers, each with two draws inside, and one normalisation.
    assert totals["model"].count == 3
    # Nothing moves where there is only the CPU.
    assert "transfer" not in totals
    assert {phase.synchronized for phase in totals.values()} == {"cpu"}
    assert run.of(Phases)[-1].steps == 19


def test_a_step_with_a_closure_is_not_counted_twice(run):
    totals = {phase.name: phase for phase in run.of(Phases)[-1].phases}
    inside = sum(totals[name].total_ns for name in ("data", "forward", "optimizer"))
    (first, *_) = run.of(MemoryEvent)
    last = run.of(MemoryEvent)[-1]
    assert 0 < inside < last.t_ns - first.t_ns
    for phase in totals.values():
        assert 0 < phase.median_ns <= phase.longest_ns <= phase.total_ns


def test_memory_is_sampled_at_named_points_and_steps(run):
    events = [event for event in run.of(MemoryEvent) if event.point != "clock"]
    assert [event.point for event in events] == [
        "start",
        "torch imported",
        "first batch",
        "model ready",
        "call 1",
        "first backward",
        *(f"step {n}" for n in range(1, 20)),
        "cache emptied",
        "end",
    ]
    (first,) = [event for event in events if event.point == "step 1"]
    # 20·64 + 64 weights, twice 64 of the normalisation, 64·3 + 3 weights, of 4 bytes.
    parameters = 4 * (20 * 64 + 64 + 2 * 64 + 64 * 3 + 3)
    assert first.bytes["parameters"] == first.bytes["gradients"] == parameters
    assert first.bytes["optimizer_state"] >= 2 * parameters
    if sys.platform == "linux":
        assert 0 < first.bytes["anonymous"] < first.bytes["rss"]
    assert [event.step for event in events[6:25]] == list(range(1, 20))
    assert {event.synchronized for event in events} == {"cpu"}
    assert events[-1].bytes["rss_peak"] >= events[-1].bytes["rss"] // 2


def test_the_shapes_of_inputs_are_counted(run):
    (*_, last) = run.of(ShapesEvent)
    shapes = {shape.shape: shape.count for shape in last.shapes}
    assert shapes["float32[16, 20]"] >= 18
    assert last.distinct == len(shapes) + last.other


def test_calls_that_change_what_counters_mean_are_reported(run):
    (event,) = run.of(AllocatorEvent)
    assert (event.function, event.calls) == ("torch.cuda.empty_cache", 1)
    assert event.where.endswith("run.py:73")
    # No device was in use: the call did nothing.
    assert event.in_use is False


def test_files_that_native_code_opens_are_reported(run):
    assert run.opened("write") >= {
        "model.pt",
        "handle.pt",
        "model.safetensors",
        "scripted.pt",
        "method.pt",
        "raw.bin",
    }
    assert run.opened("read") >= {
        "run.py",
        "model.pt",
        "model.safetensors",
        "scripted.pt",
        "raw.bin",
    }


def test_native_opens_are_reported_before_they_happen(run):
    writes = [e.path for e in run.of(Open) if e.mode == "write"]
    assert len(writes) == len(set(writes))


def test_seeds_and_states_of_torch_are_reported(run):
    calls = [(event.function, event.value) for event in run.of(Seed)]
    assert calls == [
        ("random.seed", "1"),
        ("numpy.random.seed", "2"),
        ("torch.manual_seed", "3"),
        ("torch.Generator", "0"),
    ]
    states: dict[str, dict[str, str]] = {}
    for event in run.of(Generators):
        states.setdefault(event.when, {}).update(event.fingerprints)
    generators = {"python", "numpy", "torch.cpu", "torch.Generator#1"}
    assert set(states["final"]) == generators
    assert states["initial"]["torch.cpu"] != states["final"]["torch.cpu"]
    # The draws of a fresh generator are those the script itself makes later.
    assert f"draws {states['draws']['torch.cpu']}" in run.stdout


def test_switches_are_reported_as_found_and_as_left(run):
    versions = (run.fact("torch.version"), run.fact("torch.git_version"))
    assert "versions {} {}".format(*versions) in run.stdout
    assert run.fact("torch.deterministic") is False
    assert run.fact("end.torch.deterministic") is True
    assert run.fact("end.torch.num_threads") == 1
    assert run.fact("torch.default_dtype") == "torch.float32"
    # What did not change is not repeated.
    assert run.fact("end.torch.default_dtype") is None
    assert run.fact("torch.cuda.used") is False
    assert run.fact("torch.mps.available") is False
    assert run.fact("numpy.version")


def test_the_device_of_inputs_is_reported_once(run):
    (device,) = run.of(Device)
    assert (device.device, device.seen_on) == ("cpu", "module input")


def test_recorded_tensors_are_kept_as_tensor_files(run):
    safetensors = pytest.importorskip("safetensors.numpy")
    events = run.of(Value)
    assert [event.name for event in events] == ["probabilities", "probabilities#2"]
    first, second = (
        safetensors.load_file(run.session / "values" / event.file) for event in events
    )
    assert first["value"].shape == (16, 3)
    assert first["value"].sum(axis=1) == pytest.approx(1, abs=1e-6)
    assert second["value"].shape == (0, 3)


def test_a_warning_of_native_code_is_reported(run):
    (warning,) = run.of(WarningEvent)
    assert "requires_grad=True" in warning.message
    assert run.stderr.count("UserWarning") == 1


FAILING = """
import random, numpy as np, torch
from torch import nn
print(random.random(), np.random.rand(), torch.rand(1).item())
print(torch.rand(1, generator=torch.Generator().manual_seed(11)).item())
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for width in (4, 4, 4, 5):
    optimizer.zero_grad()
    try:
        model(torch.zeros(1, 3))
    except RuntimeError:
        pass
    model(torch.zeros(1, width)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def failed(launch):
    return launch(["python", "run.py"], {"run.py": FAILING}, seed=11)


def test_the_given_seed_reaches_all_generators_before_the_script(failed):
    draws, fresh = failed.stdout.splitlines()
    numpy = pytest.importorskip("numpy")
    expected = (random.Random(11).random(), numpy.random.RandomState(11).rand(), fresh)
    assert draws == "{} {} {}".format(*expected)
    # The only call is the script's own.
    assert [event.function for event in failed.of(Seed)] == ["torch.Generator"]
    # The seed in force, not the one torch happened to start from.
    assert failed.fact("torch.initial_seed") == "11"


def test_an_error_names_the_step_and_the_users_line(failed):
    run = failed
    assert run.status == 1
    (error,) = run.of(Error)
    assert error.type == "RuntimeError"
    assert "(1x5 and 4x2)" in error.message
    assert error.where == f"{run.project / 'run.py'}:14"
    assert error.steps == 3
    # What is printed shows neither our frames nor a detour through torch's hooks.
    assert "_reprobundle_recorder" not in run.stderr
    assert "in inner" not in run.stderr
    # A forward pass that raises ends its span: the next ones are counted.
    totals = {phase.name: phase.count for phase in run.of(Phases)[-1].phases}
    assert totals["forward"] == 8
    assert totals["backward"] == totals["optimizer"] == 3
    assert run.troubles() == []


COMPILED = """
import warnings; warnings.simplefilter('ignore')
import threading
import torch, torch._dynamo
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend='aot_eager', fullgraph=True)
for _ in range(4):
    optimizer.zero_grad()
    loss = compiled(torch.ones(3, 8)).square().sum()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())

torch._dynamo.config.trace_autograd_ops = True
@torch.compile(backend='eager', fullgraph=True)
def gradient(x):
    x = x.clone().requires_grad_(True)
    return torch.autograd.grad(model(x).sum(), [x])
print(gradient(torch.ones(1, 8))[0].sum().item())
torch._dynamo.config.trace_autograd_ops = False

import reprobundle
@torch.compile(backend='eager', fullgraph=True)
def marked(x):
    with reprobundle.phase('inside'):
        y = model(x.to('cpu'))
    reprobundle.record('lost', y)
    return y
print(marked(torch.ones(2, 8)).sum().item())
with reprobundle.phase('outside'):
    print(torch.jit.script(model)(torch.ones(1, 8)).sum().item())
    with torch.autocast('cpu', dtype=torch.bfloat16):
        print(model(torch.ones(1, 8)).sum().item())

class Broken(nn.Module):
    def forward(self, x):
        torch._dynamo.graph_break()
        return model(x)

def step(x):
    torch.compile(Broken(), backend='eager')(x).sum().backward()
for n in range(1, 4): step(torch.ones(n, 8))
print(torch._dynamo.utils.counters['frames'], torch._dynamo.utils.counters['stats'])

threads = [threading.Thread(target=model, args=(torch.ones(1, 8),)) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(torch.func.vmap(model)(torch.ones(2, 3, 8)).sum().item())
exported = torch.export.export(model, (torch.ones(1, 8),))
torch.export.save(exported, 'model.pt2')
print(torch.export.load('model.pt2').module()(torch.ones(1, 8)).tolist())
print(torch.fx.symbolic_trace(model)(torch.ones(1, 8)).sum().item())
"""


@pytest.fixture(scope="module")
def compiled(launch):
    return launch(["python", "run.py"], {"run.py": COMPILED})


@pytest.mark.slow
def test_the_compiler_compiles_what_it_compiles_without_us(launch, compiled):
    plain = launch(["python", "run.py"], {"run.py": COMPILED}, recorded=False)
    assert (plain.status, plain.stderr) == (0, "")
    assert compiled.stdout == plain.stdout


def test_compiled_traced_and_threaded_models_keep_working(compiled):
    run = compiled
    assert (run.status, run.stderr) == (0, "")
    # A value inside a compiled function cannot be kept; that it is not is said.
    (trouble,) = run.troubles()
    assert trouble.endswith("a compiled function is not kept: lost")
    assert run.of(Value) == []
    totals = {phase.name: phase.count for phase in run.of(Phases)[-1].phases}
    assert "inside" not in totals
    assert totals["outside"] == 1
    assert totals["optimizer"] == 4
    assert "model.pt2" in run.opened("write") & run.opened("read")


WORKERS = """
import sys
import torch
class Files(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        with open(f'data/{index}.txt') as file:
            return float(file.read())

if __name__ == '__main__':
    torch.manual_seed(0)
    for method in ('fork', 'spawn'):
        loader = torch.utils.data.DataLoader(
            Files(), num_workers=2, multiprocessing_context=method
        )
        print([batch.item() for batch in loader])
"""


def test_files_read_by_data_loader_workers_are_reported(launch):
    files = {f"data/{n}.txt": str(n) for n in range(4)}
    run = launch(["python", "run.py"], {"run.py": WORKERS, **files})
    assert (run.status, run.stderr) == (0, "")
    assert run.stdout == "[0.0, 1.0, 2.0, 3.0]\n" * 2
    kinds = sorted(start.kind for start in run.of(Start))
    assert kinds == ["fork", "fork", "helper", "main", "python", "python"]
    for kind in ("fork", "python"):
        reads = {
            event.path.rpartition("/")[2]
            for file in run.files
            if file.start.kind == kind
            for event in file.events
            if isinstance(event, Open) and event.mode == "read"
        }
        assert {f"{n}.txt" for n in range(4)} <= reads, kind
    assert run.troubles() == []
    totals = {phase.name: phase.count for phase in run.of(Phases, main=True)[-1].phases}
    assert totals["data"] == 8
    # Each worker seeds itself; the place is the line that started it.
    fork = next(file for file in run.files if file.start.kind == "fork")
    seeds = [event for event in fork.events if isinstance(event, Seed)]
    assert {event.function for event in seeds} >= {"random.seed", "torch.manual_seed"}
