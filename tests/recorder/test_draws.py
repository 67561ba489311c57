"""Runs whose draws are made by the CPU's generator, kept, and taken again."""

import json
import struct

import pytest

from reprobundle.run.drawn import drawn
from reprobundle.run.events import Device, Generators

pytestmark = pytest.mark.torch

TRAIN = """
import sys, torch
from torch import nn
F = nn.functional
torch.manual_seed(3); torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.Dropout(.3),
                      nn.AlphaDropout(.2), nn.Linear(16, 3))
lstm = nn.LSTM(3, 4, 2, dropout=.5)
data = torch.utils.data.TensorDataset(torch.randn(32, 20), torch.randint(3, (32,)))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
weights = [*model.parameters(), *lstm.parameters()]
made = torch.Generator().manual_seed(4)
for x, y in loader:
    for weight in weights:
        weight.grad = None
    out, _ = lstm(model(x)[None])
    q = torch.randn(1, 2, 5, 4, generator=made)
    attended = F.scaled_dot_product_attention(q, q, q, dropout_p=.2)
    loss = F.cross_entropy(out[0], y) + attended.sum() * 1e-3
    loss.backward()
    with torch.no_grad():
        for weight in weights:
            weight -= .1 * weight.grad
    print(loss.item().hex())
print(torch.multinomial(torch.ones(4), 3).tolist(), torch.randperm(5).tolist())
print(torch.empty(3).exponential_().tolist(), isinstance(made, torch.Generator))
if sys.argv[1:] == ['more']:
    torch.rand(2)
"""


@pytest.fixture(scope="module")
def runs(launch):
    """The same training with each way of drawing, and a replay of the kept one."""
    files = {"run.py": TRAIN}
    found = {
        rng: launch(["python", "run.py"], files, rng=rng)
        for rng in ("native", "portable", "recorded")
    }
    kept = found["recorded"].session / "values" / "draws.safetensors"
    found["taken"] = launch(["python", "run.py"], files, rng="recorded", draws=kept)
    for run in found.values():
        assert (run.status, run.stderr, run.troubles()) == (0, "", [])
    return found


@pytest.mark.parametrize("rng", ["portable", "recorded", "taken"])
def test_on_the_cpu_no_bit_changes(runs, rng):
    assert runs[rng].stdout == runs["native"].stdout
    assert final_states(runs[rng]) == final_states(runs["native"]) != []


def final_states(run):
    """The states of torch's generators at the end."""
    return [
        (name, state)
        for event in run.of(Generators)
        if event.when == "final"
        for name, state in event.fingerprints.items()
        if name.startswith("torch")
    ]


def test_the_record_says_how_draws_were_made(runs):
    modes = {name: drawn(run.files).mode for name, run in runs.items()}
    assert modes == {
        "native": "native",
        "portable": "portable",
        "recorded": "recorded",
        "taken": "recorded",
    }
    kept, taken = drawn(runs["recorded"].files), drawn(runs["taken"].files)
    assert kept.complete
    assert kept.kept == taken.taken > kept.followed == taken.followed > 20
    assert (taken.differing, taken.missing, taken.stopped) == (0, 0, "")
    assert {event.device for event in runs["taken"].of(Device)} == {"cpu"}


def read(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def write(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def replay(launch, path, *arguments):
    command = ["python", "run.py", *arguments]
    run = launch(command, {"run.py": TRAIN}, rng="recorded", draws=path)
    assert (run.status, run.stderr, run.troubles()) == (0, "", [])
    return run


def test_a_replay_starts_from_the_kept_values(launch, runs, tmp_path):
    header, data = read(runs["recorded"].session / "values" / "draws.safetensors")
    start, end = header["weights.0.0.weight"]["data_offsets"]
    halved = b"".join(
        struct.pack("<f", value / 2)
        for (value,) in struct.iter_unpack("<f", data[start:end])
    )
    write(tmp_path / "d", header, data[:start] + halved + data[end:])
    run = replay(launch, tmp_path / "d")
    assert drawn(run.files).differing == 1
    assert run.stdout != runs["native"].stdout
    # The generators moved on as they would have.
    assert run.stdout.splitlines()[-2:] == runs["native"].stdout.splitlines()[-2:]


def test_a_draw_that_does_not_match_stops_the_taking(launch, runs, tmp_path):
    header, data = read(runs["recorded"].session / "values" / "draws.safetensors")
    header["__metadata__"]["draw.5"] = "uniform_(from=0.0, to=2.0)"
    write(tmp_path / "d", header, data)
    found = drawn(replay(launch, tmp_path / "d").files)
    assert found.stopped.startswith("draw.5 is ")
    assert found.taken < found.followed


def test_one_draw_more_than_the_reference_is_said(launch, runs):
    path = runs["recorded"].session / "values" / "draws.safetensors"
    found = drawn(replay(launch, path, "more").files)
    assert "one more than the reference made" in found.stopped


def test_compiled_code_is_refused_with_the_remedy(launch):
    source = """
import torch
step = torch.compile(lambda x: x + torch.rand(1))
print('not yet')
step(torch.ones(1))
"""
    run = launch(["python", "run.py"], {"run.py": source}, rng="portable")
    assert run.status == 1
    assert run.stdout == "not yet\n"
    assert "refuse torch.compile" in run.stderr
    assert "run.py:3" in run.stderr
    assert "TORCH_COMPILE_DISABLE=1" in run.stderr
