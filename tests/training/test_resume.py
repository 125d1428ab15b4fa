"""A training that is killed at any moment goes on to the same bits as an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import taeda
from taeda import nn, optim
from taeda.training import Accumulate, Callback, Checkpoint

PROGRAM = '''
"""run.py FOLDER WORKERS PAUSE: train to the end, from wherever an earlier run was killed."""
import random, sys, time
from pathlib import Path
import numpy as np
import taeda
from taeda import nn, optim
from taeda.training import *

folder, workers, pause = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])

class Noisy(taeda.utils.data.Dataset):
    """Draws from every stream that a data set may draw from."""
    def __len__(self):
        return 45
    def __getitem__(self, i):
        noise = taeda.randn(4) + random.random() + float(np.random.rand())
        return taeda.full((4,), i / 45) + 0.01 * noise, i % 3

class Pause(Callback):
    def after_step(self, trainer, step):
        time.sleep(pause)

taeda.manual_seed(0), random.seed(0), np.random.seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
optimizer = optim.AdamW(model.parameters(), lr=0.01)
rates = optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=60)
average = Average(0.9)
callbacks = [Accumulate(2), Clip(1.0), Schedule(rates, "update"), average, Pause()]
callbacks += [EarlyStopping("loss", patience=50), Checkpoint(folder / "run.pt", batches=1)]
callbacks += [Checkpoint(folder / "run.pt")]
trainer = taeda.Trainer(model, nn.CrossEntropyLoss(), optimizer, callbacks=callbacks)
generator = taeda.Generator().manual_seed(5)
loader = taeda.utils.data.DataLoader(Noisy(), 5, shuffle=True, generator=generator, num_workers=workers)
if __name__ == "__main__":  # from Python 3.14 on, workers import this file
    trainer.resume(folder / "run.pt")
    validation = [(taeda.ones(3, 4), taeda.zeros(3, dtype=taeda.long))]
    trainer.fit(loader, epochs=6, validation=validation)
    history = taeda.tensor([[log["loss"], log["validation loss"]] for log in trainer.history])
    end = {**model.state_dict(), **average.model.state_dict(), "history": history}
    taeda.save(end, folder / "end.pt")
'''


def run(folder, workers, pause, kill_after=None):
    """One run of the program; whether it came to the end. A kill is counted from its first step."""
    script = folder / "run.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), str(folder), str(workers), str(pause)]
    environment = {**os.environ, "TAEDA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)
    if kill_after is not None:
        saved, stamp = folder / "run.pt", None
        if saved.exists():
            stamp = saved.stat().st_mtime_ns
        while process.poll() is None and not (saved.exists() and saved.stat().st_mtime_ns != stamp):
            time.sleep(0.002)
        time.sleep(kill_after)
        process.send_signal(signal.SIGKILL)
    error = process.communicate()[1].decode()
    assert process.returncode in (0, -signal.SIGKILL), error
    return process.returncode == 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What runs with some workers end with."""
    ends = {}
    for workers in (0, 2):
        folder = tmp_path_factory.mktemp(f"whole{workers}")
        assert run(folder, workers, 0.0)
        ends[workers] = taeda.load(folder / "end.pt")
    return ends


# Fifty kills in all.
@pytest.mark.parametrize(
    ("workers", "kills", "seed"), [*((0, 10, seed) for seed in range(4)), (2, 5, 4), (2, 5, 5)]
)
def test_killed_at_random_points(undisturbed, tmp_path, workers, kills, seed):
    draw, killed, want = random.Random(seed), 0, undisturbed[workers]
    while True:
        ended = run(tmp_path, workers, 0.01, draw.uniform(0.0, 0.12) if killed < kills else None)
        killed += not ended
        if not ended:
            continue
        got = taeda.load(tmp_path / "end.pt")
        assert want.keys() == got.keys()
        for name in want:
            assert taeda.equal(want[name], got[name]), name
        if killed == kills:
            break
        for file in tmp_path.glob("*.pt"):  # it came to the end before all kills: from the start
            file.unlink()


class StopAt(Callback):
    """Ends training after a batch, as if the process had been killed."""

    class Stopped(Exception):
        pass

    def __init__(self, step):
        self.left = step

    def after_step(self, trainer, step):
        self.left -= 1
        if self.left == 0:
            raise StopAt.Stopped


def make(callbacks):
    taeda.manual_seed(3)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    return taeda.Trainer(
        model, nn.MSELoss(), optim.Adam(model.parameters(), lr=0.01), callbacks=callbacks
    )


X = taeda.arange(60.0).reshape(20, 3) / 60


@pytest.mark.parametrize("step", range(1, 15))
def test_every_place(tmp_path, step):
    """Five batches an epoch, of which two and two are accumulated."""
    path = tmp_path / "run.pt"
    whole = make([Accumulate(2), Checkpoint(tmp_path / "other.pt", batches=1)])
    whole.fit(X, X[:, :1], epochs=3, batch_size=4)
    broken = make([Accumulate(2), Checkpoint(path, batches=1)])
    with pytest.raises(StopAt.Stopped):
        stopper = StopAt(step)
        stopper.order = 200
        broken.callbacks.append(stopper)
        broken.fit(X, X[:, :1], epochs=3, batch_size=4)
    resumed = make([Accumulate(2), Checkpoint(path, batches=1)])
    taeda.rand(17)
    assert resumed.resume(path)
    assert resumed.epoch == (step - 1) // 5 or resumed.batch == 0
    resumed.fit(X, X[:, :1], epochs=3, batch_size=4)
    for (name, a), b in zip(
        whole.model.state_dict().items(), resumed.model.state_dict().values(), strict=True
    ):
        assert taeda.equal(a, b), name
    assert resumed.history == whole.history and resumed.updates == whole.updates


def test_another_loader_is_refused():
    generator = taeda.Generator()
    dataset = taeda.utils.data.TensorDataset(X, X[:, :1])
    loader = taeda.utils.data.DataLoader(dataset, 4, shuffle=True, generator=generator)
    trainer = make([])
    states = []

    class Note(Callback):
        def after_step(self, trainer, step):
            states.append(trainer.state_dict())

    trainer.callbacks.append(Note())
    trainer.fit(loader, epochs=1)
    trainer.callbacks.pop()
    trainer.load_state_dict(states[3])
    with pytest.raises(ValueError, match="1 random generators of its own, this one has 0"):
        trainer.fit(X, X[:, :1], epochs=2)
    trainer.load_state_dict(states[3])
    short = taeda.utils.data.DataLoader(dataset, 10, shuffle=True, generator=generator)
    with pytest.raises(ValueError, match="come to batch 4 of an epoch, but the data has only 2"):
        trainer.fit(short, epochs=2)


def test_steps_without_fit_resume_too(tmp_path):
    trainer = make([])
    trainer.step(X, X[:, :1])
    trainer.save(tmp_path / "x.pt")
    trainer.step(X, X[:, :1])
    other = make([])
    taeda.rand(5)
    other.resume(tmp_path / "x.pt")
    other.step(X, X[:, :1])
    assert all(
        taeda.equal(a, b)
        for a, b in zip(trainer.model.parameters(), other.model.parameters(), strict=True)
    )
