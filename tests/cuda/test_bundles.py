"""On a real GPU: bundles between CPU and CUDA, the clock, memory, and TF32."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import msgspec
import pytest

from reprobundle.format.reader import open_bundle
from reprobundle.format.record import MemorySeries, Record

pytestmark = pytest.mark.cuda
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

STEPS = 40
WIDTH = 4096
# A loop that never waits by itself: asking takes far less time than the work.
BUSY = f"""\
import reprobundle, torch
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear({WIDTH}, {WIDTH}) for _ in range(4)))
model = model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.randn(8192, {WIDTH}, device="cuda")
for step in range({STEPS}):
    with reprobundle.phase("whole step"):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    with reprobundle.phase("product"):
        x @ model[0].weight
torch.save({{"loss": loss.detach().cpu()}}, "loss.pt")
"""
SMALL = """\
import json, sys
import torch
device = sys.argv[1]
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Dropout(0.3),
    torch.nn.Linear(32, 1),
).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
losses = []
for step in range(30):
    x = torch.randn(64, 8, device=device)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
json.dump(losses, open("losses.json", "w"))
"""
NAMED = """\
import json, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).cuda()
x = torch.ones(3, 4, device="cuda")
loss = model(x).square().mean()
loss.backward()
torch.cuda.synchronize()
json.dump(loss.item(), open("loss.json", "w"))
"""
# What a script that was written for one GPU does with its checkpoints.
CHECKPOINTED = """\
import json, sys
import torch
device = torch.device("cuda")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters())
def train(steps):
    for _ in range(steps):
        x = torch.linspace(-1, 1, 8, device="cuda").repeat(4, 1)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
first = train(5)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "s.pt")
before = train(5)
state = torch.load("s.pt", map_location=device)
kept = {name: value.cpu() for name, value in state["model"].items()}
copies = {name: value.clone() for name, value in kept.items()}
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
after = train(5)
places = {str(where): torch.load("s.pt", map_location=where)["model"]["0.bias"].is_cuda
          for where in (None, "cuda", "cuda:0", "cpu")}
moved = torch.load("s.pt", map_location=lambda storage, tag: storage.cuda())
snapshot = all(torch.equal(kept[name], copies[name]) for name in kept)
json.dump({"resumed": before == after, "places": places, "snapshot": snapshot,
           "moved": moved["model"]["0.bias"].is_cuda}, open("told.json", "w"))
