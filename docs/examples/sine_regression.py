"""Fit a sine wave with a small multi-layer network.

1,200 points of sin(x) with a little noise are drawn on [0, 2 pi): 1,000 to learn from in batches of
32, 200 to test on. The network has three hidden layers of five units. With matplotlib installed the
fit is drawn to sine.png.

    python sine_regression.py --epochs 300
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

import taeda
from taeda import nn
from taeda.utils import data


class SineDataset(data.Dataset[tuple[taeda.Tensor, taeda.Tensor]]):
    """Pairs (x, y) of shape (1,) each."""

    def __init__(self, x: taeda.Tensor, y: taeda.Tensor) -> None:
        super().__init__()
        if x.shape != y.shape:
            raise ValueError(f"x and y differ in shape: {tuple(x.shape)} and {tuple(y.shape)}")
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[taeda.Tensor, taeda.Tensor]:
        return self.x[index], self.y[index]


class SineModel(nn.Module):
    """A 1-5-5-5-1 network with ReLUs between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(1, 5),
            nn.ReLU(),
            nn.Linear(5, 5),
            nn.ReLU(),
            nn.Linear(5, 5),
            nn.ReLU(),
            nn.Linear(5, 1),
        )

    def forward(self, x: taeda.Tensor) -> taeda.Tensor:
        return self.network(x)


def make_data(
    seed: int = 0, points: int = 1200, train: int = 1000
) -> tuple[SineDataset, SineDataset]:
    """A training and a test set of noisy points on the wave."""
    draw = np.random.default_rng(seed)
    points_x = draw.uniform(0, 2 * math.pi, points)
    points_y = np.sin(points_x) + draw.uniform(0, 0.01, points)
    x = taeda.tensor(points_x).float().view(-1, 1)
    y = taeda.tensor(points_y).float().view(-1, 1)
    return SineDataset(x[:train], y[:train]), SineDataset(x[train:], y[train:])


def fit(model: nn.Module, dataset: SineDataset, epochs: int, report: int = 50) -> list[float]:
    """Minimise the mean squared error; returns the mean loss of each epoch."""
    loader = data.DataLoader(dataset, batch_size=32, shuffle=True)
    criterion = nn.MSELoss()
    optimizer = taeda.optim.Adam(model.parameters(), lr=0.01)
    history = []
    for epoch in range(1, epochs + 1):
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        history.append(total / len(loader))
        if epoch % report == 0:
            print(f"epoch {epoch:4d}  mean squared error {history[-1]:.6f}", flush=True)
    return history


def evaluate(model: nn.Module, dataset: SineDataset) -> float:
    """The mean squared error over `dataset`."""
    criterion = nn.MSELoss(reduction="sum")
    model.eval()
    total = 0.0
    with taeda.no_grad():
        for x, y in data.DataLoader(dataset, batch_size=32):
            total += float(criterion(model(x), y))
    return total / len(dataset)


def plot(model: nn.Module, dataset: SineDataset, path: Path) -> None:
    """Draw the points and the model's curve, if matplotlib is there."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no plot")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    grid = taeda.linspace(0, 2 * math.pi, 400).view(-1, 1)
    with taeda.no_grad():
        curve = model(grid)
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.scatter(dataset.x.numpy(), dataset.y.numpy(), s=4, alpha=0.4, label="test points")
    axes.plot(grid.numpy(), curve.numpy(), color="tab:red", label="the network")
    axes.set(xlabel="x", ylabel="y", title="A sine wave from 76 weights")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"plot: {path}")


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description="Fit a sine wave.")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for sine.png")
    options = parser.parse_args(arguments)

    taeda.manual_seed(options.seed)
    train_set, test_set = make_data(options.seed)
    model = SineModel()
    fit(model, train_set, options.epochs)
    error = evaluate(model, test_set)
    print(f"mean squared error on {len(test_set)} new points: {error:.6f}")
    plot(model, test_set, options.out / "sine.png")
    return error


if __name__ == "__main__":
    main()
