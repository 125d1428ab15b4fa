"""Special functions against SciPy in float64; derivatives; bad input; window functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck

sc = pytest.importorskip("scipy.special")

special = taeda.special
G = np.random.default_rng(0)


def spread(low: float, high: float, n: int = 200) -> np.ndarray:
    return np.concatenate([G.uniform(low, high, n), [low, high]])


def powers(low: float, high: float, n: int = 200) -> np.ndarray:
    return 10 ** spread(low, high, n)


def assert_near(ours: Any, exact: np.ndarray, rtol: float, atol: float = 0) -> None:
    np.testing.assert_allclose(ours.numpy(), exact, rtol=rtol, atol=atol)


# name, SciPy's function, arguments, relative and absolute tolerance.
ONE = [
    ("i0", sc.i0, spread(-700, 700), 4e-15, 0),
    ("i0e", sc.i0e, spread(-1e4, 1e4), 4e-15, 0),
    ("i1", sc.i1, spread(-30, 30), 4e-15, 0),
    ("i1e", sc.i1e, spread(-1e4, 1e4), 4e-15, 0),
    ("modified_bessel_i0", sc.i0, spread(-9, 9), 4e-15, 0),
    ("modified_bessel_i1", sc.i1, spread(-9, 9), 4e-15, 0),
    ("modified_bessel_k0", sc.k0, powers(-9, 2.8), 4e-15, 0),
    ("modified_bessel_k1", sc.k1, powers(-9, 2.8), 4e-15, 0),
    ("scaled_modified_bessel_k0", sc.k0e, powers(-9, 5), 4e-15, 0),
    ("scaled_modified_bessel_k1", sc.k1e, powers(-9, 5), 4e-15, 0),
    ("bessel_j0", sc.j0, spread(-60, 60), 1e-13, 1e-15),
    ("bessel_j1", sc.j1, spread(-60, 60), 1e-13, 1e-15),
    ("bessel_y0", sc.y0, spread(1e-6, 60), 1e-13, 1e-15),
    ("bessel_y1", sc.y1, spread(1e-6, 60), 1e-13, 1e-15),
    ("spherical_bessel_j0", lambda x: np.sin(x) / x, spread(-60, 60), 1e-15, 0),
    ("airy_ai", lambda x: sc.airy(x)[0], spread(-40, 8), 1e-13, 2e-14),
    ("airy_ai", lambda x: sc.airy(x)[0], spread(8, 60), 1e-12, 0),
    ("erfcx", sc.erfcx, spread(-4, 100), 8e-15, 0),
    ("erfcx", sc.erfcx, spread(-26, -4), 1e-13, 0),
    ("erfcx", sc.erfcx, powers(1, 10), 4e-15, 0),
    ("ndtr", sc.ndtr, spread(-5, 9), 1e-14, 0),
    ("log_ndtr", sc.log_ndtr, spread(-50, 7), 1e-13, 0),
    ("ndtri", sc.ndtri, spread(1e-3, 0.999), 4e-15, 4e-16),
    ("ndtri", sc.ndtri, powers(-300, -1), 1e-14, 0),
    ("entr", sc.entr, spread(-1, 20), 1e-15, 0),
    ("digamma", sc.digamma, spread(2, 100), 1e-14, 0),
    ("gammaln", sc.gammaln, spread(3, 100), 1e-14, 0),
    ("erfinv", sc.erfinv, spread(-0.999, 0.999), 1e-14, 0),
    ("expit", sc.expit, spread(-30, 30), 1e-14, 0),
]


@pytest.mark.parametrize(
    ("name", "exact", "x", "rtol", "atol"), ONE, ids=[f"{row[0]}-{i}" for i, row in enumerate(ONE)]
)
def test_one_argument(name: str, exact: Any, x: np.ndarray, rtol: float, atol: float) -> None:
    f = getattr(special, name)
    assert_near(f(taeda.from_numpy(x)), exact(x), rtol, atol)
    # float32 is computed in float64 and rounded once.
    single = x.astype(np.float32)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact(single.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(f(taeda.from_numpy(single)).numpy(), rounded, rtol=5e-7, atol=1e-7)


def test_incomplete_gamma() -> None:
    for low, high in ((-4, 0), (0, 1), (1, 2), (2, 5)):
        a = powers(low, high, 300)
        for x in (a * powers(-1, 0.5, 300), np.abs(a + 2 * np.sqrt(a) * G.normal(size=a.size))):
            t, u = taeda.from_numpy(a), taeda.from_numpy(x)
            assert_near(special.gammainc(t, u), sc.gammainc(a, x), 1e-11, 1e-250)
            assert_near(special.gammaincc(t, u), sc.gammaincc(a, x), 1e-11, 1e-250)
    inf, nan = np.inf, np.nan
    a = taeda.tensor([0, 0, 1, 1, inf, inf, -1, nan], dtype=taeda.float64)
    x = taeda.tensor([0, 1, 0, inf, 1, inf, 1, 1], dtype=taeda.float64)
    assert_near(special.gammainc(a, x), np.array([nan, 1, 0, 1, 0, nan, nan, nan]), 0)
    assert_near(special.gammaincc(a, x), np.array([nan, 0, 1, 0, 1, nan, nan, nan]), 0)


def test_zeta_and_polygamma() -> None:
    s, q = 1 + powers(-2, 1.5), powers(-1.5, 2)
    assert_near(special.zeta(taeda.from_numpy(s), taeda.from_numpy(q)), sc.zeta(s, q), 1e-14)
    for n in range(5):
        x = spread(2, 30)
        assert_near(special.polygamma(n, taeda.from_numpy(x)), sc.polygamma(n, x), 1e-13)


def test_multigammaln() -> None:
    x = spread(4, 30)
    for p in (1, 2, 5):
        exact = np.array([sc.multigammaln(v, p) for v in x])
        assert_near(special.multigammaln(taeda.from_numpy(x), p), exact, 1e-14)
    assert taeda.mvlgamma(taeda.tensor([3]), 2).dtype == taeda.float32
    with pytest.raises(RuntimeError):
        special.multigammaln(taeda.ones(2), 0)


POLYNOMIALS = {
    "chebyshev_polynomial_t": sc.eval_chebyt,
    "chebyshev_polynomial_u": sc.eval_chebyu,
    "shifted_chebyshev_polynomial_t": sc.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": sc.eval_sh_chebyu,
    "hermite_polynomial_h": sc.eval_hermite,
    "hermite_polynomial_he": sc.eval_hermitenorm,
    "laguerre_polynomial_l": sc.eval_laguerre,
    "legendre_polynomial_p": sc.eval_legendre,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name: str) -> None:
    x = spread(-1.2, 1.2, 300)
    n = G.integers(0, 70, x.size)
    exact = POLYNOMIALS[name](n, x)
    ours = getattr(special, name)(taeda.from_numpy(x), taeda.from_numpy(n))
    assert np.max(np.abs(ours.numpy() - exact) / (1 + np.abs(exact))) < 1e-12
    f = getattr(special, name)
    assert f(taeda.tensor([0.3]), -2).item() == 0
    assert f(taeda.tensor([0.3]), 0.9).item() == 1  # the degree loses its fraction
    assert f(0.3, taeda.tensor([0])).item() == 1
    assert np.isnan(f(taeda.tensor([float("nan")]), 3).item())
    with pytest.raises(TypeError):
        f(0.3, 2)


@pytest.mark.parametrize("kind", "tuvw")
@pytest.mark.parametrize("n", [0, 1, 2, 5, 24, 25, 60, 61])
def test_closed_forms_of_chebyshev_meet_the_recurrence(kind: str, n: int) -> None:
    x = np.concatenate([spread(-1.3, 1.3), [-1, 1, 0]])
    p, q = np.ones_like(x), {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1}[kind]
    for _ in range(n):
        p, q = q, 2 * x * q - p
    ours = getattr(special, f"chebyshev_polynomial_{kind}")(taeda.from_numpy(x), n).numpy()
    assert np.max(np.abs(ours - p) / (1 + np.abs(p))) < 1e-11
    shifted = getattr(special, f"shifted_chebyshev_polynomial_{kind}")
    np.testing.assert_array_equal(shifted(taeda.from_numpy((x + 1) / 2), n).numpy().shape, x.shape)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("i0", -3, 3),
        ("i0e", 0.2, 9),
        ("i1", -3, 3),
        ("i1e", -9, -0.2),
        ("modified_bessel_i0", -3, 3),
        ("modified_bessel_i1", -3, 3),
        ("modified_bessel_k0", 0.5, 4),
        ("modified_bessel_k1", 0.5, 4),
        ("scaled_modified_bessel_k0", 0.5, 4),
        ("scaled_modified_bessel_k1", 0.5, 4),
        ("bessel_j0", -5, 5),
        ("bessel_j1", -5, 5),
        ("bessel_y0", 0.5, 5),
        ("bessel_y1", 0.5, 5),
        ("spherical_bessel_j0", -3, 3),
        ("erfcx", -2, 4),
        ("ndtr", -3, 3),
        ("log_ndtr", -3, 3),
        ("ndtri", 0.1, 0.9),
        ("entr", 0.1, 3),
    ],
)
def test_derivatives(name: str, low: float, high: float) -> None:
    x = taeda.linspace(low, high, 7, dtype=taeda.float64).requires_grad_()
    assert gradcheck(getattr(special, name), (x,))
    assert gradgradcheck(getattr(special, name), (x,))


def test_derivatives_where_a_term_is_divided_by_zero() -> None:
    for name, slope in (("i1", 0.5), ("i1e", 0.5), ("bessel_j1", 0.5), ("spherical_bessel_j0", 0)):
        x = taeda.zeros(1, dtype=taeda.float64, requires_grad=True)
        (g,) = taeda.autograd.grad(getattr(special, name)(x), x, create_graph=True)
        assert g.item() == pytest.approx(slope, rel=1e-15)
        assert taeda.isfinite(taeda.autograd.grad(g, x)[0]).all()


def test_derivatives_by_the_second_argument() -> None:
    a = taeda.tensor([0.5, 1.5, 3.0], dtype=taeda.float64)
    x = taeda.tensor([0.7, 2.0, 2.5], dtype=taeda.float64, requires_grad=True)
    for f in (special.gammainc, special.gammaincc, lambda s, q: special.zeta(s + 1, q)):
        assert gradcheck(lambda t, f=f: f(a, t), (x,))
        assert gradgradcheck(lambda t, f=f: f(a, t), (x,))
    b = a.clone().requires_grad_()
    assert gradcheck(special.xlog1py, (b, x))
    assert gradgradcheck(special.xlog1py, (b, x))
    for f in (special.gammainc, special.gammaincc, special.zeta):
        with pytest.raises(NotImplementedError):
            f(x, a).sum().backward()


@pytest.mark.parametrize(
    "name",
    [
        "chebyshev_polynomial_t",
        "chebyshev_polynomial_u",
        "shifted_chebyshev_polynomial_t",
        "shifted_chebyshev_polynomial_u",
        "hermite_polynomial_h",
        "hermite_polynomial_he",
    ],
)
def test_derivatives_of_polynomials(name: str) -> None:
    x = taeda.tensor([-0.5, 0.2, 0.9], dtype=taeda.float64, requires_grad=True)
    for n in (0, 1, 2, 5):

        def f(t: Any, n: int = n) -> Any:
            return getattr(special, name)(t, n)

        assert gradcheck(f, (x,))
        if n > 1:
            assert gradgradcheck(f, (x,))


def test_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    x = taeda.tensor([-inf, -1, 0, 1, inf, nan], dtype=taeda.float64)
    for name, exact in {
        "i0": [inf, 1.2660658777520084, 1, 1.2660658777520084, inf, nan],
        "i1": [-inf, -0.5651591039924851, 0, 0.5651591039924851, inf, nan],
        "i0e": [0, 0.46575960759364043, 1, 0.46575960759364043, 0, nan],
        "modified_bessel_k0": [nan, nan, inf, 0.42102443824070834, 0, nan],
        "bessel_y0": [nan, nan, -inf, 0.08825696421567697, 0, nan],
        "spherical_bessel_j0": [0, 0.8414709848078965, 1, 0.8414709848078965, 0, nan],
        "erfcx": [inf, 5.00898008076228, 1, 0.427583576155807, 0, nan],
        "log_ndtr": [-inf, -1.8410216450092634, -0.6931471805599453, -0.1727537790234499, 0, nan],
        "ndtri": [nan, nan, -inf, inf, nan, nan],
        "entr": [-inf, -inf, 0, 0, -inf, nan],
    }.items():
        assert_near(getattr(special, name)(x), np.array(exact), 1e-14)


def test_dtypes_and_forms() -> None:
    assert special.i0e(taeda.tensor([1])).dtype == taeda.float32
    assert special.ndtr(taeda.ones(2, dtype=taeda.bfloat16)).dtype == taeda.bfloat16
    with pytest.raises(NotImplementedError):
        special.gammainc(taeda.tensor([1]), taeda.tensor([1]))
    x = taeda.rand(5) + 1
    out = taeda.empty(0)
    assert special.erfcx(x, out=out) is out
    assert taeda.equal(x.clone().i0_(), x.i0())
    assert taeda.equal(x.clone().igamma_(x), taeda.igamma(x, x))
    assert special.zeta(2, taeda.tensor(1.0)).item() == pytest.approx(np.pi**2 / 6)
    for name in special.__all__:
        assert callable(getattr(special, name))


@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("m", [0, 1, 2, 7, 16])
def test_windows(m: int, sym: bool) -> None:
    sw = pytest.importorskip("scipy.signal.windows")
    w = taeda.signal.windows
    for ours, exact in (
        (w.hann, lambda m, sym: sw.hann(m, sym)),
        (w.hamming, lambda m, sym: sw.hamming(m, sym)),
        (w.blackman, lambda m, sym: sw.blackman(m, sym)),
        (w.bartlett, lambda m, sym: sw.bartlett(m, sym)),
        (w.cosine, lambda m, sym: sw.cosine(m, sym)),
        (w.nuttall, lambda m, sym: sw.nuttall(m, sym)),
        (w.gaussian, lambda m, sym: sw.gaussian(m, 1.0, sym)),
        (w.exponential, lambda m, sym: sw.exponential(m, None, 1.0, sym)),
        (w.kaiser, lambda m, sym: sw.kaiser(m, 12.0, sym)),
    ):
        t = ours(m, sym=sym, dtype=taeda.float64)
        assert_near(t, exact(m, sym), 1e-13, 1e-15)
    assert w.hann(4).dtype == taeda.float32


def test_windows_refuse() -> None:
    w = taeda.signal.windows
    for call in (
        lambda: w.hann(-1),
        lambda: w.hann(4, dtype=taeda.float16),
        lambda: w.gaussian(4, std=0.0),
        lambda: w.exponential(4, tau=-1.0),
        lambda: w.exponential(4, center=1.0),
        lambda: w.kaiser(4, beta=-1.0),
        lambda: w.general_cosine(4, a=[]),
    ):
        with pytest.raises(ValueError, match="must"):
            call()
    for bad in (lambda: w.general_cosine(4, a=3.0), lambda: w.hann(5.5)):
        with pytest.raises(TypeError):
            bad()
