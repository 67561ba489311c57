"""Run small programs on a device and print the operators each of them called.

    python small_programs.py cpu|mps [unwatched|profiled]

One JSON line: program → sorted operators, or the error in one line. Unwatched, somebody
else looks at the operators, and the list is empty; profiled, it holds those that
enclose an ``aten::_to_cpu`` in torch's profile: those that fell back to the CPU.
"""

# ruff: noqa: N812, T201, BLE001
# mypy: ignore-errors
import contextlib
import json
import linecache
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

device = sys.argv[1]
watched = sys.argv[2] if sys.argv[2:] else ""

TRAINED = {
    "conv1d": ("nn.Conv1d(3, 4, 3)", (1, 3, 8)),
    "conv2d": ("nn.Conv2d(3, 4, 3)", (1, 3, 8, 8)),
    "conv3d": ("nn.Conv3d(3, 4, 3)", (1, 3, 8, 8, 8)),
    "conv_transpose": ("nn.ConvTranspose2d(3, 4, 3)", (1, 3, 8, 8)),
    "batch_norm": ("nn.BatchNorm2d(3)", (2, 3, 4, 4)),
    "group_norm": ("nn.GroupNorm(1, 4)", (2, 4, 3, 3)),
    "layer_norm": ("nn.LayerNorm(4)", (2, 4)),
    "rms_norm": ("nn.RMSNorm(4)", (2, 4)),
    "lstm": ("nn.LSTM(4, 8, batch_first=True)", (2, 3, 4)),
    "gru": ("nn.GRU(4, 8, batch_first=True)", (2, 3, 4)),
    "max_pool": ("nn.MaxPool2d(2)", (1, 2, 4, 4)),
    "avg_pool": ("nn.AvgPool2d(2)", (1, 2, 4, 4)),
    "adaptive_avg": ("nn.AdaptiveAvgPool2d(2)", (1, 2, 5, 5)),
    "adaptive_max": ("nn.AdaptiveMaxPool2d(2)", (1, 2, 5, 5)),
    "bilinear": ("nn.Upsample(scale_factor=2, mode='bilinear')", (1, 2, 4, 4)),
    "bicubic": ("nn.Upsample(scale_factor=2, mode='bicubic')", (1, 2, 4, 4)),
    "nearest": ("nn.Upsample(scale_factor=2)", (1, 2, 4, 4)),
    "gelu": ("nn.GELU()", (2, 3)),
    "silu": ("nn.SiLU()", (2, 3)),
    "elu": ("nn.ELU()", (2, 3)),
    "softplus": ("nn.Softplus()", (2, 3)),
    "prelu": ("nn.PReLU()", (2, 3)),
    "glu": ("nn.GLU()", (2, 4)),
    "dropout": ("nn.Dropout()", (2, 3)),
    "linear": ("nn.Linear(3, 4)", (2, 5, 3)),
    "encoder": ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", (2, 7, 8)),
    "pixel_shuffle": ("nn.PixelShuffle(2)", (1, 4, 2, 2)),
    "unfold": ("nn.Unfold(2)", (1, 2, 4, 4)),
}
MODEL = "m = nn.Linear(4, 4).to(d); m(torch.randn(2, 4, device=d)).sum().backward(); "
PLAIN = {
    "embedding": "nn.Embedding(5, 4).to(d)(torch.tensor([1, 2], device=d)).sum()"
    ".backward()",
    "embedding_bag": "nn.EmbeddingBag(5, 4).to(d)(torch.tensor([[1, 2]], device=d))"
    ".sum().backward()",
    "adam": MODEL + "torch.optim.Adam(m.parameters()).step()",
    "adam_foreach": MODEL + "torch.optim.Adam(m.parameters(), foreach=True).step()",
    "adam_fused": MODEL + "torch.optim.Adam(m.parameters(), fused=True).step()",
    "adamw": MODEL + "torch.optim.AdamW(m.parameters(), foreach=False).step()",
    "sgd": MODEL + "torch.optim.SGD(m.parameters(), .1, momentum=.9, foreach=False)"
    ".step()",
    "rmsprop": MODEL + "torch.optim.RMSprop(m.parameters(), foreach=False).step()",
    "clip": MODEL + "nn.utils.clip_grad_norm_(m.parameters(), 1., foreach=False)",
    "sdpa": "F.scaled_dot_product_attention(*[torch.randn(1, 2, 5, 8, device=d)] * 3)",
    "cross_entropy": "F.cross_entropy(r(2, 5), torch.tensor([1, 2], device=d))"
    ".backward()",
    "bce": "F.binary_cross_entropy_with_logits(r(2), torch.ones(2, device=d))"
    ".backward()",
    "mse": "F.mse_loss(r(2), torch.ones(2, device=d)).backward()",
    "smooth_l1": "F.smooth_l1_loss(r(2), torch.ones(2, device=d)).backward()",
    "kl": "F.kl_div(r(2).log_softmax(0), torch.ones(2, device=d)).backward()",
    "nll": "F.nll_loss(r(2, 3), torch.tensor([1, 2], device=d)).backward()",
    "cosine": "F.cosine_similarity(r(2, 3), r(2, 3)).sum().backward()",
    "ctc": "F.ctc_loss(r(5, 1, 4).log_softmax(-1), torch.tensor([[1, 2]], device=d),"
    " (5,), (2,)).backward()",
    "ctc_tensors": "F.ctc_loss(r(5, 1, 4).log_softmax(-1), torch.tensor([[1, 2]],"
    " device=d), torch.tensor([5]), torch.tensor([2])).backward()",
    "grid": "F.grid_sample(r(1, 1, 4, 4), torch.zeros(1, 2, 2, 2, device=d),"
    " align_corners=False).sum().backward()",
    "svd": "torch.linalg.svd(r(3, 3))",
    "eigh": "torch.linalg.eigh(torch.eye(3, device=d))",
    "eig": "torch.linalg.eig(torch.eye(3, device=d))",
    "qr": "torch.linalg.qr(torch.eye(3, device=d))",
    "cholesky": "torch.linalg.cholesky(torch.eye(3, device=d))",
    "inv": "torch.linalg.inv(torch.eye(3, device=d))",
    "solve": "torch.linalg.solve(torch.eye(3, device=d), torch.ones(3, device=d))",
    "det": "torch.linalg.det(torch.eye(3, device=d))",
    "unique": "torch.unique(torch.tensor([1, 1, 2], device=d))",
    "sort": "torch.sort(r(4))",
    "topk": "torch.topk(r(4), 2)",
    "argmax": "torch.argmax(r(4))",
    "multinomial": "torch.multinomial(torch.ones(4, device=d), 2)",
    "randperm": "torch.randperm(4, device=d)",
    "histc": "torch.histc(r(4))",
    "bincount": "torch.bincount(torch.tensor([1, 2], device=d))",
    "cumsum": "r(4).cumsum(0).sum().backward()",
    "cumprod": "r(4).cumprod(0)",
    "median": "r(4).median()",
    "kthvalue": "torch.kthvalue(r(4), 2)",
    "mode": "torch.mode(r(4))",
    "fft": "torch.fft.rfft(torch.randn(4, device=d))",
    "einsum": "torch.einsum('ij,jk->ik', r(2, 2), r(2, 2)).sum().backward()",
    "cdist": "torch.cdist(r(3, 2), r(3, 2))",
    "searchsorted": "torch.searchsorted(torch.arange(4., device=d), r(1))",
    "bernoulli": "torch.bernoulli(torch.ones(2, device=d))",
    "poisson": "torch.poisson(torch.ones(2, device=d))",
    "lgamma": "torch.lgamma(torch.ones(2, device=d))",
    "erfinv": "torch.erfinv(torch.zeros(2, device=d))",
    "heaviside": "torch.heaviside(r(2), torch.ones(2, device=d))",
    "scatter_reduce": "torch.zeros(3, device=d).scatter_reduce(0,"
    " torch.tensor([0, 1], device=d), r(2), 'amax')",
    "index_add": "torch.zeros(3, device=d).index_add(0, torch.tensor([0, 1], device=d),"
    " r(2))",
    "gather": "r(3).gather(0, torch.tensor([0, 1], device=d)).sum().backward()",
    "index_put": "x = r(3).detach(); x[torch.tensor([0, 1], device=d)] = 1.",
    "nonzero": "torch.nonzero(torch.ones(2, device=d))",
    "where": "torch.where(r(2) > 0, r(2), 0.).sum().backward()",
    "tril": "torch.tril(r(3, 3)).sum().backward()",
    "roll": "torch.roll(r(3), 1).sum().backward()",
    "flip": "torch.flip(r(3), (0,)).sum().backward()",
    "pad": "F.pad(r(1, 1, 3, 3), (1, 1, 1, 1), mode='reflect').sum().backward()",
    "logsumexp": "torch.logsumexp(r(3), 0).backward()",
    "var": "r(3).var().backward()",
    "norm": "torch.linalg.vector_norm(r(3)).backward()",
    "baddbmm": "torch.baddbmm(r(1, 2, 2), r(1, 2, 2), r(1, 2, 2)).sum().backward()",
}


