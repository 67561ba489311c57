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
    told["asked"] = [torch.is_autocast_enabled(), torch.is_autocast_enabled("cuda")]
class Own(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, x):
        told["inside"] = [str(x.dtype), torch.is_autocast_enabled("cuda")]
        return x * 2
    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        told["backward"] = torch.is_autocast_enabled("cuda")
        return gradient * 2
with torch.autocast("cuda", dtype=torch.bfloat16):
    Own.apply(leaf.bfloat16()).sum().backward()
told["asked"].append(torch.is_autocast_enabled())
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

CHECKPOINTS = """\
import copy, json, pickle
import torch

told = {}
model = torch.nn.Linear(2, 1).cuda()
def place(tensor):
    moved = tensor.cpu()
    with torch.no_grad():
        tensor.add_(1)
    copied = not torch.equal(moved, tensor.to("cpu"))
    return [str(tensor.device), tensor.is_cuda, copied]
def loaded(where, key="x"):
    return torch.load("held.pt", map_location=where)[key]
device = torch.device("cuda")
held = torch.arange(4.0, device="cuda")
both = {"a": [held[:2], (held[2:],)]}
torch.save({"x": held, "y": torch.ones(2), "both": both}, "held.pt")
told["held"] = {
    "text": place(loaded("cuda")),
    "numbered": place(loaded("cuda:0")),
    "device": place(loaded(torch.device("cuda"))),
    "of a tensor": place(loaded(held.device)),
    "none": place(loaded(None)),
    "dict": place(loaded({"cuda:0": "cuda:0"})),
    "moved by dict": place(loaded({"cpu": "cuda:0"}, "y")),
    "function": place(loaded(lambda storage, tag: storage.cuda())),
    "undecided function": place(loaded(lambda storage, tag: None)),
    "pickled": place(pickle.loads(pickle.dumps(held))),
    "parameter": place(torch.nn.Parameter(held.clone())),
    "made there": place(torch.nn.Linear(1, 1, device="cuda").weight),
    "copied module": place(copy.deepcopy(model).weight),
    "set": place(torch.empty(0).set_(held.clone().untyped_storage())),
}
told["not held"] = {
    "text": place(loaded("cpu")),
    "dict": place(loaded({"cuda:0": "cpu"})),
    "function": place(loaded(lambda storage, tag: storage)),
    "saved there": place(loaded(None, "y")),
    "set": place(held.clone().set_(torch.ones(2))),
}
first, (second,) = loaded("cuda", "both")["a"]
told["shared"] = [place(first), place(second)]
told["one storage"] = first.data_ptr() + 8 == second.data_ptr()
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 2, device="cuda")).sum().backward()
optimizer.step()
torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, "step.pt")
step = torch.load("step.pt", map_location=device)
told["optimizer"] = place(step["o"]["state"][0]["exp_avg"])
bare = torch.nn.Linear(2, 1)
bare.load_state_dict(step["m"], assign=True)
told["assigned"] = place(bare.weight)
torch.save(torch.nn.Linear(1, 1).cuda(), "whole.pt")
told["module"] = place(torch.load("whole.pt", weights_only=False).weight)
def of(storage):
    return place(torch.empty(0).set_(storage))
there, here = held.clone().untyped_storage(), torch.ones(4).untyped_storage()
told["storages"] = {
    "cuda": of(here.cuda()),
    "cuda numbered": of(here.cuda(0)),
    "to a text": of(here.to(device="cuda:0")),
    "to a device": of(here.to(device=device)),
    "typed": of(torch.ones(4).storage().cuda()),
}
told["storages here"] = {
    "cpu": of(there.cpu()),
    "to": of(there.to(device="cpu")),
    "copied": of(here.cuda().cpu()),
}
told["storage alias"] = [
    there.cuda() is there, there.to(device=device) is there, here.cpu() is here,
    there.cpu() is there, bytes(there.cpu()) == bytes(there),
]
import torch.multiprocessing as mp
fork = mp.get_context("fork")
def child(brought, back):
    x, plain, weight = brought.get()
    back.put([place(x), place(plain), place(weight), weight.requires_grad])
    back.put(torch.ones(1, device="cuda"))
    back.close()
    back.join_thread()
    answered.wait()
brought, back, answered = fork.Queue(), fork.Queue(), fork.Event()
process = fork.Process(target=child, args=(brought, back))
process.start()
shared = torch.zeros(3, device="cuda")
brought.put((shared[1:], torch.ones(2), torch.nn.Parameter(torch.ones(2).cuda())))
told["queue"] = back.get(timeout=60)
told["queue back"] = place(back.get(timeout=60))
answered.set()
process.join()
told["queue shares"] = shared.tolist()
json.dump(told, open("told.json", "w"))
"""


