"""A small residual network with batch normalisation (He et al., 2016) on coloured stripes."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.skip = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.skip = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + self.skip(x))


torch.manual_seed(0)
labels = torch.randint(0, 4, (96,))
ramp = torch.linspace(0, 6.28, 16)
images = torch.stack([torch.sin((k + 1) * ramp) for k in labels.tolist()])
images = images[:, None, :, None].expand(96, 3, 16, 16) + 0.5 * torch.randn(96, 3, 16, 16)
model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
    Block(8, 8, 1), Block(8, 16, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
losses = []
for step in range(50):
    start = 32 * (step % 3)
    optimizer.zero_grad()
    output = model(images[start : start + 32])
    loss = nn.functional.cross_entropy(output, labels[start : start + 32], label_smoothing=0.1)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
model.eval()
with torch.no_grad():
    losses.append(nn.functional.cross_entropy(model(images), labels).item())
