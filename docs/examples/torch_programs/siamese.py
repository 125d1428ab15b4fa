"""A siamese network learns which digits are alike from triplets."""

from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(6)


class Triplets(Dataset):
    """An image, another of the same digit, and one of another digit."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.by_label = [torch.nonzero(labels == k).flatten() for k in range(10)]

    def __getitem__(self, i):
        label = int(self.labels[i])
        same = self.by_label[label]
        other = self.by_label[(label + 1 + i % 9) % 10]
        return (
            self.images[i],
            self.images[same[(7 * i) % len(same)]],
            self.images[other[(5 * i) % len(other)]],
        )

    def __len__(self):
        return len(self.images)


with np.load(Path(__file__).resolve().parents[1] / "data" / "digits.npz") as arrays:
    images = torch.as_tensor(arrays["images"][:640]).to(torch.float32).unsqueeze(1) / 16
    labels = torch.as_tensor(arrays["labels"][:640]).long()

net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.PReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 32),
    nn.PReLU(),
    nn.Linear(32, 8),
)
criterion = nn.TripletMarginLoss(margin=0.5)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)

for epoch in range(3):
    losses = []
    for anchor, positive, negative in DataLoader(
        Triplets(images, labels), batch_size=32, shuffle=True
    ):
        optimizer.zero_grad()
        loss = criterion(net(anchor), net(positive), net(negative))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f}")

with torch.no_grad():
    points = net(images)
    distance = (points[:, None] - points[None, :]).pow(2).sum(dim=2)
    distance += 1e9 * torch.eye(len(points))
    nearest = labels[distance.argmin(dim=1)]
print(f"nearest neighbour has the same label: {(nearest == labels).float().mean().item():.3f}")
