"""DataLoaders with worker processes: PyTorch's batches, and nothing left behind."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import taeda
from taeda.utils import data

# Forking a process with threads warns from Python 3.12 on; PyTorch's loaders fork as well.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


class Samples(data.Dataset):
    """Sample i: tensors, numbers, text, and what the worker's random generators give."""

    def __init__(self, library, count=23):
        self.library, self.count = library, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        full = self.library.full((3,), float(i))
        drawn = (self.library.rand(1), random.random(), np.random.rand())  # noqa: NPY002
        return {"x": full, "i": i, "name": str(i), "drawn": drawn}


class Stream(data.IterableDataset):
    """`counts[w]` numbers from worker w."""

    def __init__(self, counts=(5, 2)):
        self.counts = counts

    def __iter__(self):
        worker = data.get_worker_info()
        number = 0 if worker is None else worker.id
        return iter(range(100 * number, 100 * number + self.counts[number]))


def plain(value):
    if hasattr(value, "untyped_storage"):
        return str(value.dtype).split(".")[1], value.tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list) else value


def batches(library, seed=None, passes=2, count=23, **options):
    library.manual_seed(3)
    generator = None
    if seed is not None:
        generator = library.Generator()
        generator.manual_seed(seed)
    loader = library.utils.data.DataLoader(Samples(library, count), generator=generator, **options)
    result = []
    for _ in range(passes):
        result += [plain(batch) for batch in loader]
        result.append(library.rand(1).item())
    return result


@pytest.mark.parametrize("persistent_workers", [False, True])
@pytest.mark.parametrize("seed", [None, 7])
def test_same_batches_and_draws_as_pytorch(persistent_workers, seed):
    torch = pytest.importorskip("torch")
    for options in (
        {"batch_size": 4, "shuffle": True},
        {"batch_size": 5, "drop_last": True, "prefetch_factor": 3},
        {"batch_size": None, "count": 5},
    ):
        options |= {"num_workers": 2, "persistent_workers": persistent_workers, "seed": seed}
        assert batches(taeda, **options) == batches(torch, **options), options


def test_more_workers_than_batches():
    loader = data.DataLoader(range(3), num_workers=2, batch_size=2)
    assert [b.tolist() for b in loader] == [[0, 1], [2]] and len(loader) == 2
    assert [b.tolist() for b in data.DataLoader([], num_workers=1)] == []


