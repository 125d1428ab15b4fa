"""Warnings that PyTorch gives too, by the texts that programs filter them by."""

from __future__ import annotations

import warnings

import pytest

import taeda


@pytest.fixture(params=["taeda", "torch"])
def lib(request):
    if request.param == "torch":
        package = pytest.importorskip("torch", reason="compares with PyTorch")
    else:
        package = taeda
    before = package.is_warn_always_enabled()
    package.set_warn_always(True)
    yield package
    package.set_warn_always(before)


def caught(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    assert all(w.category is UserWarning for w in found)
    return [str(w.message) for w in found]


def test_complex_values_become_real(lib):
    z = lib.ones(2) + 1j
    for convert in (
        z.float,
        lambda: z.to(lib.float64),
        lambda: lib.zeros(2).copy_(z),
        lambda: lib.zeros(2).__setitem__(0, z[0]),
        lambda: lib.zeros(2).fill_(z[0]),
        z.int,
    ):
        (text,) = caught(convert)
        assert text.startswith("Casting complex values to real discards the imaginary part")
    assert not caught(lambda: (z.bool(), z.real, z.abs(), z.to(lib.complex128)))


def test_results_that_change_the_shape_of_out(lib):
    x = lib.ones(2, 2)
    for call in (
        lambda out: lib.add(x, 1, out=out),
        lambda out: lib.mm(x, x, out=out),
        lambda out: lib.sum(x, 0, out=out),
        lambda out: lib.cat([x, x], out=out),
        lambda out: lib.sort(x, out=(out, lib.empty(0, dtype=lib.int64))),
        lambda out: lib.max(x, 0, out=(out, lib.empty(0, dtype=lib.int64))),
    ):
        (text,) = caught(lambda call=call: call(lib.zeros(7)))
        assert text.startswith("An output with one or more elements was resized since it had shape")
        assert not caught(lambda call=call: call(lib.zeros(0)))
    assert not caught(lambda: lib.rand(3, out=lib.zeros(7)))
    assert not caught(lambda: lib.eye(3, out=lib.zeros(7)))


def test_gradients_that_hold_their_graph(lib):
    x = lib.ones(2, requires_grad=True)
    (text,) = caught(lambda: (x * x).sum().backward(create_graph=True))
    assert text.startswith("Using backward() with create_graph=True will create a reference cycle")
    assert not caught(lambda: lib.autograd.grad((x * x).sum(), x, create_graph=True))


def test_spread_without_degrees_of_freedom(lib):
    for name in ("std", "var", "std_mean", "var_mean"):
        (text,) = caught(lambda name=name: getattr(lib, name)(lib.ones(1)))
        assert text.startswith(f"{name}(): degrees of freedom is <= 0")
    assert not caught(lambda: lib.ones(2).std())


def test_covariance_without_degrees_of_freedom(lib):
    (text,) = caught(lambda: lib.cov(lib.ones(2, 1)))
    assert text.startswith("cov(): degrees of freedom is <= 0")
    assert not caught(lambda: (lib.cov(lib.ones(2, 2)), lib.cov(lib.ones(2, 1), correction=0)))


def test_grids_without_indexing(lib):
    (text,) = caught(lambda: lib.meshgrid(lib.ones(2), lib.ones(2)))
    assert text.startswith("torch.meshgrid: in an upcoming release, it will be required to pass")
    assert not caught(lambda: lib.meshgrid(lib.ones(2), lib.ones(2), indexing="xy"))


def test_fourier_transforms_without_a_window(lib):
    x = lib.ones(100)
    (text,) = caught(lambda: lib.stft(x, 16, return_complex=True))
    assert text.startswith("A window was not provided. A rectangular window will be applied")
    z = lib.stft(x, 16, window=lib.ones(16), return_complex=True)
    (text,) = caught(lambda: lib.istft(z, 16))
    assert text.startswith("A window was not provided. A rectangular window will be applied")


def test_transposes_of_other_ranks(lib):
    for shape in ((2, 2, 2), (2,)):
        (text,) = caught(lambda shape=shape: lib.ones(shape).T)
        assert text.startswith("The use of `x.T` on tensors of dimension other than 2")
    assert not caught(lambda: (lib.ones(2, 3).T, lib.ones(2, 3, 4).mT))


def test_once_in_a_process():
    taeda.set_warn_always(False)
    caught(lambda: taeda.ones(3).T)
    assert not caught(lambda: taeda.ones(3).T)
    assert not taeda.is_warn_always_enabled()
