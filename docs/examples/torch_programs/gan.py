"""Two networks play against each other; one learns to draw points on a ring."""

import math

import torch
import torch.nn as nn

torch.manual_seed(2)


def ring(count):
    angle = 2 * math.pi * torch.rand(count)
    points = torch.stack([angle.cos(), angle.sin()], dim=1)
    return points + 0.05 * torch.randn(count, 2)


def weights_init(m):
    if m.__class__.__name__.find("Linear") != -1:
        nn.init.normal_(m.weight, 0.0, 0.3)
        nn.init.zeros_(m.bias)


netG = nn.Sequential(
    nn.Linear(4, 32), nn.ReLU(True), nn.Linear(32, 32), nn.ReLU(True), nn.Linear(32, 2)
)
netD = nn.Sequential(
    nn.Linear(2, 32),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(32, 32),
    nn.LeakyReLU(0.2),
    nn.Linear(32, 1),
)
netG.apply(weights_init)
netD.apply(weights_init)

criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.999))
batch = 64
real_label, fake_label = torch.ones(batch, 1), torch.zeros(batch, 1)

for step in range(120):
    netD.zero_grad()
    fake = netG(torch.randn(batch, 4))
    errD = criterion(netD(ring(batch)), real_label) + criterion(netD(fake.detach()), fake_label)
    errD.backward()
    optimizerD.step()

    netG.zero_grad()
    errG = criterion(netD(fake), real_label)
    errG.backward()
    optimizerG.step()
    if step % 20 == 19:
        radius = fake.detach().norm(dim=1).mean().item()
        print(f"step {step} D {errD.item():.4f} G {errG.item():.4f} radius {radius:.4f}")
