"""What MPS refuses or leaves to the CPU, one thing a line."""

# ruff: noqa: PTH123, SIM115, T201

import sys

import torch

device = sys.argv[1]
x = torch.randn(4, 4).to(device)
for _ in range(3):
    mode = torch.mode(x)[0]
wide = x.double()
sizes = torch.linalg.svd(x)[1]
open("written.txt", "w").write("by the run")
print(sizes.sum().item())
