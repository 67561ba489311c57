"""Show the error of a recurrent network that keeps its state from batch to batch.

The state has the size of the first batch. 100 images in batches of 16 leave four for
the seventh batch, and torch refuses the state there:

    RuntimeError: Expected hidden size (1, 4, 32), got [1, 16, 32]

The six losses before it are in the output: the failure comes at a known step.
"""

import argparse
import csv
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

HERE = Path(__file__).resolve().parent
BATCH_SIZE = 16
HIDDEN_SIZE = 32


class StatefulReader(nn.Module):
    """Reads an 8 x 8 image row by row and names its digit."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(input_size=8, hidden_size=HIDDEN_SIZE, batch_first=True)
        self.head = nn.Linear(HIDDEN_SIZE, 10)
        self.state: Tensor | None = None

    def forward(self, images: Tensor) -> Tensor:
        """Return logits of shape (n, 10) for images of shape (n, 8, 8)."""
        rows, state = self.gru(images, self.state)
        # The state goes on to the next batch, as for a text cut into pieces.
        self.state = state.detach()
        return self.head(rows[:, -1])


def set_precision(device: str) -> None:
    """Multiply in bfloat16 if PRECISION says so, as some machines do by themselves."""
    if os.environ.get("PRECISION") == "bfloat16":
        torch.set_autocast_dtype(device, torch.bfloat16)
        torch.set_autocast_enabled(device, True)


def load_images(path: Path) -> TensorDataset:
    """Return images, float32 in [0, 1] of shape (n, 8, 8), and their digits."""
    table = torch.from_numpy(np.loadtxt(path, delimiter=",", dtype=np.int64))
    return TensorDataset(table[:, :-1].float().reshape(-1, 8, 8) / 16, table[:, -1])


def main() -> None:
    """Train until torch objects, writing each loss at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE / "data" / "digits-100.csv")
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), default="cpu")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    set_precision(arguments.device)
    torch.manual_seed(7)
    model = StatefulReader().to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    loader = DataLoader(load_images(arguments.data), batch_size=BATCH_SIZE)
    with (arguments.out / "loss_curve.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["step", "loss"])
        for step, (images, digits) in enumerate(loader, start=1):
            print(f"step {step}: {len(images)} images")
            logits = model(images.to(arguments.device))
            loss = cross_entropy(logits, digits.to(arguments.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rows.writerow([step, loss.item()])
            file.flush()


if __name__ == "__main__":
    main()
