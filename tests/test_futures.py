"""Values that are there later."""

from __future__ import annotations

import threading

import pytest

from taeda.futures import Future, collect_all, wait_all


def test_a_value_is_waited_for():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="has not been set"):
        future.value()
    thread = threading.Timer(0.02, future.set_result, [7])
    thread.start()
    assert future.wait() == future.value() == 7 and future.done()
    with pytest.raises(RuntimeError, match="complete again"):
        future.set_result(8)
    thread.join()


def test_errors_are_raised_where_one_waits():
    future = Future()
    with pytest.raises(AssertionError, match="not an Exception"):
        future.set_exception(3)
    future.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        future.wait()
    with pytest.raises(ValueError, match="no"):
        future.then(lambda f: f.value()).wait()
    with pytest.raises(ZeroDivisionError):
        Future().then(lambda f: 0) and done(1).then(lambda f: 1 / 0).wait()


def done(value):
    future = Future()
    future.set_result(value)
    return future


def test_callbacks_run_when_the_value_is_there():
    future, seen = Future(), []
    future.add_done_callback(lambda f: seen.append(f.value()))
    following = future.then(lambda f: f.value() + 1)
    assert seen == [] and not following.done()
    future.set_result(1)
    future.add_done_callback(lambda f: seen.append(-f.value()))
    assert seen == [1, -1] and following.wait() == 2
    with pytest.warns(UserWarning, match="ZeroDivisionError"):
        future.add_done_callback(lambda f: 1 / 0)


def test_many():
    futures = [Future(), done(2), Future()]
    together = collect_all(futures)
    assert not together.done()
    futures[2].set_result(3)
    futures[0].set_result(1)
    assert together.wait() == futures and wait_all(futures) == [1, 2, 3]
    assert collect_all([]).wait() == []
    failed = Future()
    failed.set_exception(KeyError("k"))
    with pytest.raises(KeyError):
        wait_all([done(1), failed])
