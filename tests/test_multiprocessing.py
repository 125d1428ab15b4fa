"""Tensors that processes share, and starting processes."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time

import pytest

import taeda
import taeda.multiprocessing as mp
from taeda import nn

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="shares memory as Linux does"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def test_sharing_keeps_values_views_and_identity():
    base = taeda.arange(6.0)
    view, array = base[2:4], base.numpy()
    assert not base.is_shared()
    assert base.share_memory_() is base and base.is_shared() and view.is_shared()
    assert base.untyped_storage().is_shared() and base.share_memory_() is base
    base[2] = 9
    assert view.tolist() == [9, 3] and base.tolist() == [0, 1, 9, 3, 4, 5]
    # An array from before looks at the old memory, which is still there.
    assert array.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match="not resizable"):
        base.untyped_storage().resize_(100)
    assert taeda.empty(0).share_memory_().is_shared()
    model = nn.Linear(2, 2).share_memory()
    assert model.weight.is_shared() and isinstance(model.weight, nn.Parameter)
    with pytest.raises(ValueError, match="has 8 bytes"):
        shared = taeda.zeros(2).share_memory_().untyped_storage()
        taeda.UntypedStorage._from_shared_file(shared._shared_file(), 9)
    with pytest.raises(OSError):
        taeda.UntypedStorage._from_shared_file(-1, 1)


def test_memory_is_given_back():
    def mapped():
        with open("/proc/self/maps") as file:
            return sum("memfd:taeda" in line for line in file), len(os.listdir("/proc/self/fd"))

    before = mapped()
    tensor = taeda.zeros(1000).share_memory_()
    assert mapped() == (before[0] + 1, before[1] + 1)
    del tensor
    assert mapped() == before


def add_to(tensor, there, back):
    tensor.add_(1)
    received = there.get()
    received.mul_(2)
    back.put((received, nn.Parameter(taeda.ones(2)), taeda.empty(0, 3)))
    there.get()  # descriptors are handed out by the process that sent them


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_see_the_same_memory(method):
    context = mp.get_context(method)
    there, back, tensor = context.Queue(), context.Queue(), taeda.zeros(4).share_memory_()
    process = context.Process(target=add_to, args=(tensor, there, back), daemon=True)
    process.start()
    sent = taeda.arange(6.0).reshape(2, 3).t()
    there.put(sent)
    while sent[2, 0].item() == 2.0:
        time.sleep(0.01)
    received, parameter, empty = back.get(timeout=60)
    there.put("received")
    process.join(60)
    assert process.exitcode == 0
    assert tensor.tolist() == [1, 1, 1, 1]
    assert sent.is_shared() and sent.tolist() == [[0, 6], [2, 8], [4, 10]]
    assert received.tolist() == sent.tolist() and received.stride() == sent.stride()
    received[0, 0] = 5
    assert sent[0, 0].item() == 5
    assert type(parameter) is nn.Parameter and parameter.requires_grad
    assert empty.shape == (0, 3)
    there.close()
    back.close()


def test_tensors_with_a_history_are_refused():
    from multiprocessing.reduction import ForkingPickler

    with pytest.raises(RuntimeError, match="history"):
        ForkingPickler.dumps(taeda.ones(1, requires_grad=True) * 2)


def train(index, model, count):
    # Hogwild: several processes change the same parameters.
    with taeda.no_grad():
        for _ in range(10):
            model.weight[index] += 1


def fail(index):
    if index == 1:
        raise ValueError("no luck")
    time.sleep(60)


def die(index):
    os.kill(os.getpid(), signal.SIGKILL)


def test_spawn():
    model = nn.Linear(3, 2)
    nn.init.zeros_(model.weight)
    model.share_memory()
    assert mp.spawn(train, (model, 2), nprocs=2) is None
    assert model.weight.tolist() == [[10.0] * 3] * 2
    context = mp.start_processes(train, (model, 2), nprocs=1, join=False, start_method="fork")
    while not context.join(timeout=30):
        pass
    assert model.weight[0].tolist() == [20.0] * 3 and len(context.pids()) == 1


def test_failures_of_processes():
    start = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException, match="(?s)Process 1.*no luck") as caught:
        mp.start_processes(fail, nprocs=2, start_method="fork")
    assert time.monotonic() - start < 50 and caught.value.error_index == 1
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), mp.ProcessRaisedException)
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL") as caught:
        mp.start_processes(die, start_method="fork")
    assert caught.value.exit_code == -9 and caught.value.signal_name == "SIGKILL"
    with pytest.raises(ValueError, match="must be 'spawn'"):
        mp.spawn(fail, start_method="fork")


def test_pythons_names_are_there():
    assert mp.cpu_count() >= 1 and mp.current_process().name == "MainProcess"
    assert mp.get_all_sharing_strategies() == {"file_descriptor"}
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(ValueError):
        mp.set_sharing_strategy("file_system")
