"""A network enlarges small digits with sub-pixel convolution."""

from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn import init

torch.manual_seed(7)


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 24, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(24, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)


with np.load(Path(__file__).resolve().parents[1] / "data" / "digits.npz") as arrays:
    large = torch.from_numpy(arrays["images"]).float()[:512].unsqueeze(1) / 16
small = F.avg_pool2d(large, 2)
plain = F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False)

model = Net(2)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()
for epoch in range(4):
    order = torch.randperm(len(large))
    total = 0.0
    for batch in order.split(32):
        optimizer.zero_grad()
        loss = criterion(model(small[batch]), large[batch])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    print(f"epoch {epoch} loss {total / len(large):.5f}")

with torch.no_grad():
    for name, images in (("bilinear", plain), ("network", model(small))):
        psnr = -10 * torch.log10(criterion(images.clamp(0, 1), large))
        print(f"{name}: {psnr.item():.2f} dB")
