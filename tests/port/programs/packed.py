"""Three steps of a small training."""

# ruff: noqa: PTH123, SIM115

import sys

import torch
from torch import nn

device = sys.argv[1]
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.AdamW(model.parameters())
loss = torch.zeros(())
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4).to(device)).pow(2).mean()
    loss.backward()
    optimizer.step()
open("loss.txt", "w").write(repr(loss.item()))
