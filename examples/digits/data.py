"""The digits as data sets and loaders."""

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

LARGEST_PIXEL = 16
TEST_EVERY = 5


def load_digits(path: Path) -> tuple[TensorDataset, TensorDataset]:
    """Read the table at `path` into a training and a test set.

    Every fifth row is a test row: a split that needs no random draw.

    Returns:
        (train, test); images are float32 in [0, 1] of shape (n, 1, 8, 8), labels int64.
    """
    table = np.loadtxt(path, delimiter=",", dtype=np.int64)
    images = torch.from_numpy(table[:, :-1]).float() / LARGEST_PIXEL
    images = images.reshape(-1, 1, 8, 8)
    labels = torch.from_numpy(table[:, -1].copy())
    is_test = torch.arange(len(labels)) % TEST_EVERY == 0
    return (
        TensorDataset(images[~is_test], labels[~is_test]),
        TensorDataset(images[is_test], labels[is_test]),
    )


def training_loader(
    dataset: TensorDataset, *, batch_size: int, workers: int
) -> DataLoader:
    """Return a loader that shuffles anew each epoch with the global CPU generator."""
    return DataLoader(dataset, batch_size=batch_size, shuffle=True, num_workers=workers)
