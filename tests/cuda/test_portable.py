"""On a real GPU: portable draws take the draws out of what devices differ by."""

import sys

import pytest

from reprobundle.recorder import device_draws, unfused
from reprobundle.recorder.mirrored import Mirrored

# The recorder silences what torch says about a replaced kernel; here nobody does.
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore:Warning only once for all operators"),
    # Layers drawn one by one hand cuDNN their weights in pieces.
    pytest.mark.filterwarnings("ignore:RNN module weights are not part of single"),
]
torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


def make_model():
    """Attention with dropout, a recurrent layer with dropout, and plain dropout."""
    nn = torch.nn
    return nn.ModuleList(
        [
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.2),
            nn.LSTM(32, 32, 2, dropout=0.3),
            nn.Dropout(0.3),
            nn.Linear(32, 4),
        ]
    )


def forward(model, x):
    encoder, lstm, drop, head = model
    return head(drop(lstm(encoder(x))[0]))


def losses(device):
    torch.manual_seed(7)
    model = make_model().to(device)
    generator = torch.Generator(device=device).manual_seed(9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    for _ in range(20):
        x = torch.randn(8, 16, 32, device=device, generator=generator)
        y = torch.randint(4, (8 * 16,), device=device)
        loss = torch.nn.functional.cross_entropy(forward(model, x).flatten(0, 1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return torch.tensor(found, dtype=torch.float64)


@pytest.fixture
def library():
    made = torch.library.Library("aten", "IMPL")
    yield made
    # Another module of tests installs the same kernels.
    made._destroy()


def test_portable_draws_bring_cuda_near_the_cpu(library):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    reference = losses("cpu")
    native = ((losses("cuda") - reference) / reference).abs().max().item()
    mirrored = Mirrored(torch)
    mirrored.install()
    draws = device_draws.DeviceDraws(torch, mirrored)
    draws.install(library)
    unfused.install(torch, "")
    ours = losses("cuda")
    portable = ((ours - reference) / reference).abs().max().item()
    sys.stderr.write(f"native {native:.2e}, portable {portable:.2e}\n")
    assert draws.moved > 100
    assert portable < 1e-4
    assert portable < native / 100
    assert mirrored.advanced() == []
    torch.rand(1, device="cuda").exponential_()
    assert mirrored.advanced() == []
