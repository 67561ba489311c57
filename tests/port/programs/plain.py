"""Small trainings of the usual kinds: no operator of them is missing on MPS."""

# ruff: noqa: N812, T201
# mypy: ignore-errors

import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
device = sys.argv[1]


class First(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.project = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.project(x).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.attention(x, x, x)[0] + y.transpose(1, 2).reshape(2, 5, 8)


def square(y):
    return (y**2).mean()


def classes(y):
    y = y.flatten(0, -2)
    return F.cross_entropy(y, torch.zeros(len(y), dtype=torch.long, device=device))


def train(model, x, loss, name, **options):
    model = model.to(device)
    x = x.to(device)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-2, **options)
    value = torch.zeros(())
    for _ in range(2):
        optimizer.zero_grad()
        value = loss(model(x))
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(repr(value.item()))


images = nn.Sequential(
    nn.Conv2d(1, 4, 3),
    nn.BatchNorm2d(4),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Dropout(0.1),
    nn.Flatten(),
    nn.Linear(36, 3),
)
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
words = nn.Sequential(nn.Embedding(7, 8), nn.LayerNorm(8), nn.Linear(8, 3))
linear = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
series = torch.randn(2, 5, 4)

train(linear, torch.randn(5, 4), classes, "AdamW")
train(images, torch.randn(2, 1, 8, 8), classes, "Adam")
train(First(nn.LSTM(4, 6, batch_first=True)), series, square, "SGD", momentum=0.9)
train(First(nn.GRU(4, 6, batch_first=True)), series, square, "SGD")
train(Attend(), torch.randn(2, 5, 8), square, "AdamW", fused=True)
train(encoder, torch.randn(2, 5, 8), square, "AdamW", foreach=True)
train(words, torch.randint(0, 7, (2, 5)), classes, "AdamW")
encoder.eval()
with torch.no_grad():
    print(repr(encoder(torch.randn(2, 5, 8).to(device)).sum().item()))
