"""Train one model, and print the nanoseconds of each step (see models.py)."""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

name, device, steps, size = sys.argv[1:]
small = size == "small"
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.attend(self.before(x)).view(rows, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.narrow(F.gelu(self.widen(self.between(x))))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, length):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.place(places)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.last(x), self.token.weight)


def part(i, o, size, stride=1):
    convolution = nn.Conv2d(i, o, size, stride, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(o))


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.first, self.second = part(before, width, 1), part(width, width, 3, stride)
        self.third = part(width, 4 * width, 1)
        same = stride == 1 and before == 4 * width
        self.short = nn.Identity() if same else part(before, 4 * width, 1, stride)

    def forward(self, x):
        y = F.relu(self.second(F.relu(self.first(x))))
        return F.relu(self.third(y) + self.short(x))


def resnet50():
    layers = [part(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for number in range(count):
            stride = 2 if number == 0 and width > 64 else 1
            layers.append(Bottleneck(before, width, stride))
            before = 4 * width
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    return nn.Sequential(*layers, *head)


if name == "gpt":
    model = Gpt(12, 768, 12, 50257, 1024)
    x = torch.randint(50257, (1, 64) if small else (4, 512))
    goal, classes = x.roll(-1, 1).flatten(), 50257
elif name == "resnet50":
    model = resnet50()
    x = torch.randn(2, 3, 96, 96) if small else torch.randn(64, 3, 224, 224)
    goal, classes = torch.randint(1000, (len(x),)), 1000
else:
    parts = [part for _ in range(4) for part in (nn.Linear(160, 160), nn.ReLU())]
    model = nn.Sequential(*parts, nn.Linear(160, 4))
    x = torch.randn(200, 160)
    goal, classes = torch.randint(4, (200,)), 4
model, x, goal = model.to(device), x.to(device), goal.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
wait = torch.cuda.synchronize if device == "cuda" else lambda: None
times = []
for _ in range(int(steps)):
    wait()
    began = time.perf_counter_ns()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).reshape(-1, classes), goal)
    loss.backward()
    optimizer.step()
    wait()
    times.append(time.perf_counter_ns() - began)
print(json.dumps([sum(p.numel() for p in model.parameters()), times]))
