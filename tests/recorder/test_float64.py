"""Places where float64 would reach a device that has none, found on the CPU."""

import pytest

from reprobundle.recorder.call_sources import read_call
from reprobundle.run.events import Float64SearchEvent, Float64SiteEvent

pytestmark = pytest.mark.torch

# A line that ends in a word is a place of that kind; every other line is none.
SCRIPT = """\
import sys, torch, numpy as np, models
device = torch.device(sys.argv[1])
torch.manual_seed(0); np.random.seed(0)
a = np.random.rand(4, 4)
stays = torch.from_numpy(a) * 2
x = torch.from_numpy(a).to(device)  # moved
y = torch.from_numpy(a).float().to(device)
z = y.double()  # computed
w = y.cpu().double()
c = y.cpu()
v = c.double() + stays
t = torch.zeros(3, dtype=torch.float64, device=device)  # made
u = torch.zeros(3, dtype=torch.float64, device="cpu")
s = torch.tensor(a, device=device)  # made
m = torch.nn.Linear(4, 2).to(device)
out = m(y) * np.float64(2.0) + 0.5
loss = out.square().mean()
loss.backward()
total = m.weight.grad.sum(dtype=torch.float64)  # computed
k = y.to(torch.complex128)  # computed
n = loss.detach().to("cpu", torch.float64)
e = torch.nn.Linear(4, 2).double().to(device)  # moved
q = m(y).cpu().double().sum()
q.backward()
torch.set_default_dtype(torch.float64)
r = torch.randn(3, device=device)  # made
g = torch.randn(3)
torch.set_default_dtype(torch.float32)
loader = torch.utils.data.DataLoader([np.ones(3) * i for i in range(4)], batch_size=2)
for batch in loader:
    h = batch.to(device)  # moved
with torch.device(device):
    d = torch.ones(2, dtype=torch.float64)  # made
kept = torch.from_numpy(a)
moved = kept.float().to(device)
back = kept.sum() + moved.sum().item()
i = z + 1
net = models.Net(device)
made = net(torch.ones(2))
kept = torch.nn.Parameter(torch.ones(2)).to(device)
assert isinstance(kept, torch.nn.Parameter) and y.to(device).data_ptr() == y.data_ptr()
print(q.item().hex(), total.item().hex(), back.item().hex(), m.weight.grad.tolist())
"""

# The recorder has a module of this name as well.
MODELS = """\
import torch
class Net(torch.nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
    def forward(self, x):
        return x.to(torch.float64).to(self.device)
"""


def expected():
    for number, line in enumerate(SCRIPT.splitlines(), 1):
        for kind in ("moved", "made", "computed"):
            if line.endswith(f"# {kind}"):
                yield f"run.py:{number}", kind
    yield "models.py:7", "moved"


@pytest.fixture(scope="module")
def runs(launch):
    files = {"run.py": SCRIPT, "models.py": MODELS}
    plain = launch(["python", "run.py", "cpu"], files, recorded=False)
    traced = launch(["python", "run.py", "cpu"], files, traced=True, device="cpu")
    return plain, traced


def test_looking_changes_no_number(runs):
    plain, traced = runs
    assert (plain.status, traced.status, traced.troubles()) == (0, 0, [])
    assert plain.stdout == traced.stdout != ""


def test_every_place_is_found_and_no_other(runs):
    sites = runs[1].of(Float64SiteEvent)
    found = sorted((site.where.rpartition("/")[2], site.how) for site in sites)
    assert found == sorted(expected())


def test_a_place_tells_dtype_operator_and_count(runs):
    sites = {
        (s.how, s.dtype, s.operator, s.count) for s in runs[1].of(Float64SiteEvent)
    }
    assert ("computed", "complex128", "aten._to_copy.default", 1) in sites
    # Two batches; and two parameters of one layer.
    assert ("moved", "float64", "", 2) in sites
    (search,) = runs[1].of(Float64SearchEvent)
    assert (search.operators > 20, search.reason) == (True, "")


def test_a_run_that_steers_nothing_has_looked_at_nothing(launch):
    source = "import torch\nprint(torch.ones(2, dtype=torch.float64).sum().item())\n"
    run = launch(["python", "run.py"], {"run.py": source}, traced=True, device="cpu")
    (search,) = run.of(Float64SearchEvent)
    assert search.operators == 0
    assert run.of(Float64SiteEvent) == []


COMPILED = """\
import torch
device = torch.device("cpu" if not torch.cuda.is_available() else "cuda")
@torch.compile(backend="eager", fullgraph=True)
def step(x):
    return torch.tensor(1.0) + x.to(device).cpu().sin() + torch.zeros(2, device=device)
print(step(torch.ones(2)).tolist())
@torch.jit.script
def scripted(x: torch.Tensor):
    return torch.tensor([1.0, 2.0]) + x.cpu().to(torch.float32)
print(scripted(torch.ones(2)).tolist())
"""


def test_compiled_and_scripted_code_keeps_working_and_is_told(launch):
    run = launch(["python", "run.py"], {"run.py": COMPILED}, traced=True, device="cpu")
    assert (run.status, run.troubles()) == (0, []), run.stderr
    (search,) = run.of(Float64SearchEvent)
    assert search.reason == "1 compiled graphs were not looked into"


@pytest.mark.parametrize(
    ("source", "exact", "expected"),
    [
        ("torch.zeros(3, device=device)", True, (True, False)),
        ("torch.zeros(\n    3, device='cpu')", True, (True, True)),
        ("x.cpu().to(device)", True, (False, False)),
        ("x.to(torch.device('cpu'))", True, (False, True)),
        ("for x in load(device='cpu'):\n    y = 1", True, (False, False)),
        ("x = torch.zeros(3, device=device)", False, (True, False)),
        ("torch.zeros(3, device='cpu:0')", False, (True, True)),
        ("torch.zeros(", False, (False, False)),
    ],
)
def test_a_call_is_read_for_its_device(source, exact, expected):
    assert read_call(source, exact) == expected
