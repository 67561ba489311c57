"""Real runs whose memory leaks, wanders, or grows with shapes are told apart."""

import pytest

from reprobundle.run.memory_log import memory, memory_samples, thinned

# Its counter is what Linux counts as anonymous memory.
pytestmark = [pytest.mark.torch, pytest.mark.linux]

LOOP = """
import sys
import torch
from torch import nn

torch.manual_seed(0); torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
kept, plans = [], {}
for step in range(72):
    rows = 1024
    if sys.argv[1] in ('shapes', 'wander'):
        rows -= 8 * (step // 6 if sys.argv[1] == 'shapes' else step % 7)
    optimizer.zero_grad()
    out = model(torch.ones(rows, 64))
    loss = out.square().mean()
    # Without the second argument the buffers go when the loss does.
    loss.backward(retain_graph=True)
    optimizer.step()
    if sys.argv[1] == 'leak':
        kept.append(loss)
    if sys.argv[1] == 'shapes' and rows not in plans:
        plans[rows] = torch.ones(2_000_000)
"""


@pytest.fixture(scope="module")
def logs(launch):
    found = {}
    for mode in ("leak", "shapes", "wander"):
        run = launch(["python", "run.py", mode], {"run.py": LOOP})
        assert (run.status, run.stderr, run.troubles()) == (0, "", [])
        samples = memory_samples(run.files, 0)
        found[mode] = memory(
            run.files, samples, {}, series="m", kept=len(thinned(samples)), hide=[]
        )
    return found


def test_kept_losses_are_a_leak_of_their_own_size(logs):
    (growth,) = logs["leak"].growth
    assert (growth.counter, growth.kind) == ("anonymous", "linear")
    # A loss holds the outputs of two layers and of one tanh at least: 2 MiB.
    assert 1.9e6 < float(growth.bytes_per_round) < 5e6
    assert float(growth.noise_bytes_per_round) < float(growth.bytes_per_round)


def test_changing_shapes_alone_are_no_leak(logs):
    assert logs["wander"].distinct_shapes == 7
    (growth,) = logs["wander"].growth
    if growth.kind not in ("flat", "step", "unclear"):
        # glibc's heap grew by pieces, as it may: still no loss is as small as that.
        (leak,) = logs["leak"].growth
        assert growth.kind in ("linear", "with-shapes")
        assert float(growth.bytes_per_round) < float(leak.bytes_per_round) / 8


def test_what_is_kept_for_each_shape_grows_with_shapes(logs):
    assert logs["shapes"].distinct_shapes == 12
    (growth,) = logs["shapes"].growth
    assert growth.kind == "with-shapes"
