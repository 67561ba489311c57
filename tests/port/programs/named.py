"""Train on MPS, named outright in each way that torch takes it."""

# ruff: noqa: T201

import torch
from torch import nn

HOST = torch.device("cpu")
torch.manual_seed(0)
device = torch.device("mps")
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to("mps")
head = nn.Linear(8, 2, device="mps")
optimizer = torch.optim.AdamW([*net.parameters(), *head.parameters()], lr=0.1)
x = torch.randn(16, 4).to(device)
target = torch.randint(0, 2, (16,), device="mps")
generator = torch.Generator(device="mps").manual_seed(1)
scale = torch.rand(1, device=device, generator=generator)
with torch.device("mps"):
    weight = torch.tensor([1.0, 2.0])
loss = weight
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(net(x)) * scale, target, weight)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    print("loss", loss.item())
torch.save(head.state_dict(), "head.pt")
head.load_state_dict(torch.load("head.pt", map_location="mps"))
torch.mode(x)
torch.mode(torch.ones(4, device=HOST))
torch.mode(x.to(HOST))
torch.zeros(2, dtype=torch.float64, device=HOST)
wide = torch.zeros(2, dtype=torch.float64, device=device)
print("places", x.device, loss.device, weight.device, x.to(HOST).device, x.is_mps)
print("same", next(net.parameters()).device == scale.device == weight.device)
if x.is_mps:
    torch.mps.synchronize()
    print("there", torch.backends.mps.is_available(), torch.mps.device_count())
    print("bytes", torch.mps.current_allocated_memory())
