"""Measure a dry forecast of a model that does not fit here, and hold it against a run.

    python benchmarks/forecast.py [--layers 48] [--width 1600] [--context 512]

A GPT with AdamW and gradient clipping, written as a script that knows nothing of this
project. The large one is forecast dry; a small one is forecast dry and in earnest, and
both must give the same peak. The floor is what weights, gradients and both moments of
AdamW take, 16 bytes for each parameter.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = """
import sys
import torch
import torch.nn.functional as F
from torch import nn

device = sys.argv[1]
layers, width, context, words = map(int, sys.argv[2:])


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        three = self.project(self.first(x)).view(b, t, 3, -1, 64)
        q, k, v = three.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, i):
        x = self.words(i) + self.places(torch.arange(i.shape[1], device=i.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


model = Model().to(device)
print(sum(one.numel() for one in model.parameters()), file=sys.stderr)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(2):
    text = torch.randint(0, words, (1, context + 1)).to(device)
    logits = model(text[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
    optimizer.step()
    print(step, loss.item())
"""
SMALL = ("2", "128", "32", "500")


def forecast(folder: Path, sizes: tuple[str, ...], *, dry: bool) -> dict[str, Any]:
    """Return the forecast, with the seconds it took and the parameters of the model."""
    options = ["--json", "--echo", *(["--dry"] if dry else [])]
    command = ["python", "train.py", "{device}", *sizes]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "reprobundle", "forecast", *options, "--", *command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    if not done.stdout:
        sys.exit(done.stderr)
    printed = [line for line in done.stderr.splitlines() if line.isdigit()]
    return {**json.loads(done.stdout), "s": seconds, "parameters": int(printed[0])}


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("layers", 48), ("width", 1600), ("context", 512)):
        parser.add_argument(f"--{name}", default=str(value))
    given = parser.parse_args()
    sizes = (given.layers, given.width, given.context, "50257")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(PROGRAM)
        large = forecast(folder, sizes, dry=True)
        peak_rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        run = forecast(folder, SMALL, dry=False)
        dry = forecast(folder, SMALL, dry=True)
    floor = 16 * large["parameters"]
    print(f"large  {large['parameters']:,} parameters, dry: {large['s']:.1f} s")
    # Kibibytes on Linux, bytes on macOS.
    scale = 1 if sys.platform == "darwin" else 1024
    print(f"       resident at most {peak_rss * scale / 2**30:.2f} GiB")
    print(
        f"       tensors at one time {large['peak_bytes'] / 2**30:.2f} GiB;"
        f" floor {floor / 2**30:.2f} GiB; on a Mac: "
        + ", ".join(f"{o['mac_bytes'] >> 30} GB {o['fit']}" for o in large["memory"])
    )
    print(
        f"small  {run['parameters']:,} parameters: run {run['peak_bytes']:,} B in "
        f"{run['s']:.1f} s, dry {dry['peak_bytes']:,} B in {dry['s']:.1f} s"
    )
    both = [{o["operator"] for o in one["operators"]} for one in (run, dry)]
    print(
        f"       operators {len(both[0])} and {len(both[1])}, "
        f"in one of them alone: {sorted(both[0] ^ both[1]) or 'none'}"
    )
    sys.exit(0 if large["peak_bytes"] >= floor else 1)


if __name__ == "__main__":
    main()
