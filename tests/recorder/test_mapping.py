"""Calls that name CUDA, made on the CPU: what comes of them, and what is told."""

from __future__ import annotations

import json

import pytest

from reprobundle.run.events import Error, MappedEvent
from tests.recorder.conftest import Launcher, Run

pytestmark = pytest.mark.torch

SCRIPT = """\
import json, threading
import torch

told = {}
torch.manual_seed(0)
torch.cuda.manual_seed_all(7)
told["draw"] = torch.rand(1).item()
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(2, 1).cuda()
told["same"] = next(model.parameters()).device == device
host = torch.ones(2)
x = host.to("cuda")
x.mul_(2)
told["host"] = host.tolist()
weights = {name: value.cpu() for name, value in model.state_dict().items()}
before = weights["bias"].clone()
with torch.no_grad():
    model.bias.add_(1)
told["snapshot"] = torch.equal(weights["bias"], before)
leaf = torch.zeros(2, device="cuda", requires_grad=True)
told["alias"] = leaf.cuda() is leaf and leaf.to(device) is leaf
told["is_cuda"] = [leaf.is_cuda, host.is_cuda, (leaf + 1).is_cuda]
told["pinned"] = host.pin_memory().tolist()
with torch.autocast("cuda"):
    told["autocast"] = str((leaf @ leaf).dtype)
torch.save(host, "x.pt")
told["loaded"] = torch.load("x.pt", map_location="cuda:1").tolist()
seen = []
thread = threading.Thread(target=lambda: seen.append(torch.ones(2, device="cuda")))
thread.start()
thread.join()
told["thread"] = seen[0].tolist()
told["einsum"] = torch.einsum("cuda", torch.ones(1, 1, 1, 1)).shape == (1, 1, 1, 1)
torch.set_default_device("cuda")
told["default"] = torch.ones(1).is_cuda
for _ in range(5):
    torch.cuda.synchronize()
json.dump(told, open("told.json", "w"))
torch.cuda.Stream()
"""


@pytest.fixture(scope="module")
def mapped(launch: Launcher) -> Run:
    return launch(
        ["python", "run.py"], {"run.py": SCRIPT}, device="cpu", mapping="cuda=cpu"
    )


@pytest.fixture(scope="module")
def told(mapped: Run) -> dict[str, object]:
    path = mapped.project / "told.json"
    assert path.exists(), mapped.stderr
    answer: dict[str, object] = json.loads(path.read_text())
    return answer


def test_a_move_to_the_mapped_device_copies_as_one_to_cuda_does(told):
    assert told["host"] == [1.0, 1.0]
    assert told["snapshot"] is True


def test_a_tensor_that_is_there_already_is_not_copied(told):
    assert told["alias"] is True


def test_what_would_be_on_cuda_says_so_and_nothing_else_does(told):
    assert told["is_cuda"] == [True, False, True]
    assert told["same"] is True
    assert told["default"] is True


def test_a_seed_for_cuda_leaves_the_draws_of_the_cpu_alone(told):
    assert told["draw"] == pytest.approx(0.49625658988952637, abs=0)


def test_autocast_has_the_type_that_cuda_would_have(told):
    assert told["autocast"] == "torch.float16"


def test_threads_checkpoints_and_pinned_memory_are_mapped_too(told):
    assert told["thread"] == [1.0, 1.0]
    assert told["loaded"] == [1.0, 1.0]
    assert told["pinned"] == [1.0, 1.0]


def test_a_text_that_is_no_device_is_left_alone(told):
    assert told["einsum"] is True


def test_each_call_is_told_with_its_place_and_count(mapped):
    events = mapped.of(MappedEvent)
    last = {(e.call, e.asked, e.where.rpartition("/")[2]): e for e in events}
    assert last["Tensor.to", "cuda", "run.py:12"].became == "cpu"
    assert last["torch.device", "cuda:0", "run.py:8"].count == 1
    assert last["torch.cuda.synchronize", "", "run.py:37"].count == 5
    assert not mapped.troubles()


def test_what_only_cuda_has_ends_the_run_and_names_itself(mapped):
    (error,) = mapped.of(Error)
    assert mapped.status == 1
    assert error.message.startswith("torch.cuda.Stream has no counterpart on cpu: ")
    assert error.where.endswith("run.py:39")
    refused = [e for e in mapped.of(MappedEvent) if e.became == "refused"]
    assert [e.call for e in refused] == ["torch.cuda.Stream"]


PLAIN = """\
import torch
same = torch.cuda.is_available.__name__ == "is_available"
from torch.overrides import _len_torch_function_stack
print(same, _len_torch_function_stack(), torch.cuda.is_available())
"""


def test_without_the_option_no_mode_is_entered(launch):
    run = launch(["python", "run.py"], {"run.py": PLAIN}, device="cpu")
    assert run.stdout.split()[:2] == ["True", "0"], run.stderr
    assert run.of(MappedEvent) == []
