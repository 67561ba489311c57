"""The observers of an evidence pass: what they are told, and that they do no harm."""

import json

import pytest

from reprobundle.run.events import Beginning

# The launcher copies the recorder; this stands in for an engineer who adds an observer.
OBSERVERS = """\
from _reprobundle_recorder import evidence

class Listener(evidence.Observer):
    name = "listener"
    sees_operators = True

    def start(self, torch):
        self.torch, self.heard = torch, []

    def operator(self, call):
        if len(self.heard) < 4000:
            self.heard.append([str(call.operator), call.step, call.phase])
        self.torch.ones(1).add_(1)

    def step(self, number):
        self.heard.append(["step", number, ""])

    def finish(self):
        import json, os
        path = os.path.join(os.environ["HEARD"], str(os.getpid()))
        with open(path, "w") as file:
            json.dump(self.heard, file)

class Broken(evidence.Observer):
    name = "broken"
    sees_operators = True

    def operator(self, call):
        raise RuntimeError("a fault of ours")

evidence.make_observers = lambda session, clock: [Broken(), Listener()]
"""

TRAIN = """\
import observers
import _thread, hashlib, threading, torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
thread = threading.Thread(target=lambda: torch.full((2,), 3.0).erfinv())
thread.start()
thread.join()
done = _thread.allocate_lock()
done.acquire()

def bare(start, power=0):
    torch.full((power,), start).lgamma()
    done.release()

_thread.start_new_thread(bare, (3.0,), {"power": 2})
done.acquire()
print(hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def plain(launch):
    files = {"train.py": TRAIN, "observers.py": ""}
    return launch(["python", "train.py"], files, recorded=False)


@pytest.fixture(scope="module")
def traced(launch, tmp_path_factory):
    files = {"train.py": TRAIN, "observers.py": OBSERVERS}
    heard = tmp_path_factory.mktemp("heard")
    run = launch(
        ["python", "train.py"],
        files,
        traced=True,
        variables={"HEARD": str(heard)},
    )
    return run, [json.loads(path.read_text()) for path in heard.iterdir()]


def test_tracing_changes_no_bit(plain, traced):
    assert plain.status == traced[0].status == 0
    assert len(plain.stdout) == 65
    assert plain.stdout == traced[0].stdout


def test_an_observer_hears_of_every_step(traced):
    (heard,) = traced[1]
    assert [number for name, number, _ in heard if name == "step"] == [1, 2, 3]


def test_an_observer_hears_operators_with_step_and_phase(traced):
    (heard,) = traced[1]
    calls = {(name, step, phase) for name, step, phase in heard}
    assert ("aten.addmm.default", 0, "forward") in calls
    assert ("aten.addmm.default", 2, "forward") in calls
    assert any(name == "aten.mm.default" and p == "backward" for name, _, p in calls)
    assert any(p == "optimizer" for _, _, p in calls)


def test_operators_of_other_threads_are_heard(traced):
    (heard,) = traced[1]
    names = {name for name, _, _ in heard}
    assert "aten.erfinv.default" in names
    assert "aten.lgamma.default" in names


def test_what_an_observer_runs_itself_is_not_heard(traced):
    (heard,) = traced[1]
    assert "aten.ones.default" not in {name for name, _, _ in heard}


def test_what_the_recorder_reads_of_first_weights_is_not_heard(traced):
    (event,) = traced[0].of(Beginning)
    assert all(tensor.l2 is not None for tensor in event.tensors)
    (heard,) = traced[1]
    # The norm of a tensor is a product of it with itself.
    assert "aten.dot.default" not in {name for name, _, _ in heard}


def test_an_observer_that_fails_is_reported_and_stops_nobody(traced):
    assert traced[0].troubles() == ["evidence: broken: RuntimeError: a fault of ours"]


def test_transforms_of_functions_are_no_trouble(launch):
    source = (
        "import torch\n"
        "model = torch.nn.Linear(3, 1)\n"
        "weights = dict(model.named_parameters())\n"
        "def loss(weights, x):\n"
        "    out = torch.func.functional_call(model, weights, (x,))\n"
        "    return out.to('cpu').square().sum()\n"
        "each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))\n"
        "print(each(weights, torch.ones(4, 3))['weight'].shape)\n"
    )
    run = launch(["python", "t.py"], {"t.py": source}, traced=True)
    assert run.stdout == "torch.Size([4, 1, 3])\n"
    assert run.troubles() == []


def test_a_run_that_is_not_traced_observes_nothing(launch, tmp_path):
    files = {"train.py": TRAIN, "observers.py": OBSERVERS}
    run = launch(["python", "train.py"], files, variables={"HEARD": str(tmp_path)})
    assert run.status == 0
    assert list(tmp_path.iterdir()) == []
