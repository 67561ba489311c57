"""Asks for values that a dry run does not have."""

# ruff: noqa: T201
# mypy: ignore-errors

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = sys.argv[1]
data = TensorDataset(torch.randn(64, 16), torch.randint(0, 3, (64,)))
model = nn.Linear(16, 3).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for x, y in DataLoader(data, batch_size=16, shuffle=True, num_workers=2):
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
    if loss.item() > 100:
        torch.mode(loss)
scores = model(torch.randn(5, 16).to(device)).detach()
chosen = scores[scores > 0]
scores[scores < 0] = 0.0
print(chosen.shape, scores.cpu().numpy().sum(), torch.unique(chosen).tolist()[:1])
torch.save(model.half().state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt"))
