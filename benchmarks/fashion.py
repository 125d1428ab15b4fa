"""The time a small convolutional network takes to reach 90 % on Fashion-MNIST's test images.

    python -m benchmarks.fashion taeda --threads 2

The data are the files of Debian's package dataset-fashion-mnist. Accuracy after each epoch goes to
the error stream; the last line is a JSON object with the seconds, epochs and accuracy, or with the
reason why there are none. The time counts training and the tests in between, not reading the files.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import math
import struct
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path("/usr/share/datasets/fashion-mnist")
FILES = {
    part: (f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz")
    for part in ("train", "t10k")
}
TARGET = 0.9
MOST_EPOCHS = 12
BATCH = 100


def read_idx(path: Path) -> tuple[tuple[int, ...], bytearray]:
    """The shape and the bytes of a file in the idx format, unsigned bytes, compressed by gzip.

    Raises ValueError where the file holds something else, or less or more than its header says.
    """
    with gzip.open(path) as file:
        content = file.read()
    if len(content) < 4 or content[:3] != b"\0\0\x08":
        raise ValueError(f"{path}: not an idx file of unsigned bytes")
    dims = content[3]
    head = 4 + 4 * dims
    if len(content) < head:
        raise ValueError(f"{path}: ends within its header")
    shape = struct.unpack(f">{dims}I", content[4:head])
    if len(content) - head != math.prod(shape):
        raise ValueError(f"{path}: {len(content) - head} bytes of data, not {math.prod(shape)}")
    return shape, bytearray(content[head:])


def why_absent(folder: Path = FOLDER) -> str | None:
    """Why there is nothing to train on, if so."""
    for name in (name for pair in FILES.values() for name in pair):
        if not (folder / name).is_file():
            return f"no {folder / name}: install Debian's package dataset-fashion-mnist"
    return None


def load(fw, part: str, folder: Path = FOLDER):
    """(N, 1, 28, 28) float32 images of about mean 0 and deviation 1, and (N,) int64 labels."""
    images, labels = (read_idx(folder / name) for name in FILES[part])
    x = fw.frombuffer(images[1], dtype=fw.uint8).reshape(images[0]).unsqueeze(1)
    y = fw.frombuffer(labels[1], dtype=fw.uint8).reshape(labels[0])
    return (x.float() / 255 - 0.286) / 0.353, y.long()


def network(fw):
    """Two convolutions with batch normalisation and two layers: 207,018 parameters."""
    nn = fw.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def accuracy(fw, model, images, labels) -> float:
    """The share of images whose highest score is their label's."""
    model.eval()
    right = 0
    with fw.no_grad():
        for x, y in zip(images.split(1000), labels.split(1000), strict=True):
            right += int((model(x).argmax(1) == y).sum())
    model.train()
    return right / len(labels)


def train(fw, train_set, test_set, most_epochs: int = MOST_EPOCHS, target: float = TARGET) -> dict:
    """Trains until the test accuracy is reached; seconds is missing where it never is."""
    fw.manual_seed(0)
    images, labels = train_set
    start = time.perf_counter()
    model = network(fw)
    optimizer = fw.optim.Adam(model.parameters(), lr=1e-3)
    criterion = fw.nn.CrossEntropyLoss()
    reached = 0.0
    for epoch in range(1, most_epochs + 1):
        for at in fw.randperm(len(labels)).split(BATCH):
            loss = criterion(model(images[at]), labels[at])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        reached = accuracy(fw, model, *test_set)
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: {reached:.2%} after {seconds:.1f} s", file=sys.stderr, flush=True)
        if reached >= target:
            return {"seconds": seconds, "epochs": epoch, "accuracy": reached}
    return {"error": f"{reached:.2%} after {most_epochs} epochs"}


def measure(framework: str, threads: int) -> dict:
    """What a process of its own for this framework finds."""
    command = [sys.executable, "-m", "benchmarks.fashion", framework, "--threads", str(threads)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=root)
    if done.returncode:
        return {"error": f"the process ended with {done.returncode} (see above)"}
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.fashion", description=__doc__.split("\n")[0]
    )
    parser.add_argument("framework", choices=["taeda", "torch"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", type=Path, default=FOLDER, help="the folder of the four files")
    options = parser.parse_args()
    absent = why_absent(options.data)
    if absent:
        print(json.dumps({"error": absent}))
        return
    fw = importlib.import_module(options.framework)
    fw.set_num_threads(options.threads)
    sets = (load(fw, part, options.data) for part in ("train", "t10k"))
    print(json.dumps(train(fw, *sets)))


if __name__ == "__main__":
    main()
