"""The pool of threads: what it costs when there is nothing to do, and who may use it."""

from __future__ import annotations

import threading
import time

import pytest

import taeda


@pytest.fixture(autouse=True)
def four_threads():
    before = taeda.get_num_threads()
    taeda.set_num_threads(4)
    yield
    taeda.set_num_threads(before)


def test_idle_threads_sleep():
    a = taeda.randn(300, 300)
    for _ in range(5):
        a @ a
    time.sleep(0.05)
    start = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - start < 0.05


def test_threads_of_python_share_the_pool():
    from concurrent.futures import ThreadPoolExecutor

    a = taeda.randn(200, 200)
    expected = a @ a
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: a @ a, range(40)))
    assert all(taeda.equal(r, expected) for r in results)


def test_a_mask_that_another_thread_changes_is_refused_or_read():
    # Its true elements are counted first: no more than that many may be written.
    n = 400_000
    x, mask, over = taeda.rand(n), taeda.zeros(n, dtype=taeda.bool), threading.Event()

    def flip():
        while not over.is_set():
            mask.fill_(True)
            mask.fill_(False)

    other = threading.Thread(target=flip)
    other.start()
    try:
        for _ in range(60):
            for select in (lambda: x[mask], lambda: mask.nonzero()):
                try:
                    assert len(select()) <= n
                except RuntimeError as error:
                    assert "changed by another thread" in str(error)
    finally:
        over.set()
        other.join()
    assert x[mask].tolist() == []
