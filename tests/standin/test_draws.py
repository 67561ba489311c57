"""Draws on a device of type mps are the CPU's, and the verdict says which were made."""

import json
import shutil

import pytest

DRAWS = """\
import json, sys
import torch
from torch import nn

device = sys.argv[1]
torch.manual_seed(0)
made = torch.Generator(device=device).manual_seed(4)
values = [
    torch.randn(5, device=device, generator=made),
    torch.randperm(7, device=device),
    torch.bernoulli(torch.full((9,), 0.4, device=device)),
    torch.multinomial(torch.ones(6, device=device), 3),
    nn.functional.dropout(torch.ones(12, device=device), 0.5),
]
# Setting back the state of the device alone brings its draws back.
source = torch if device == "cpu" else torch.get_device_module(device)
state = source.get_rng_state()
values.append(torch.rand(5, device=device))
with torch.random.fork_rng(devices=[] if device == "cpu" else [0], device_type=device):
    values.append(torch.rand(5, device=device))
source.set_rng_state(state)
values.append(torch.rand(5, device=device))
assert torch.equal(values[-3], values[-1])
model = nn.LSTM(3, 4, 2, dropout=0.5).to(device)
values.append(model(torch.ones(5, 2, 3, device=device))[0])
class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, number):
        return number + torch.rand(2)
loader = torch.utils.data.DataLoader(Noisy(), 4, shuffle=True, num_workers=1)
values += [batch.to(device) for batch in loader]
json.dump([value.tolist() for value in values], open("draws.json", "w"))
"""


@pytest.fixture(scope="module")
def replayed(standin, tmp_path_factory):
    """One bundle, and its replays on the device with the way of drawing asked for."""
    folder = tmp_path_factory.mktemp("draws")
    (folder / "project").mkdir()
    (folder / "project/train.py").write_text(DRAWS)
    bundle = folder / "draws.rpb.zip"
    done = standin.call(
        *("pack", "--offline", "-o", bundle, "-q", "--passes", "measured"),
        *("--rng", "portable", "--device", "cpu", "--"),
        *("python", "train.py", "{device}"),
        cwd=folder / "project",
        plain=True,
    )
    assert done.status == 0, done.err

    def replay(*options):
        copy = folder / "copy.rpb.zip"
        shutil.copy(bundle, copy)
        done = standin.call(
            *("replay", copy, "--env", standin.python, "--yes", "-q", "--json"),
            *("--device", "mps", "--passes", "measured", *options),
        )
        assert done.out, done.err
        (judged,) = json.loads(done.out)["judgements"]
        return judged, {one["id"]: one for one in judged["findings"]}

    return replay


def test_portable_draws_give_the_cpus_numbers_on_the_device(replayed):
    judged, findings = replayed()
    assert findings["same-draws"]["outcome"] == "pass"
    assert findings["draws-on-device"]["outcome"] == "pass"
    assert not findings["draws-on-device"]["reason"].startswith("0 ")
    # The script's own generator of the device has its seed in both records.
    assert findings["seed-calls"]["outcome"] == "pass"
    assert findings["seed-calls"]["reason"] == "2 seed calls"
    # Shuffled batches of a worker process among them, with its own noise.
    (output,) = judged["outputs"]
    assert output["result"] in ("bit-identical", "within-tolerance")


def test_native_draws_against_a_portable_reference_never_pass_unnamed(replayed):
    judged, findings = replayed("--rng", "native")
    assert findings["same-draws"]["outcome"] == "warn"
    assert any(reason.startswith("same-draws") for reason in judged["reasons"])