class Shapes:
    """Batches of every kind of tensor, of a size that goes through shared memory or does not."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return 2

    def __getitem__(self, i):
        base = taeda.arange(self.size * 3.0).reshape(self.size, 3)
        channels = base.reshape(1, 3, self.size, 1).to(memory_format=taeda.channels_last)
        return {
            "plain": base,
            "transposed": base.t(),
            "rows": base[::2],
            "expanded": base[:1].expand(4, 3),
            "channels": channels,
            "scalar": taeda.tensor(i),
            "empty": taeda.empty(0, 3),
            "half": base.to(taeda.bfloat16),
            "complex": taeda.complex(base, base),
            "bool": base > 3,
            "leaf": base.clone().requires_grad_(),
            "array": base.numpy(),
            "twice": [base, base],
            "other": (None, "text", {1, 2}),
        }


@pytest.mark.parametrize("size", [2, 5000])
def test_batches_of_any_kind_arrive(size):
    dataset = Shapes(size)
    got = list(data.DataLoader(dataset, batch_size=None, num_workers=1, collate_fn=same))
    assert len(got) == 2
    for i, batch in enumerate(got):
        for name, value in dataset[i].items():
            other = batch[name]
            if isinstance(value, taeda.Tensor):
                assert (other.dtype, other.shape) == (value.dtype, value.shape), name
                assert taeda.equal(other, value), name
                assert other.requires_grad == value.requires_grad and other.is_leaf
                if name != "rows" and name != "expanded":
                    assert other.stride() == value.stride(), name
        assert np.array_equal(batch["array"], dataset[i]["array"])
        assert batch["twice"][0] is batch["twice"][1] and batch["other"] == dataset[i]["other"]
        batch["plain"].add_(1)
        assert taeda.equal(batch["plain"], dataset[i]["plain"] + 1)


def same(batch):
    return batch


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start(method):
    dataset = data.TensorDataset(taeda.arange(7))
    loader = data.DataLoader(
        dataset, batch_size=3, num_workers=1, multiprocessing_context=method, worker_init_fn=same
    )
    assert [b.tolist() for (b,) in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert loader.multiprocessing_context.get_start_method() == method


# What workers know


class Known:
    def __len__(self):
        return 4

    def __getitem__(self, i):
        worker = data.get_worker_info()
        return [worker.id, worker.num_workers, worker.seed, worker.dataset is self, MARK[0], i]


MARK = [0]


def set_mark(worker):
    MARK[0] = 10 + worker


def test_worker_info_and_init():
    assert data.get_worker_info() is None
    loader = data.DataLoader(
        Known(), batch_size=None, num_workers=2, worker_init_fn=set_mark, collate_fn=same
    )
    got = list(loader)
    assert [row[:2] + row[3:] for row in got] == [[i % 2, 2, True, 10 + i % 2, i] for i in range(4)]
    assert got[1][2] == got[0][2] + 1
    assert MARK == [0]


# Iterable datasets


def test_iterable_datasets_divide_the_work():
    torch = pytest.importorskip("torch")

    class Theirs(torch.utils.data.IterableDataset):
        def __init__(self, counts):
            self.counts = counts

        def __iter__(self):
            number = torch.utils.data.get_worker_info().id
            return iter(range(100 * number, 100 * number + self.counts[number]))

    for counts, size, drop_last in itertools.product(
        [(5, 2), (0, 3), (0, 0), (1, 9)], [1, 2, None], [False, True]
    ):
        if size is None and drop_last:
            continue
        options = {"batch_size": size, "drop_last": drop_last, "num_workers": 2}
        ours = [plain(b) for b in data.DataLoader(Stream(counts), **options)]
        theirs = [plain(b) for b in torch.utils.data.DataLoader(Theirs(counts), **options)]
        assert ours == theirs, (counts, size, drop_last)


def test_persistent_workers_iterate_again():
    loader = data.DataLoader(Stream(), batch_size=None, num_workers=2, persistent_workers=True)
    first = list(loader)
    processes = [w.process.pid for w in loader._workers.processes]
    assert list(loader) == first == [0, 100, 1, 101, 2, 3, 4]
    assert [w.process.pid for w in loader._workers.processes] == processes
    # A pass that is left early leaves nothing of itself to the next one.
    for _ in range(3):
        assert next(iter(loader)) == 0
    old = iter(loader)
    assert list(loader) == first
    with pytest.raises(RuntimeError, match="another pass has begun"):
        next(old)


class Long(Stream):
    def __len__(self):
        return 3


def test_streams_that_give_more_than_they_said():
    loader = data.DataLoader(Long(), batch_size=1, num_workers=2)
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="more have come"):
        assert len(list(loader)) == 7


# Failures


class Strange(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class Failing:
    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 1:
            raise ValueError("no sample 1")
        if i == 2:
            raise KeyError("key")
        if i == 3:
            raise Strange(1, 2)
        if i == 4:
            return lambda: 0  # cannot be pickled
        return i


def test_exceptions_carry_their_tracebacks():
    passed = iter(data.DataLoader(Failing(), batch_size=None, num_workers=2))
    assert next(passed) == 0
    with pytest.raises(ValueError, match="(?s)worker process 1.*Traceback.*no sample 1"):
        next(passed)
    with pytest.raises(KeyError, match="(?s)worker process 0.*\n.*Traceback"):
        next(passed)
    with pytest.raises(RuntimeError, match="(?s)Strange.*__getitem__"):
        next(passed)
    with pytest.raises(Exception, match="(?s)worker process 0.*pickle"):
        next(passed)
    assert next(passed) == 5
    with pytest.raises(StopIteration):
        next(passed)


def bad_init(worker):
    raise OSError("not ready")


def test_a_failing_init_function_is_reported():
    loader = data.DataLoader(range(3), num_workers=1, worker_init_fn=bad_init)
    with pytest.raises(OSError, match="(?s)worker process 0.*not ready"):
        next(iter(loader))


class Deadly:
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if i == 5:
            os._exit(7)
        return i


def living():
    """This process's children that run or wait to be looked after."""
    found = set()
    for task in os.listdir(f"/proc/{os.getpid()}/task"):
        with open(f"/proc/{os.getpid()}/task/{task}/children") as file:
            found.update(file.read().split())
    return found


def started_since(before):
    """Of the children that live, those that were not among `before`.

    Of those that were, some may end meanwhile: another test's loader, if the garbage collector
    frees it only now, stops its persistent workers then.
    """
    return living() - before


def shared_maps():
    with open(f"/proc/{os.getpid()}/maps") as file:
        return sum("memfd:taeda" in line for line in file)


def shared_files():
    """Files in shared memory, without those that tests beside this one make and remove."""
    return {n for n in os.listdir("/dev/shm") if not n.startswith(("sem.", "torch_"))}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("order", "words"), [([0, 3, 1, 2], "SIGKILL"), ([0, 1, 5, 2], "exit code 7")]
)
@pytest.mark.parametrize("persistent_workers", [False, True])
def test_dead_workers_are_reported_and_all_are_cleaned_up(order, words, persistent_workers):
    gc.collect()  # files of other tests' loaders
    before, files = living(), os.listdir("/proc/self/fd")
    loader = data.DataLoader(
        Deadly(),
        batch_size=None,
        sampler=order,
        num_workers=2,
        persistent_workers=persistent_workers,
    )
    with pytest.raises(RuntimeError, match=rf"worker \d \(pid \d+\) exited unexpectedly.*{words}"):
        list(loader)
    assert not started_since(before)
    assert len(os.listdir("/proc/self/fd")) == len(files)
    # The loader can be used again.
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(loader)
    assert not started_since(before)


