"""What passes between a device and the CPU, one thing a line."""

# ruff: noqa: T201
# mypy: ignore-errors

import sys

import numpy as np
import torch
from torch import nn
from torch.nn.functional import one_hot

device = sys.argv[1]
model = nn.LSTM(4, 2).to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x = torch.from_numpy(np.random.randn(5, 8, 4).astype("float32")).to(device)
    y = model(x)[0]
    loss = y.pow(2).mean()
    loss.backward()
    optimizer.step()
    shown = y.detach().cpu().numpy()
    if loss.item() < 0:
        break
    hot = one_hot(torch.tensor([1, 2], device=device), 3)
like = torch.zeros(2, device=x.device) + x.new_tensor([1.0, 2.0])
host = torch.ones(2)
lengths = torch.zeros(2, device=host.device) + host
mixed = like + host
array = y.detach().numpy()
print(like[torch.tensor([0, 1])].tolist())
weight = torch.randn(4, 6, 3, 3).to(device)[:, ::2]
nn.functional.conv2d(torch.randn(1, 3, 8, 8).to(device), weight)
