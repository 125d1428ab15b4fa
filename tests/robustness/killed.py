"""Processes that are killed at random moments: saves, and the workers of a DataLoader.

`python -m tests.robustness.killed saves COUNT FOLDER`, `... killed workers COUNT`. Forked children
are killed, so that an attempt takes milliseconds.
"""

import faulthandler
import gc
import os
import random
import signal
import sys
import time
from pathlib import Path

import taeda
from taeda.utils import data

ELEMENTS = 1 << 18
WAYS = (signal.SIGKILL, signal.SIGTERM)


# ---- saves --------------------------------------------------------------------------------------


def check_saved(path, new):
    """The file is the one from before or one that the killed process saved."""
    if new and not path.exists():
        return
    a = taeda.load(path)["a"]
    assert a.numel() == ELEMENTS and bool((a == a[0]).all()), "a file is mixed"


def saves(count, folder):
    pick, folder = random.Random(3), Path(folder)
    suffixes = (".pt", ".pt", ".safetensors")
    for k in range(count):
        path = folder / f"x{pick.choice(suffixes)}"
        new = pick.random() < 0.3
        if new:
            path.unlink(missing_ok=True)
        elif not path.exists():
            save_once(path)
        child = os.fork()
        if child == 0:
            try:
                one = {"a": taeda.full((ELEMENTS,), float(k))}
                while True:
                    taeda.save(one, path)
            finally:
                os._exit(1)
        time.sleep(pick.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, f"the save failed: {status}"
        check_saved(path, new)
        # What a killed replacement may leave: one name, which the next save takes over.
        left = {p.name for p in folder.iterdir()} - {"x.pt", "x.safetensors"}
        assert left <= {".x.pt.0.saving", ".x.safetensors.0.saving"}, left
    for name in ("x.pt", "x.safetensors"):
        save_once(folder / name)
    assert {p.name for p in folder.iterdir()} == {"x.pt", "x.safetensors"}


def save_once(path):
    taeda.save({"a": taeda.zeros(ELEMENTS)}, path)


# ---- workers of a DataLoader --------------------------------------------------------------------


class Samples:
    """Samples of all sizes; where it is told to, the worker ends by itself."""

    def __init__(self, pick, dies_at=None):
        self.sizes = [pick.choice([1, 100, 10_000]) for _ in range(40)]
        self.dies_at = dies_at

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        if i == self.dies_at:
            os._exit(i % 3)
        return {"x": taeda.full((self.sizes[i],), float(i)), "i": i}


def children():
    found = set()
    for task in os.listdir(f"/proc/{os.getpid()}/task"):
        try:
            text = Path(f"/proc/{os.getpid()}/task/{task}/children").read_text()
        except FileNotFoundError:  # the thread has ended
            continue
        found.update(map(int, text.split()))
    return found


def kill_one(pick):
    """Uses a loader until one of its workers is killed; returns whether the loader said so."""
    inside = pick.random() < 0.4
    samples = Samples(pick, pick.randrange(40) if inside else None)
    count = pick.choice([1, 2, 2, 3])
    loader = data.DataLoader(
        samples,
        batch_size=None,
        num_workers=count,
        persistent_workers=pick.random() < 0.5,
        in_order=pick.random() < 0.7,
        prefetch_factor=pick.choice([1, 2, 4]),
    )
    before = children()
    passed, seen = None, 0
    last = pick.randrange(12)
    try:
        passed = iter(loader)
        for batch in passed:
            assert bool((batch["x"] == float(batch["i"])).all()), "a batch is mixed"
            if seen == last and not inside:
                time.sleep(pick.random() * 0.002)
                victim = pick.choice(sorted(children() - before))
                os.kill(victim, pick.choice(WAYS))
            seen += 1
    except RuntimeError as error:
        assert "exited unexpectedly" in str(error), error
        said = True
        assert children() == before, "workers are left"
    else:
        # It had given all that it was asked for.
        assert seen == len(samples) and not inside, seen
        said = False
    del passed, loader
    return said


def workers(count):
    pick, said = random.Random(4), 0
    files, shared = len(os.listdir("/proc/self/fd")), os.listdir("/dev/shm")
    for k in range(count):
        faulthandler.dump_traceback_later(60, exit=True)
        said += kill_one(pick)
        if k % 20 == 0 or k == count - 1:
            gc.collect()
            assert not children(), children()
            assert len(os.listdir("/proc/self/fd")) <= files + 2, os.listdir("/proc/self/fd")
    faulthandler.cancel_dump_traceback_later()
    assert os.listdir("/dev/shm") == shared
    return said


def main(kind, count, *rest):
    faulthandler.enable()
    taeda.set_num_threads(1)
    if kind == "saves":
        saves(int(count), *rest)
        print("saves killed:", count)
    else:
        print("workers killed:", count, "noticed by the loader:", workers(int(count)))


if __name__ == "__main__":
    main(*sys.argv[1:])