json.dump([first, before, after], open("losses.json", "w"))
"""
MATMUL = """\
import numpy, torch
torch.backends.cuda.matmul.allow_tf32 = True
x = torch.randn(512, 512, generator=torch.Generator().manual_seed(0)).cuda()
numpy.save("product.npy", (x @ x).cpu().numpy())
"""


def call(*arguments, cwd=None, **variables):
    done = subprocess.run(
        [sys.executable, "-m", "reprobundle", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def pack(folder, name, script, *options, arguments=(), **variables):
    project = folder / name
    project.mkdir()
    (project / "run.py").write_text(script)
    bundle = folder / f"{name}.rpb.zip"
    done = call(
        *("pack", "-q", "-o", bundle, "--passes", "measured", *options),
        *("--", sys.executable, "run.py", *arguments),
        cwd=project,
        **variables,
    )
    assert bundle.exists(), done.stderr
    return bundle


def reference(bundle):
    with open_bundle(bundle) as opened:
        names = [m.path for m in opened.manifest.members]
        record = msgspec.json.decode(opened.read("runs/1/record.json"), type=Record)
        series = (
            msgspec.json.decode(opened.read("runs/1/memory.json"), type=MemorySeries)
            if "runs/1/memory.json" in names
            else None
        )
    return record, series


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("busy")
    return reference(pack(folder, "busy", BUSY, "--device", "cuda"))


@pytest.mark.parametrize("name", ["forward", "backward", "product"])
def test_a_clock_that_does_not_wait_misses_most_of_the_work(busy, name):
    (phase,) = (one for one in busy[0].phases if one.name == name)
    assert (phase.count, phase.synchronizations) == (STEPS, 2 * STEPS)
    ratio = phase.unwaited_median_ns / phase.median_ns
    sys.stderr.write(f"{name} {phase.median_ns} ns, ratio {ratio:.4f}\n")
    assert ratio < 0.5


def test_a_phase_in_which_the_recorder_waits_has_no_self_check_of_its_own(busy):
    found = {phase.name: phase for phase in busy[0].phases}
    whole = found["whole step"]
    assert whole.median_ns > found["forward"].median_ns + found["backward"].median_ns
    assert (whole.unwaited_median_ns, whole.unwaited_ratio) == (None, None)


def test_the_memory_log_holds_what_the_allocator_must_have_given(busy):
    record, series = busy
    weights = 4 * (WIDTH * WIDTH + WIDTH) * 4
    seen = [s.bytes["cuda_allocated"] for s in series.samples if "step " in s.point]
    assert min(seen) >= 2 * weights
    assert record.memory.peak_device_bytes.value >= max(seen)
    peaks = [s.bytes.get("cuda_peak_allocated", 0) for s in series.samples]
    assert max(peaks) >= max(seen) + 8192 * WIDTH * 4


def test_the_generator_of_the_device_is_told_from_its_first_use_on(busy):
    known = busy[0].randomness
    assert len(known.initial["torch.cuda:0"]) == len(known.final["torch.cuda:0"]) == 16


def judged(folder, bundle, device, *options):
    copy = folder / f"on-{device}-{bundle.name}"
    shutil.copy(bundle, copy)
    done = call(
        *("replay", copy, "--yes", "-q", "--json", "--device", device),
        *("--passes", "measured", *options),
    )
    (one,) = json.loads(done.stdout)["judgements"]
    return one, {output["name"]: output for output in one["outputs"]}


@pytest.mark.parametrize(("here", "there"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_portable_draws_carry_a_result_between_the_devices(tmp_path, here, there):
    options = ("--device", here, "--rng", "portable", "--seed", "0")
    bundle = pack(tmp_path, "small", SMALL, *options, arguments=("{device}",))
    one, outputs = judged(tmp_path, bundle, there)
    assert one["device"] == there
    (output,) = outputs.values()
    assert output["result"] in ("bit-identical", "within-tolerance"), output


def test_native_draws_make_two_trainings_of_it(tmp_path):
    options = ("--device", "cpu", "--seed", "0")
    bundle = pack(tmp_path, "small", SMALL, *options, arguments=("{device}",))
    _, outputs = judged(tmp_path, bundle, "cuda")
    (output,) = outputs.values()
    assert output["result"] == "outside-tolerance"


def test_a_script_that_names_cuda_is_mapped_to_the_cpu_beside_a_gpu(tmp_path):
    bundle = pack(tmp_path, "named", NAMED, "--seed", "0")
    one, outputs = judged(tmp_path, bundle, "cpu", "--map-device", "cuda=cpu")
    assert one["device"] == "cpu"
    (output,) = outputs.values()
    assert output["result"] in ("bit-identical", "within-tolerance"), output


def test_a_checkpoint_of_cuda_comes_back_under_a_mapping_beside_a_gpu(tmp_path):
    # Packed on the GPU itself and replayed mapped: both have to tell the same.
    bundle = pack(tmp_path, "kept", CHECKPOINTED, "--seed", "0")
    one, outputs = judged(tmp_path, bundle, "cpu", "--map-device", "cuda=cpu")
    assert one["device"] == "cpu"
    told = {name: output["result"] for name, output in outputs.items()}
    assert told["told.json"] == "bit-identical", outputs
    assert told["losses.json"] in ("bit-identical", "within-tolerance"), outputs
    with open_bundle(bundle) as opened:
        said = json.loads(opened.read("runs/1/outputs/told.json"))
    there = {"None": True, "cuda": True, "cuda:0": True, "cpu": False}
    assert said == {"resumed": True, "places": there, "snapshot": True, "moved": True}


def test_a_checkpoint_that_was_made_mapped_is_one_of_cuda(tmp_path):
    bundle = pack(tmp_path, "mapped", CHECKPOINTED, "--map-device", "cuda=cpu")
    with open_bundle(bundle) as opened:
        content = opened.read("runs/1/outputs/s.pt")
    (tmp_path / "s.pt").write_bytes(content)
    state = torch.load(tmp_path / "s.pt")
    assert {str(value.device) for value in state["model"].values()} == {"cuda:0"}


HIDING = {"CUDA_VISIBLE_DEVICES": ""}


def test_hidden_gpus_are_to_be_shown_and_no_other_torch_is_advised(tmp_path):
    (tmp_path / "run.py").write_text(NAMED)
    told = call(
        *("pack", "-q", "-o", tmp_path / "x.rpb.zip", "--passes", "measured"),
        *("--", sys.executable, "run.py"),
        cwd=tmp_path,
        **HIDING,
    )
    assert told.returncode == 22
    said = " ".join(told.stderr.split())
    assert "CUDA_VISIBLE_DEVICES='' leaves torch no GPU: unset" in said
    assert "build of torch" not in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--device", "cuda"), "leaves torch no GPU; unset CUDA_VISIBLE_DEVICES"),
        ((), "env -u CUDA_VISIBLE_DEVICES reprobundle replay"),
    ],
)
def test_a_replay_with_hidden_gpus_says_how_to_show_them(tmp_path, options, words):
    bundle = pack(tmp_path, "named", NAMED, "--seed", "0")
    done = call(
        *("replay", bundle, "--yes", "-q", "--json", "--passes", "measured"),
        *options,
        **HIDING,
    )
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (11, "NOT RUN HERE")
    assert words in done.stdout


def test_tf32_is_the_one_change_that_moves_a_product(tmp_path):
    on = pack(tmp_path, "on", MATMUL, "--device", "cuda")
    off = pack(tmp_path, "off", MATMUL, "--device", "cuda", NVIDIA_TF32_OVERRIDE="0")
    shown = call("diff", on, off).stdout
    assert "env.NVIDIA_TF32_OVERRIDE" in shown
    assert "one thing was changed: precision" in shown
    assert "outside-tolerance" in shown
