"""What a run with torch begins with: weights, inputs, batches, made generators."""

import multiprocessing

import pytest

from reprobundle.run.events import Beginning, Generators, LoaderPass, Seed

SCRIPT = """
import copy, pickle, sys
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)
shuffle = torch.Generator().manual_seed(5)
data = TensorDataset(torch.randn(12, 4), torch.randint(0, 2, (12,)))
model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
before = {k: v.clone() for k, v in model.state_dict().items()}
loss = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=5, shuffle=True, generator=shuffle):
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
print(value.item().hex())
DataLoader(data, batch_size=None, num_workers=1).__iter__().__next__()
late = nn.Linear(2, 2)
late(torch.zeros(1, 2))

# Everything a script may do with torch.Generator goes on working.
Original = type(torch.default_generator)
kinds = {Original: 1}
print(type(shuffle) is Original, torch.Generator == Original, kinds[torch.Generator])
print(isinstance(shuffle, torch.Generator), issubclass(Original, torch.Generator))
print(isinstance(3, torch.Generator), repr(torch.Generator) == repr(Original))
print(pickle.loads(pickle.dumps(shuffle)).initial_seed())
print(type(copy.deepcopy(shuffle)) is Original)
class Mine(torch.Generator):
    pass
mine = Mine()
print(isinstance(mine, Mine), isinstance(shuffle, Mine), mine.manual_seed(2) is mine)
def drawing(g: torch.Generator):
    return torch.rand(2, generator=g)
def making(n: int):
    g = torch.Generator()
    return torch.rand(n, generator=g)
import warnings; warnings.simplefilter('ignore')
print(torch.jit.script(drawing)(torch.Generator().manual_seed(1)).tolist())
print(torch.jit.script(making)(2).tolist())
compiled = torch.compile(drawing, backend='eager')
print(compiled(torch.Generator().manual_seed(1)).tolist())
print(torch.rand(1).item(), np.random.default_rng(3).random())
print(np.random.default_rng, torch.utils.data.DataLoader._get_iterator.__name__)
"""


@pytest.fixture(scope="module")
def run(launch):
    return launch(["python", "run.py"], {"run.py": SCRIPT})


@pytest.fixture(scope="module")
def began(run):
    return {
        tensor.name: tensor for event in run.of(Beginning) for tensor in event.tensors
    }


def test_the_script_runs_as_it_does_without_us(run, launch):
    plain = launch(["python", "run.py"], {"run.py": SCRIPT}, recorded=False)
    assert plain.status == 0, plain.stderr
    # The last line names an address.
    assert run.stdout.splitlines()[:-1] == plain.stdout.splitlines()[:-1]
    assert run.stderr == plain.stderr
    assert run.troubles() == []


def test_weights_are_those_before_the_first_call(began):
    weights = {name for name, tensor in began.items() if tensor.kind == "weight"}
    assert weights == {
        "Sequential/0.weight",
        "Sequential/0.bias",
        "Sequential/1.weight",
        "Sequential/1.bias",
        "Sequential/2.weight",
        "Sequential/2.bias",
        "Sequential/1.running_mean",
        "Sequential/1.running_var",
        "Sequential/1.num_batches_tracked",
    }
    # Ones, as batch normalisation starts with; not what training made of them.
    assert began["Sequential/1.weight"].l2 == pytest.approx(3**0.5)
    assert began["Sequential/1.num_batches_tracked"].l2 == 0
    assert began["Sequential/0.weight"].shape == (3, 4)
    assert all(len(began[name].fingerprint) == 16 for name in weights)


def test_a_traced_pass_tells_the_same_beginning(run, launch, began):
    traced = launch(["python", "run.py"], {"run.py": SCRIPT}, traced=True)
    assert (traced.status, traced.troubles()) == (0, []), traced.stderr
    told = {t.name: t for event in traced.of(Beginning) for t in event.tensors}
    assert told == began
    assert traced.stdout.splitlines()[0] == run.stdout.splitlines()[0]


def test_first_inputs_and_batches_tell_sizes_and_content(began):
    assert began["Sequential/input/0"].shape == (5, 4)
    assert began["batch/0"].shape == (5, 4)
    assert began["batch/1"].dtype == "int64"
    assert began["batch/0"].fingerprint == began["Sequential/input/0"].fingerprint
    # The second epoch shuffles anew; the third loader is not looked at any more.
    assert began["batch#2/0"].fingerprint != began["batch/0"].fingerprint
    assert not any(name.startswith("batch#3") for name in began)
    # Inputs of a loss are results already.
    assert not any(name.startswith("CrossEntropyLoss") for name in began)


def test_each_pass_over_a_loader_is_reported(run):
    passes = run.of(LoaderPass, main=True)
    assert [(one.workers, one.batch_size, one.sampler) for one in passes] == [
        (0, 5, "RandomSampler"),
        (0, 5, "RandomSampler"),
        (1, None, "SequentialSampler"),
    ]
    assert [one.generator_seed for one in passes] == ["5", "5", ""]
    assert passes[0].where == f"{run.project / 'run.py'}:17"
    assert passes[0].base_seed != passes[1].base_seed
    # Of the interpreter's own choice: fork, spawn or forkserver.
    usual = multiprocessing.get_context().get_start_method()
    assert [one.start_method for one in passes] == ["", "", usual]


