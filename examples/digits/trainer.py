"""Training that can stop after any epoch and resume."""

from pathlib import Path

import torch
from model import DigitNet
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    """A network and its optimizer, somewhere between the first and the last epoch."""

    def __init__(self, config: dict, device: torch.device) -> None:
        torch.manual_seed(config["seed"])
        self.seed = config["seed"]
        self.device = device
        self.epoch = 0
        self.curve: list[float] = []
        self.model = DigitNet(config["dropout"]).to(device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=config["learning_rate"],
            weight_decay=config["weight_decay"],
        )

    def train_epoch(self, loader: DataLoader) -> float:
        """Train for one epoch and return the mean loss of its images."""
        self.epoch += 1
        # A seed of its own for each epoch: a resumed run draws the same order and the
        # same dropout as an unbroken one, without generator states in the checkpoint.
        torch.manual_seed(self.seed + self.epoch)
        self.model.train()
        total, count = torch.zeros((), device=self.device), 0
        for images, labels in loader:
            labels = labels.to(self.device)
            self.optimizer.zero_grad()
            loss = cross_entropy(self.model(images.to(self.device)), labels)
            loss.backward()
            self.optimizer.step()
            total += loss.detach() * len(labels)
            count += len(labels)
        self.curve.append(total.item() / count)
        return self.curve[-1]

    @torch.no_grad()
    def logits(self, dataset: TensorDataset) -> torch.Tensor:
        """Return the logits of all images of `dataset` on the CPU, shape (n, 10)."""
        self.model.eval()
        images, _ = dataset.tensors
        return self.model(images.to(self.device)).float().cpu()

    def save(self, path: Path) -> None:
        """Write all that `resume` needs to go on."""
        state = {
            "epoch": self.epoch,
            "curve": self.curve,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(state, path)

    def resume(self, path: Path) -> None:
        """Continue from the state that `save` wrote, on whatever device it was."""
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.epoch, self.curve = state["epoch"], state["curve"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
