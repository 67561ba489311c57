"""The float64 run: results that are known exactly, and what it must not claim."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from reprobundle.run.events import Promoted

pytestmark = pytest.mark.torch

# One process for all that can be promoted: each costs two seconds.
WHOLE = """\
import json, threading
import numpy as np
import torch
from torch import nn

found = {}
torch.manual_seed(5)
found["state"] = hash(tuple(torch.get_rng_state().tolist()))
x, w, y = torch.randn(16, 3), torch.randn(3), torch.randn(16)
found["start"] = {"x": x.tolist(), "w": w.tolist(), "y": y.tolist()}
w.requires_grad_()
optimizer = torch.optim.SGD([w], lr=0.1)
losses = []
for step in range(20):
    optimizer.zero_grad()
    loss = ((x @ w - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
found["losses"], found["w"] = losses, w.tolist()

found["cancelled"] = ((torch.full((1,), 1e8) + 1) - 1e8).item()
total = torch.zeros(())
for _ in range(2000):
    total = total + 0.1
found["sum"] = total.item()
found["data"] = torch.tensor([0.1]).item()
found["third"] = (torch.tensor([1]) / 3).item()
found["stated"] = torch.tensor([0.1], dtype=torch.float64).item()

net = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 2))
drawn = net(torch.rand(4, 6) + torch.rand_like(torch.ones(4, 6)).bernoulli_(0.5))
drawn.sum().backward()
torch.save(net.state_dict(), "net.pt")
results = [drawn, net[0].weight.grad, torch.load("net.pt")["0.weight"]]
results += [torch.ones(3).half() * 2, torch.ones(2).float() + 1, torch.arange(0.0, 3)]
results += [torch.from_numpy(np.float32([1, 2])) * 2, torch.FloatTensor([1.0])]
results += [torch.as_tensor([1.0]), nn.Parameter(torch.from_numpy(np.ones(2, "f4")))]
results += [torch.compile(lambda v: v * 2)(torch.ones(2))]
results += [torch.fft.rfft(torch.ones(4))]
results += [nn.LSTM(3, 4)(torch.randn(2, 1, 3))[0]]
with torch.autocast("cpu", dtype=torch.bfloat16):
    results.append(torch.ones(2, 2) @ torch.ones(2, 2))
with torch.device("meta"):
    shell = nn.Linear(6, 8)
shell.load_state_dict({"weight": torch.ones(8, 6), "bias": torch.ones(8)}, assign=True)
results.append(shell(torch.ones(1, 6)))
thread = threading.Thread(target=lambda: results.append(torch.ones(2) * 3))
thread.start(); thread.join()
found["dtypes"] = sorted({str(one.dtype) for one in results})
found["kept"] = [str(torch.arange(3).dtype), str((torch.ones(1) > 0).dtype)]
found["final"] = hash(tuple(torch.get_rng_state().tolist()))
json.dump(found, open("found.json", "w"))
"""

LEFT = """\
import numpy as np
import torch

shared = torch.from_numpy(np.zeros(4, "f4"))
shared.add_(1)
torch.ones(3).view(torch.int32)
library = torch.library.Library("mine", "DEF")
library.define("short(Tensor x) -> Tensor")
library.impl("short", lambda x: torch.from_numpy(np.ones(2, "f4")), "CPU")
torch.ops.mine.short(torch.ones(2))
"""


@pytest.fixture(scope="module")
def promoted(launch):
    run = launch(("python", "run.py"), {"run.py": WHOLE}, truth=True)
    assert run.status == 0, run.stderr
    return run, json.loads((run.project / "found.json").read_text())


def trained(start):
    """Return losses and weights of the same training in plain Python doubles."""
    x, w, y = start["x"], list(start["w"]), start["y"]
    losses = []
    for _ in range(20):
        errors = [
            math.fsum(a * b for a, b in zip(row, w, strict=True)) - target
            for row, target in zip(x, y, strict=True)
        ]
        losses.append(math.fsum(e * e for e in errors) / len(y))
        for k in range(len(w)):
            slope = math.fsum(2 * e * row[k] for e, row in zip(errors, x, strict=True))
            w[k] -= 0.1 * slope / len(y)
    return losses, w


def test_a_training_run_agrees_with_plain_doubles_to_twelve_digits(promoted):
    _, found = promoted
    losses, w = trained(found["start"])
    np.testing.assert_allclose(found["losses"], losses, rtol=1e-12)
    np.testing.assert_allclose(found["w"], w, rtol=1e-12)


def test_draws_are_made_in_float32_and_cast(promoted):
    _, found = promoted
    for values in found["start"].values():
        array = np.asarray(values)
        assert (array == array.astype("f4")).all()


def test_the_generator_ends_where_that_of_the_plain_run_does(promoted, launch):
    _, found = promoted
    # What the compiled line gives is asked of the promoted run alone; compiling it to
    # machine code here would cost 15 s of CPU time.
    uncompiled = {"TORCH_COMPILE_DISABLE": "1"}
    plain = launch(("python", "run.py"), {"run.py": WHOLE}, variables=uncompiled)
    other = json.loads((plain.project / "found.json").read_text())
    assert found["final"] == other["final"] != other["state"]
    assert found["start"] == other["start"]
    # What the truth is for: float32 has lost these altogether.
    assert other["cancelled"] == 0.0
    assert abs(other["sum"] - 200) > 1e-3
    assert "torch.float32" in other["dtypes"]


def test_cancellation_and_long_sums_come_out_as_in_exact_arithmetic(promoted):
    _, found = promoted
    assert found["cancelled"] == 1.0
    assert found["sum"] == pytest.approx(200, rel=1e-12)
    assert found["third"] == 1 / 3


def test_data_are_rounded_to_the_dtype_that_the_code_states(promoted):
    _, found = promoted
    assert found["data"] == float(np.float32(0.1))
    assert found["stated"] == 0.1


def test_everything_that_is_computed_is_float64_and_the_account_says_so(promoted):
    run, found = promoted
    assert found["dtypes"] == ["torch.complex128", "torch.float64"]
    assert found["kept"] == ["torch.int64", "torch.bool"]
    account = run.of(Promoted)[-1]
    assert account.left == ()
    assert account.operators > 500
    assert account.draws > 5
    assert not run.troubles()


def test_what_cannot_be_promoted_is_counted_by_name(launch):
    run = launch(("python", "run.py"), {"run.py": LEFT}, truth=True)
    assert run.status == 0, run.stderr
    left = {one.operator: one.why for one in run.of(Promoted)[-1].left}
    assert left == {
        "add_.Tensor": "it writes to float32 from outside",
        "view.dtype": "it reads the bits of a float",
        "mine.short.default": "it gives float32",
    }


def test_a_run_that_is_no_truth_promotes_nothing(launch):
    run = launch(
        ("python", "-c", "import torch; assert torch.ones(2).dtype.itemsize == 4")
    )
    assert run.status == 0, run.stderr
    assert run.of(Promoted) == []
