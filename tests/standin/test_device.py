"""The stand-in itself: what it must do for the other tests to mean something."""

import json
import subprocess

import pytest

BATTERY = """\
import io, json, time, warnings
import torch
from mps_standin import _mps_standin as native

x = torch.zeros(64, device="mps")
torch.mps.synchronize()

def body():
    y = x
    for _ in range(50):
        y = torch.add(y, 1.0)
    return y

def timed(synchronised):
    torch.mps.synchronize()
    start = time.perf_counter()
    body()
    if synchronised:
        torch.mps.synchronize()
    return time.perf_counter() - start

def text_of(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""

told = {"claimed": timed(False), "true": timed(True)}
told["on_device"] = text_of(lambda: x.double())
native.say_conversion(True)
told["to_device"] = text_of(lambda: torch.zeros(2, dtype=torch.float64).to("mps"))
native.say_conversion(False)
told["made"] = text_of(lambda: torch.zeros(2, dtype=torch.float64, device="mps"))

model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten()).to("mps")
file = io.BytesIO()
torch.save(model.state_dict(), file)
for goal in ("cpu", "mps", None):
    file.seek(0)
    loaded = torch.load(file, map_location=goal)["0.weight"]
    same = torch.equal(loaded.cpu(), model[0].weight.detach().cpu())
    told[f"loaded {goal}"] = [loaded.device.type, same]

torch.manual_seed(3)
first = torch.rand(4, device="mps").tolist()
torch.manual_seed(3)
told["generator"] = str(torch.Generator(device="mps").device.type)
told["seeded"] = first == torch.rand(4, device="mps").tolist()

data = torch.utils.data.TensorDataset(torch.arange(8.0))
loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)
told["workers"] = [batch.to("mps").sum().item() for (batch,) in loader]

losses = {}
for device in ("cpu", "mps"):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, 2),
    ).to(device)
    adam = torch.optim.Adam(net.parameters())
    losses[device] = []
    for _ in range(3):
        loss = net(torch.randn(2, 3, 8, 8).to(device)).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses[device].append(loss.item())
told["losses"] = losses
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(standin, tmp_path_factory):
    folder = tmp_path_factory.mktemp("battery")
    (folder / "battery.py").write_text(BATTERY)
    standin.settings(ns_per_op=2_000_000)
    done = subprocess.run(
        [standin.python, "battery.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_only_a_synchronised_clock_tells_the_true_time(told):
    # Fifty operators of 2 ms: never less, whatever the machine is busy with.
    assert told["true"] >= 0.1
    assert told["claimed"] < told["true"] / 2


def test_both_sentences_about_float64_are_said(told):
    start = "TypeError: Cannot convert a"
    on_device = f"{start} MPS Tensor to float64 dtype as the MPS framework doesn't"
    assert told["on_device"].startswith(on_device)
    assert told["made"].startswith(on_device)
    assert told["to_device"].startswith(f"{start} float64 Tensor to MPS as the MPS")


@pytest.mark.parametrize(
    ("goal", "device"), [("cpu", "cpu"), ("mps", "mps"), ("None", "mps")]
)
def test_checkpoints_are_loaded_to_where_they_are_mapped(told, goal, device):
    assert told[f"loaded {goal}"] == [device, True]


def test_a_seed_gives_the_same_draws_again(told):
    assert told["seeded"]
    assert told["generator"] == "mps"


def test_batches_of_worker_processes_arrive(told):
    assert told["workers"] == [6.0, 22.0]


def test_training_gives_the_numbers_of_the_cpu(told):
    assert told["losses"]["mps"] == told["losses"]["cpu"]
