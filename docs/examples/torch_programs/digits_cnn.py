"""A convolutional network reads handwritten digits."""

from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.norm(self.conv2(x))), 2)
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


with np.load(Path(__file__).resolve().parents[1] / "data" / "digits.npz") as arrays:
    images = torch.from_numpy(arrays["images"]).float().div(16).unsqueeze(1)
    labels = torch.from_numpy(arrays["labels"]).long()
train = TensorDataset(images[:1024], labels[:1024])
test = TensorDataset(images[1024:], labels[1024:])

model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)

for epoch in range(3):
    model.train()
    total = 0.0
    for x, y in DataLoader(train, batch_size=32, shuffle=True):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    scheduler.step()
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in DataLoader(test, batch_size=256):
            pred = model(x.to(device)).argmax(dim=1, keepdim=True)
            correct += pred.eq(y.to(device).view_as(pred)).sum().item()
    print(f"epoch {epoch} loss {total / len(train):.4f} accuracy {correct / len(test):.3f}")
