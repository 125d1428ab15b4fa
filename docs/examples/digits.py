"""Train a small convolutional network to read handwritten digits, save it, and use it elsewhere.

    python digits.py                      # trains, saves digits.pt, checks it in a new process
    python digits.py --check digits.pt    # only loads a trained model and measures it

The data are 1,797 images of 8 x 8 pixels (see data/README.md); a fifth of them is held out for the
test. With matplotlib installed the loss curve goes to digits.png; with tqdm, and on a terminal,
there is a progress bar.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import taeda
from taeda import nn
from taeda.utils.data import DataLoader, Subset, TensorDataset, random_split

Digits = Subset[tuple[taeda.Tensor, ...]]
DATA = Path(__file__).resolve().parent / "data" / "digits.npz"


class DigitNet(nn.Module):
    """Two convolutions, a pooling step, and a classifier: (N, 1, 8, 8) images to (N, 10) scores."""

    def __init__(self, channels: int = 16, hidden: int = 64) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(2 * channels * 4 * 4, hidden),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden, 10),
        )

    def forward(self, images: taeda.Tensor) -> taeda.Tensor:
        return self.classifier(self.features(images))


def load_digits() -> tuple[Digits, Digits]:
    """The training and the test set: pairs of a (1, 8, 8) image in [0, 1] and its label.

    The split is drawn from a generator of its own, so it is the same in every process.
    """
    with np.load(DATA) as arrays:
        images = taeda.from_numpy(arrays["images"]).float().div(16).unsqueeze(1)
        labels = taeda.from_numpy(arrays["labels"]).long()
    test_size = len(labels) // 5
    train, test = random_split(
        TensorDataset(images, labels),
        [len(labels) - test_size, test_size],
        generator=taeda.Generator().manual_seed(0),
    )
    return train, test


def accuracy(model: nn.Module, dataset: Digits) -> float:
    """The share of `dataset` that `model` labels correctly."""
    model.eval()
    correct = 0
    with taeda.no_grad():
        for images, labels in DataLoader(dataset, batch_size=256):
            correct += int((model(images).argmax(dim=1) == labels).sum())
    return correct / len(dataset)


def progress(batches: DataLoader[Any], title: str) -> Iterable[Any]:
    """`batches` behind a progress bar where someone watches; as they are where nobody does."""
    if sys.stdout.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            return batches
        return tqdm(batches, desc=title, leave=False)
    return batches


def train(model: nn.Module, train_set: Digits, test_set: Digits, epochs: int) -> list[float]:
    """Fit `model`; returns the loss of every step."""
    loader = DataLoader(train_set, batch_size=32, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = taeda.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    losses = []
    for epoch in range(1, epochs + 1):
        model.train()
        for images, labels in progress(loader, f"epoch {epoch}/{epochs}"):
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = sum(losses[-len(loader) :]) / len(loader)
        print(
            f"epoch {epoch:2d}/{epochs}  loss {mean:.4f}"
            f"  train {accuracy(model, train_set):.2%}  test {accuracy(model, test_set):.2%}",
            flush=True,
        )
    return losses


def plot(losses: list[float], path: Path) -> None:
    """Draw the loss of every step and its running mean, if matplotlib is there."""
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no loss curve")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    window = max(1, len(losses) // 30)
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.semilogy(losses, alpha=0.3, label="each batch")
    axes.semilogy(np.arange(len(smooth)) + window - 1, smooth, label=f"mean of {window}")
    axes.set(xlabel="step", ylabel="cross-entropy", title="Training on the digits")
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"loss curve: {path}")


def check(path: Path) -> float:
    """The test accuracy of the model saved at `path`."""
    model = DigitNet()
    model.load_state_dict(taeda.load(path))
    return accuracy(model, load_digits()[1])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for digits.pt and .png")
    parser.add_argument("--check", type=Path, metavar="FILE", help="only measure a saved model")
    options = parser.parse_args(arguments)
    if options.check:
        print(f"{check(options.check):.6f}")
        return

    taeda.manual_seed(options.seed)
    train_set, test_set = load_digits()
    print(f"{len(train_set)} images to learn from, {len(test_set)} held out")
    model = DigitNet()
    losses = train(model, train_set, test_set, options.epochs)
    plot(losses, options.out / "digits.png")

    saved = options.out / "digits.pt"
    taeda.save(model.state_dict(), saved)
    here = accuracy(model, test_set)
    command = [sys.executable, __file__, "--check", str(saved)]
    there = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"test accuracy {here:.2%}; {saved} loaded in a new process: {there:.2%}")
    if abs(here - there) > 1e-6:
        sys.exit("the loaded model differs from the one that was saved")


if __name__ == "__main__":
    main()
