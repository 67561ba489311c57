"""At most 12 MiB on the device at one time."""

import sys

import torch

device = sys.argv[1]
x = torch.zeros(1 << 20).to(device)
y = x + 1
z = x + y
del y
w = x + z
