"""Grad modes and anomaly detection."""

import threading

import pytest

import taeda


def test_no_grad_and_enable_grad():
    x = taeda.ones(2, requires_grad=True)
    with taeda.no_grad():
        assert not taeda.is_grad_enabled() and not (x * 2).requires_grad
        with taeda.enable_grad():
            assert (x * 2).requires_grad
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()
    with pytest.raises(ValueError, match="x"), taeda.no_grad():
        raise ValueError("x")
    assert taeda.is_grad_enabled()


def test_decorators():
    @taeda.no_grad()
    def off():
        return taeda.is_grad_enabled()

    @taeda.no_grad
    def bare(a, b=2):
        """doc"""
        return taeda.is_grad_enabled(), a, b

    @taeda.set_grad_enabled(False)
    def other():
        return taeda.is_grad_enabled()

    assert taeda.is_grad_enabled()
    assert off() is False and other() is False and bare(1, b=3) == (False, 1, 3)
    assert bare.__name__ == "bare" and bare.__doc__ == "doc"
    assert taeda.is_grad_enabled()


def test_decorated_generators():
    @taeda.no_grad()
    def numbers():
        got = []
        try:
            while True:
                got.append((yield taeda.is_grad_enabled()))
        except KeyError:
            yield "caught", taeda.is_grad_enabled()
        return got

    g = numbers()
    assert next(g) is False and taeda.is_grad_enabled()
    assert g.send(5) is False and taeda.is_grad_enabled()
    assert g.throw(KeyError()) == ("caught", False) and taeda.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(g)
    assert stop.value.value == [5]


def test_set_grad_enabled():
    taeda.set_grad_enabled(False)
    try:
        assert not taeda.is_grad_enabled()
    finally:
        taeda.set_grad_enabled(True)
    with taeda.set_grad_enabled(False):
        assert not taeda.is_grad_enabled()
    assert taeda.is_grad_enabled()


def test_inference_mode():
    x = taeda.ones(2, requires_grad=True)
    with taeda.inference_mode():
        assert taeda.is_inference_mode_enabled() and not (x * 2).requires_grad
        with taeda.inference_mode(False):
            assert not taeda.is_inference_mode_enabled() and (x * 2).requires_grad
    assert not taeda.is_inference_mode_enabled() and taeda.is_grad_enabled()

    @taeda.inference_mode()
    def f():
        return taeda.is_inference_mode_enabled()

    assert f() and not taeda.is_inference_mode_enabled()


def test_each_thread_has_its_own_mode():
    seen = []
    with taeda.no_grad():
        thread = threading.Thread(target=lambda: seen.append(taeda.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_two_threads_share_a_leaf():
    x = taeda.ones(1000, requires_grad=True)

    def work():
        for _ in range(50):
            (x * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.tolist() == [400.0] * 1000


def test_threads_share_a_graph():
    x = taeda.ones(10, requires_grad=True)
    y = x.exp().log().exp()
    errors = []

    def work():
        try:
            for _ in range(50):
                (g,) = taeda.autograd.grad(y.sum(), x, retain_graph=True)
                assert g[0].item() == pytest.approx(2.718282)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def the_forward_line(x):
    return x / x


def test_anomaly_mode_names_the_forward_line():
    x = taeda.zeros(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection"):
        context = taeda.autograd.detect_anomaly()
    with context:
        y = the_forward_line(x)
        with (
            pytest.warns(UserWarning, match="the_forward_line"),
            pytest.raises(RuntimeError, match="'DivBackward0' returned nan values in its 1th"),
        ):
            y.sum().backward()
    assert not taeda._C.is_anomaly_enabled()


def test_anomaly_mode_reports_errors_without_looking_for_nan():
    x = taeda.ones(2, requires_grad=True)
    with taeda.autograd.set_detect_anomaly(True, check_nan=False):
        y = x.exp()
        y.add_(1)
        with (
            pytest.warns(UserWarning, match="Error detected in ExpBackward0"),
            pytest.raises(RuntimeError, match="inplace operation"),
        ):
            y.sum().backward()
    with taeda.autograd.set_detect_anomaly(True, check_nan=False):
        z = taeda.zeros(2, requires_grad=True)
        (z / z).sum().backward()


def test_anomaly_mode_can_be_asked():
    assert not taeda.is_anomaly_enabled()
    with pytest.warns(UserWarning), taeda.autograd.detect_anomaly(check_nan=False):
        assert taeda.is_anomaly_enabled() and not taeda.is_anomaly_check_nan_enabled()
    assert not taeda.is_anomaly_enabled()