class Waiting:
    """Indices of which the second comes when the worker that got the first is gone."""

    def __init__(self):
        self.first = 3

    def __len__(self):
        return 3

    def __iter__(self):
        yield self.first
        time.sleep(0.5)
        yield from (0, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("persistent_workers", [False, True])
def test_a_worker_that_is_dead_before_all_have_their_tasks(persistent_workers):
    before, indices = living(), Waiting()
    loader = data.DataLoader(
        Deadly(),
        batch_size=None,
        sampler=indices,
        num_workers=1,
        persistent_workers=persistent_workers,
        prefetch_factor=3,
    )
    with pytest.raises(RuntimeError, match="exited unexpectedly.*SIGKILL") as caught:
        iter(loader)
    assert caught and not started_since(before)
    del caught  # it holds this frame, and with it the loader and its next workers
    indices.first = 2
    assert list(loader) == [2, 0, 1]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_worker_killed_from_outside():
    before = living()
    passed = iter(data.DataLoader(Slow(0.05, 1000), batch_size=None, num_workers=2))
    next(passed)
    victim = min(started_since(before))
    os.kill(int(victim), signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"pid {victim}.*SIGKILL"):
        list(passed)
    assert not started_since(before)


class Slow:
    def __init__(self, seconds, count=4):
        self.seconds, self.count = seconds, count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return taeda.full((20_000,), float(i))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_timeout():
    before = living()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 0\.3 seconds"):
        next(iter(data.DataLoader(Slow(60), num_workers=1, timeout=0.3)))
    assert time.monotonic() - start < 10
    assert not started_since(before)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_left_behind():
    gc.collect()  # workers and files of other tests' loaders
    before, files, shared = living(), len(os.listdir("/proc/self/fd")), shared_files()
    for persistent in (False, True):
        loader = data.DataLoader(
            Slow(0.001, 12), batch_size=2, num_workers=2, persistent_workers=persistent
        )
        kept = list(loader)
        assert shared_maps() > 0
        for _batch in loader:
            break
        del loader, kept, _batch
        gc.collect()
        assert not started_since(before)
        assert shared_maps() == 0
        assert len(os.listdir("/proc/self/fd")) == files
    assert shared_files() <= shared
    assert multiprocessing.active_children() == []


PROGRAM = """
import os, signal, sys, time
import taeda
from taeda.utils import data
class Slow:
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.05)
        return taeda.ones(20_000)
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
    passed = iter(data.DataLoader(Slow(), num_workers=2, batch_size=1))
    next(passed)
    print(os.getpid(), *(w.process.pid for w in passed._batches._workers.processes), flush=True)
    for batch in passed:
        pass
"""


def gone(pids, seconds=15):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(is_running(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["interrupt", "interrupt all", "kill"])
def test_the_main_process_is_stopped(how, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    child = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    main, *workers = map(int, child.stdout.readline().split())
    if how == "interrupt":
        os.kill(main, signal.SIGINT)
    elif how == "interrupt all":  # as Ctrl-C on a terminal does
        os.killpg(main, signal.SIGINT)
    else:
        os.kill(main, signal.SIGKILL)
    _, errors = child.communicate(timeout=60)
    assert gone(workers)
    if how != "kill":
        assert errors.rstrip().endswith("KeyboardInterrupt") and errors.count("Traceback") == 1


# Options


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"num_workers": 1, "prefetch_factor": 0}, ValueError),
        ({"num_workers": 1, "multiprocessing_context": "thread"}, ValueError),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError),
        ({"multiprocessing_context": "fork"}, ValueError),
        ({"num_workers": -1}, ValueError),
    ],
)
def test_bad_options_are_refused(options, error):
    with pytest.raises(error, match="DataLoader"):
        data.DataLoader(range(3), **options)


def test_batches_as_they_come():
    loader = data.DataLoader(range(20), num_workers=2, batch_size=2, in_order=False)
    assert sorted(i for batch in loader for i in batch.tolist()) == list(range(20))


def test_a_loader_inside_a_worker_is_refused_by_python():
    """Workers are daemons, which may have no children; the message says so."""
    with pytest.raises(AssertionError, match="daemonic"):
        list(data.DataLoader(Nested(), num_workers=1))


class Nested:
    def __len__(self):
        return 1

    def __getitem__(self, i):
        return next(iter(data.DataLoader(range(2), num_workers=1)))
