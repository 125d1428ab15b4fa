"""A variational autoencoder learns to draw digits."""

from pathlib import Path

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

torch.manual_seed(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 48)
        self.fc21 = nn.Linear(48, 6)
        self.fc22 = nn.Linear(48, 6)
        self.fc3 = nn.Linear(6, 48)
        self.fc4 = nn.Linear(48, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


with np.load(Path(__file__).resolve().parents[1] / "data" / "digits.npz") as arrays:
    images = torch.tensor(arrays["images"], dtype=torch.float32).view(-1, 64) / 16

model = VAE()
optimizer = optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    train_loss = 0.0
    for x in DataLoader(images, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss = loss_function(recon, x, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"epoch {epoch} loss {train_loss / len(images):.4f}")

with torch.no_grad():
    drawn = model.decode(torch.randn(16, 6))
print(f"drawn: mean {drawn.mean().item():.4f}, deviation {drawn.std().item():.4f}")
