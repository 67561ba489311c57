"""What MPS refuses, leaves to the CPU or may get wrong, one thing a line."""

# ruff: noqa: PTH123, SIM115, T201

import sys

import torch

device = sys.argv[1]
x = torch.randn(4, 4).to(device)
for _ in range(3):
    mode = torch.mode(x)[0]
wide = x.double()
sizes = torch.linalg.svd(x)[1]
product = x.t() @ x
leaf = x.clone().requires_grad_()
torch.nn.functional.multi_margin_loss(leaf, x[0].long() * 0).backward()
open("written.txt", "w").write("by the run")
print(sizes.sum().item())


def run_twice(y):
    return torch.nn.functional.linear(y.t() @ y, y)


again = torch.utils.checkpoint.checkpoint(run_twice, leaf, use_reentrant=False)
again.sum().backward()