def test_made_generators_tell_their_seed_and_place(run):
    calls = [e for e in run.of(Seed, main=True) if e.function == "torch.Generator"]
    script = run.project / "run.py"
    assert (calls[0].value, calls[0].where) == ("5", f"{script}:10")
    states: dict[str, dict[str, str]] = {"initial": {}, "final": {}}
    for event in run.of(Generators, main=True):
        states.setdefault(event.when, {}).update(event.fingerprints)
    name = "torch.Generator#1"
    assert states["initial"][name] != states["final"][name]


def test_the_seeds_of_loader_workers_are_torchs_own(run):
    worker = [e for file in run.files[1:] for e in file.events if isinstance(e, Seed)]
    functions = {e.function for e in worker}
    assert {"random.seed", "torch.manual_seed"} <= functions
    assert all("torch/utils/data/_utils/worker.py" in e.where for e in worker)


OTHERS = """
import torch
from torch import nn
with torch.device('meta'):
    meta = nn.Linear(2, 2)
meta(torch.zeros(1, 2, device='meta'))
lazy = nn.LazyLinear(2)
lazy(torch.zeros(1, 3))
big = nn.Linear(2048, 1024, bias=False)
with torch.no_grad():
    big.weight.fill_(1)
    big.weight[0, 0] = 2
big(torch.zeros(1, 2048))
wide = nn.Linear(2048, 1024, bias=False)
wide.weight = nn.Parameter(torch.ones(2048, 1024).t())
wide(torch.zeros(1, 2048))
fifth = nn.Linear(2, 2)
fifth(torch.zeros(1, 2))
"""
# Each of these would see our reading, or would be changed by it.
OBSERVED = """
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.overrides import TorchFunctionMode
torch.manual_seed(0)
class Sees(TorchDispatchMode):
    count = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Sees.count += 1
        return func(*args, **(kwargs or {}))
class Hears(TorchFunctionMode):
    count = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        # Attributes are looked at elsewhere too, for the devices.
        Hears.count += func.__name__ != '__get__'
        return func(*args, **(kwargs or {}))
def make():
    return nn.Sequential(nn.Linear(3, 2), nn.ReLU())
x = torch.ones(1, 3)
with Sees():
    make()(x)
with torch.profiler.profile() as profile:
    make()(x)
print(Sees.count, len(profile.events()))
graph = torch.jit.trace(make(), x).inlined_graph
print(str(graph).count('aten::'), 'aten::to' in str(graph))
model = make()
stacked = {name: torch.stack([p, p]) for name, p in model.named_parameters()}
def call(parameters):
    return torch.func.functional_call(model, parameters, (x,)).sum()
print(torch.func.vmap(call)(stacked).tolist())
one = {name: p.detach() for name, p in model.named_parameters()}
print({name: g.sum().item() for name, g in torch.func.grad(call)(one).items()})
exported = torch.export.export(make(), (x,))
print(len(exported.graph.nodes))
with Hears():
    make()(x)
print(Hears.count)
"""
FUNCTIONAL = """
import torch
weight = torch.tensor([3.0, 4.0], requires_grad=True)
optimizer = torch.optim.AdamW([weight])
for _ in range(3):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
from torch import nn
with torch.profiler.profile():
    nn.Linear(2, 2)(torch.zeros(1, 2))
"""


def test_large_strange_and_absent_values_are_told_apart(launch):
    run = launch(["python", "run.py"], {"run.py": OTHERS})
    assert (run.status, run.troubles()) == (0, []), run.stderr
    began = {t.name: t for event in run.of(Beginning) for t in event.tensors}
    assert "could not be read" in began["Linear/weight"].reason
    assert began["Linear/weight"].fingerprint == ""
    assert any("could not be read" in t.reason for n, t in began.items() if "Lazy" in n)
    big, wide = began["Linear#2/weight"], began["Linear#3/weight"]
    assert (big.sampled, wide.sampled) == (True, True)
    # 16 blocks of 4,096 elements, the first one among them.
    assert big.l2 == pytest.approx((16 * 4096 + 3) ** 0.5)
    assert wide.l2 == pytest.approx((16 * 2048) ** 0.5)
    assert not any(name.startswith("Linear#4") for name in began)


def test_nothing_that_watches_the_run_sees_our_reading(launch):
    plain = launch(["python", "run.py"], {"run.py": OBSERVED}, recorded=False)
    run = launch(["python", "run.py"], {"run.py": OBSERVED})
    assert (plain.status, run.status) == (0, 0), plain.stderr + run.stderr
    assert run.stdout == plain.stdout
    assert run.troubles() == []
    # What could be read unseen was read.
    names = [t.name for event in run.of(Beginning) for t in event.tensors]
    assert "Sequential/input/0" in names
    assert not any(t.reason for event in run.of(Beginning) for t in event.tensors)


def test_without_modules_the_first_optimizer_shows_the_weights(launch):
    run = launch(["python", "run.py"], {"run.py": FUNCTIONAL}, variables={"RANK": "1"})
    assert (run.status, run.troubles()) == (0, []), run.stderr
    (event,) = run.of(Beginning)
    (tensor,) = event.tensors
    assert (tensor.name, tensor.l2) == ("rank1/AdamW/0.0", 5.0)
