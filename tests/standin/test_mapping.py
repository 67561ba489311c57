"""Map a script that names CUDA outright to a device of type mps."""

from __future__ import annotations

import json

import pytest

from reprobundle.format.reader import open_bundle

TRAIN = """\
import io, json, torch
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
device = torch.device("cuda:0")
model = torch.nn.Linear(4, 2).cuda()
with torch.cuda.device(0):
    x = torch.ones(3, 4, device="cuda")
loss = model(x).square().mean()
loss.backward()
torch.cuda.synchronize()
assert x.is_cuda and torch.cuda.is_available()
assert (x + 1).to("cuda") is not None and x.to(device) is x
kept = io.BytesIO()
torch.save(x, kept)
for where in (None, "cuda", device, x.device, {"cpu": "cuda:0"}):
    kept.seek(0)
    loaded = torch.load(kept, map_location=where)
    assert loaded.is_cuda and loaded.device == x.device, (where, loaded.device)
kept.seek(0)
assert not torch.load(kept, map_location="cpu").is_cuda
kept.seek(0)
assert torch.load(kept, map_location=lambda storage, tag: storage.cuda()).is_cuda
assert torch.ones(2).untyped_storage().to(device="cuda:0").cuda().cpu().nbytes() == 8
queue = torch.multiprocessing.Queue()
sent = torch.nn.Parameter(x[1:, 2:])
queue.put((sent, torch.ones(2)))
came, plain = queue.get(timeout=60)
assert came.is_cuda and came.requires_grad and torch.equal(came, sent)
assert type(came) is torch.nn.Parameter and not plain.is_cuda
json.dump(loss.item(), open("loss.json", "w"))
"""


@pytest.fixture(scope="module")
def mapped(standin, tmp_path_factory):
    """Return a replay on mps and one on the CPU of a bundle packed on the CPU."""
    folder = tmp_path_factory.mktemp("mapped")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(TRAIN)
    bundle = folder / "x.rpb.zip"
    done = standin.call(
        *("pack", "-o", bundle, "-q", "--passes", "measured", "--offline"),
        *("--map-device", "cuda=cpu", "--", "python", "train.py"),
        cwd=folder / "project",
        plain=True,
    )
    assert done.status == 0, done.err
    done = standin.call(
        *("replay", bundle, "--env", standin.python, "--yes", "-q", "--json"),
        *("--map-device", "cuda=mps", "--map-device", "cuda=cpu"),
        *("--passes", "measured"),
    )
    assert done.out, done.err
    return done, bundle


def test_both_devices_are_run_and_each_says_it_was_mapped(mapped):
    done, _ = mapped
    devices = [judged["device"] for judged in done.report["judgements"]]
    assert devices == ["mps-standin", "cpu"]
    for judged in done.report["judgements"]:
        (found,) = [f for f in judged["findings"] if f["id"] == "device-mapped"]
        assert found["outcome"] == "warn"
        assert "the replay was made with --map-device cuda=" in found["reason"]


def test_the_record_names_each_mapped_call_with_its_place(mapped):
    _, path = mapped
    with open_bundle(path) as bundle:
        records = [
            json.loads(bundle.read_unsealed(f"replays/{one}/record.json"))
            for one in bundle.replay_ids
        ]
    (on_mps,) = [r for r in records if r["devices"]["mapping"] == "cuda=mps"]
    found = {
        (one["call"], one["asked"], one["became"], one["where"])
        for one in on_mps["devices"]["mapped"]
    }
    assert ("torch.device", "cuda:0", "mps", "{project}/train.py:4") in found
    assert ("Tensor.cuda", "cuda", "mps", "{project}/train.py:5") in found
    assert ("torch.ones", "cuda", "mps", "{project}/train.py:7") in found
    (copied,) = [one for one in found if one[0] == "torch.multiprocessing"]
    assert copied[2] == "a copy, and no shared memory"
    seeds = [call["function"] for call in on_mps["randomness"]["calls"]]
    assert seeds == ["torch.manual_seed", "torch.cuda.manual_seed_all"]


def test_the_values_are_those_of_the_cpu_within_tolerance(mapped):
    done, _ = mapped
    results = [o["result"] for j in done.report["judgements"] for o in j["outputs"]]
    assert set(results) <= {"bit-identical", "within-tolerance"}
    assert len(results) == 2
