"""A script that is ready for one refusal, and not for the next."""

# ruff: noqa: T201

import sys

import torch

device = sys.argv[1]
x = torch.randn(4, 4).to(device)
try:
    torch.mode(x)
except NotImplementedError as error:
    print("went on after", str(error)[:30])
print(torch.heaviside(torch.ones(2), torch.ones(2)))
x.double()
print("never reached")