# The recorder does so itself, where torch was built with MPS and the run is traced.
WRAPPED_TWICE = """\
import functools, torch

for _ in range(2):
    original = torch.Tensor.to
    torch.Tensor.to = functools.wraps(original)(
        lambda *given, original=original, **named: original(*given, **named)
    )
print(torch.ones(2).to("cuda").is_cuda)
"""


@pytest.fixture(scope="module")
def mapped(launch: Launcher) -> Run:
    return launch(
        ["python", "run.py"], {"run.py": SCRIPT}, device="cpu", mapping="cuda=cpu"
    )


@pytest.fixture(scope="module")
def told(mapped: Run) -> dict[str, object]:
    return _told(mapped)


@pytest.fixture(scope="module")
def brought(launch: Launcher) -> dict[str, object]:
    files = {"run.py": CHECKPOINTS}
    return _told(launch(["python", "run.py"], files, device="cpu", mapping="cuda=cpu"))


def _told(run: Run) -> dict[str, object]:
    path = run.project / "told.json"
    assert path.exists(), run.stderr
    answer: dict[str, object] = json.loads(path.read_text())
    return answer


def test_a_move_to_the_mapped_device_copies_as_one_to_cuda_does(told):
    assert told["host"] == [1.0, 1.0]
    assert told["snapshot"] is True


def test_a_move_is_mapped_however_often_the_method_was_wrapped(launch: Launcher):
    run = launch(["python", "t.py"], {"t.py": WRAPPED_TWICE}, mapping="cuda=cpu")
    assert (run.stdout, run.status) == ("True\n", 0)


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


def test_functions_of_the_scripts_own_cast_as_they_do_on_cuda(told):
    assert told["asked"] == [True, True, False]
    # As torch documents custom_fwd: cast, and without autocast inside.
    assert told["inside"] == ["torch.float32", False]
    assert told["backward"] is False


def test_threads_checkpoints_and_pinned_memory_are_mapped_too(told):
    assert told["thread"] == [1.0, 1.0]
    assert told["loaded"] == [1.0, 1.0]
    assert told["pinned"] == [1.0, 1.0]


_THERE = ["cpu:0", True, True]
_HERE = ["cpu", False, False]


def test_what_a_checkpoint_brings_to_cuda_is_there(brought):
    assert brought["held"] == dict.fromkeys(brought["held"], _THERE)
    assert len(brought["held"]) == 14


def test_what_a_checkpoint_brings_to_the_cpu_is_not(brought):
    assert brought["not held"] == dict.fromkeys(brought["not held"], _HERE)
    assert len(brought["not held"]) == 5


def test_tensors_of_one_storage_and_states_of_an_optimizer_are_there(brought):
    assert brought["shared"] == [_THERE, _THERE]
    assert brought["one storage"] is True
    assert brought["optimizer"] == brought["assigned"] == brought["module"] == _THERE


def test_a_storage_moves_as_it_does_on_cuda(brought):
    assert brought["storages"] == dict.fromkeys(brought["storages"], _THERE)
    assert brought["storages here"] == dict.fromkeys(brought["storages here"], _HERE)
    assert brought["storage alias"] == [True, True, True, False, True]


def test_a_tensor_on_cuda_that_a_queue_brings_is_there_and_shares_its_memory(brought):
    assert brought["queue"] == [_THERE, _HERE, _THERE, True]
    assert brought["queue back"] == _THERE
    # The other process added one to the part that it was sent.
    assert brought["queue shares"] == [0.0, 1.0, 1.0]


def test_a_text_that_is_no_device_is_left_alone(told):
    assert told["einsum"] is True


def test_each_call_is_told_with_its_place_and_count(mapped):
    events = mapped.of(MappedEvent)
    last = {(e.call, e.asked, e.where.rpartition("/")[2]): e for e in events}
    assert last["Tensor.to", "cuda", "run.py:12"].became == "cpu"
    assert last["torch.device", "cuda:0", "run.py:8"].count == 1
    assert last["torch.cuda.synchronize", "", "run.py:52"].count == 5
    assert not mapped.troubles()


def test_what_only_cuda_has_ends_the_run_and_names_itself(mapped):
    (error,) = mapped.of(Error)
    assert mapped.status == 1
    assert error.message.startswith("torch.cuda.Stream has no counterpart on cpu: ")
    assert error.where.endswith("run.py:54")
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
