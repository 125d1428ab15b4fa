"""Extreme eigenvalues by LOBPCG, compared with all eigenvalues."""

from __future__ import annotations

import pytest

import taeda


def symmetric(*shape: int) -> taeda.Tensor:
    taeda.manual_seed(3)
    a = taeda.randn(*shape, dtype=taeda.float64)
    return a @ a.mT / shape[-1] + taeda.eye(shape[-1], dtype=taeda.float64)


@pytest.mark.parametrize("method", ["basic", "ortho", None])
@pytest.mark.parametrize("largest", [True, False])
def test_values_and_vectors(method: str | None, largest: bool) -> None:
    a = symmetric(40, 40)
    e, v = taeda.lobpcg(a, k=3, tol=1e-9, method=method, largest=largest)
    every = taeda.linalg.eigvalsh(a)
    taeda.testing.assert_close(e, every.flip(0)[:3] if largest else every[:3])
    taeda.testing.assert_close(a @ v, v * e, rtol=0, atol=1e-7)
    taeda.testing.assert_close(v.mT @ v, taeda.eye(3, dtype=a.dtype))


@pytest.mark.parametrize("method", ["basic", "ortho"])
def test_generalized_and_preconditioned(method: str) -> None:
    a, b = symmetric(30, 30), symmetric(30, 30).inverse()
    e, v = taeda.lobpcg(a, k=2, B=b, iK=a.inverse(), tol=1e-9, largest=False, method=method)
    every = taeda.linalg.eigvals(taeda.linalg.solve(b, a)).real.sort().values
    taeda.testing.assert_close(e, every[:2], rtol=1e-7, atol=1e-7)
    taeda.testing.assert_close(v.mT @ b @ v, taeda.eye(2, dtype=a.dtype))


def test_sparse_batches_and_float32() -> None:
    d = taeda.diag(taeda.arange(1.0, 51.0))
    for a in (d.to_sparse(), d.to_sparse_csr()):
        e, v = taeda.lobpcg(a, k=2)
        taeda.testing.assert_close(e, taeda.tensor([50.0, 49.0]), rtol=1e-4, atol=1e-3)
        assert v.dtype == taeda.float32 and v.shape == (50, 2)
    a = taeda.stack([symmetric(12, 12), 2 * symmetric(12, 12)]).reshape(2, 1, 12, 12)
    e, v = taeda.lobpcg(a, k=2, tol=1e-9)
    assert e.shape == (2, 1, 2) and v.shape == (2, 1, 12, 2)
    taeda.testing.assert_close(e[1], 2 * e[0])


def test_dependent_directions() -> None:
    """Residuals that depend on each other must not spoil the basis."""
    a = taeda.eye(30, dtype=taeda.float64)
    for method in ("basic", "ortho"):
        e, _ = taeda.lobpcg(a, k=3, method=method)
        taeda.testing.assert_close(e, taeda.ones(3, dtype=a.dtype))
    x = taeda.ones(30, 2, dtype=a.dtype)
    e, v = taeda.lobpcg(symmetric(30, 30), X=x + 1e-9 * taeda.randn(30, 2, dtype=a.dtype))
    taeda.testing.assert_close(v.mT @ v, taeda.eye(2, dtype=a.dtype))


def test_tracker_sees_and_stops() -> None:
    seen = []

    def tracker(worker: object) -> None:
        seen.append((worker.ivars["istep"], worker.tvars["rerr"].shape))  # type: ignore[attr-defined]
        worker.bvars["force_stop"] = len(seen) == 3  # type: ignore[attr-defined]

    taeda.lobpcg(symmetric(40, 40), k=2, tol=1e-12, tracker=tracker)
    assert seen == [(0, (2,)), (1, (2,)), (2, (2,))]


def test_derivatives() -> None:
    start = taeda.eye(9, dtype=taeda.float64)[:, :2] + 0.1
    a = symmetric(9, 9).requires_grad_()

    def f(a: taeda.Tensor) -> tuple[taeda.Tensor, taeda.Tensor]:
        e, v = taeda.lobpcg((a + a.mT) / 2, k=2, tol=1e-12, X=start)
        return e, v @ (v * e).mT

    assert taeda.autograd.gradcheck(f, (a,))
    assert taeda.autograd.gradgradcheck(f, (a,))
    batch = taeda.stack([a.detach(), a.detach() + 1]).requires_grad_()
    assert taeda.autograd.gradcheck(
        lambda a: taeda.lobpcg((a + a.mT) / 2, tol=1e-12, X=start)[0], (batch,)
    )


def test_gradient_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    a = symmetric(20, 20).requires_grad_()
    b = torch.from_dlpack(a.detach().clone()).requires_grad_()
    (taeda.lobpcg(a, k=2, tol=1e-12)[0] * taeda.tensor([1.0, 2.0])).sum().backward()
    (torch.lobpcg(b, k=2, tol=1e-12)[0] * torch.tensor([1.0, 2.0])).sum().backward()
    torch.testing.assert_close(torch.from_dlpack(a.grad), b.grad, rtol=1e-5, atol=1e-5)


def test_wrong_arguments() -> None:
    a = symmetric(9, 9)
    for message, given in {
        "3 times": {"k": 4},
        "at most n": {"k": 2, "n": 1},
        "k must be positive": {"k": 0},
        "method": {"method": "fast"},
        "ortho_iparams has no": {"ortho_iparams": {"rounds": 1}},
    }.items():
        with pytest.raises(ValueError, match=message):
            taeda.lobpcg(a, **given)
    with pytest.raises(AssertionError, match="square"):
        taeda.lobpcg(a[:4])
    with pytest.raises(RuntimeError, match="float32 or float64"):
        taeda.lobpcg(a.to(taeda.complex128))
    with pytest.raises(ValueError, match="no derivatives"):
        taeda.lobpcg(a.clone().requires_grad_(), B=a)
    with pytest.raises(ValueError, match="linearly dependent"):
        taeda.lobpcg(a, X=taeda.zeros(9, 2, dtype=a.dtype))