class Called(TorchDispatchMode):
    """Remember the names of operators."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, operator, types, arguments=(), named=None):
        self.names.add(str(operator))
        return operator(*arguments, **(named or {}))


def random(*shape):
    return torch.randn(*shape, device=device, requires_grad=True)


def called(name, source):
    """Run one program, as if it were a file beside this one."""
    torch.manual_seed(0)
    place = {"torch": torch, "nn": nn, "F": F, "d": device, "r": random}
    file = str(Path(__file__).resolve().parent / f"{name}.py")
    linecache.cache[file] = (len(source), None, [source + "\n"], file)
    with watcher() as seen:
        try:
            exec(compile(source, file, "exec"), place)
        except Exception as error:
            return [f"error: {type(error).__name__}: {error}"[:200]]
    if watched == "profiled":
        return sorted(fallen_back(seen.events()))
    return sorted(seen.names) if seen else []


def watcher():
    if watched == "profiled":
        return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    return contextlib.nullcontext() if watched else Called()


def fallen_back(events):
    for event in events:
        if event.name == "aten::_to_cpu" and event.cpu_parent is not None:
            yield event.cpu_parent.name


trained = {
    name: f"y = {module}.to(d)(r{shape}); y = y[0] if isinstance(y, tuple) else y; "
    "y.sum().backward()"
    for name, (module, shape) in TRAINED.items()
}
found = {name: called(name, text) for name, text in {**trained, **PLAIN}.items()}
print(json.dumps(found))
