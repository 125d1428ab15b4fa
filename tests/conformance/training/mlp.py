"""A multilayer perceptron on a noisy function, with momentum and clipped gradients."""

import torch
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(256, 8)
targets = (inputs[:, :4] * inputs[:, 4:]).sum(1, keepdim=True).tanh() + 0.1 * torch.randn(256, 1)
model = nn.Sequential(
    nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=50)
losses = []
for _ in range(50):
    batch = torch.randperm(256)[:64]
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs[batch]), targets[batch])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
