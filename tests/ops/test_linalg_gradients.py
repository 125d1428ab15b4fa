"""Every derivative of linear algebra against finite differences."""

from __future__ import annotations

import pytest

import taeda
from taeda import linalg as L
from tests.ops.matrices import matrix

# ---- gradients ----------------------------------------------------------------------------------


def hermitian(a):
    return (a + a.mH) / 2


def positive(a):
    return a @ a.mH + 2 * taeda.eye(a.shape[-1], dtype=a.dtype)


def rank_two(a):
    return a[..., :2] @ a[..., :2, :]


SQUARE = {
    "inv": L.inv,
    "det": L.det,
    "slogdet": lambda a: L.slogdet(a),
    "logdet": lambda a: taeda.logdet(positive(a)),
    "cholesky": lambda a: L.cholesky(positive(a)),
    "cholesky upper": lambda a: L.cholesky(positive(a), upper=True),
    "cholesky_inverse": lambda a: taeda.cholesky_inverse(L.cholesky(positive(a))),
    "eigh": lambda a: (lambda w, v: (w, (v.abs() ** 2)))(*L.eigh(hermitian(a))),
    "eigh from above": lambda a: (lambda w, v: (v * w.unsqueeze(-2).to(v.dtype) ** 3) @ v.mH)(
        *L.eigh(hermitian(a), UPLO="U")
    ),
    "eigvalsh": lambda a: L.eigvalsh(hermitian(a)),
    "eig": lambda a: (lambda w, v: (w, v.abs()))(*L.eig(a)),
    "eigvals": L.eigvals,
    "matrix_exp": taeda.matrix_exp,
    "matrix_power": lambda a: (L.matrix_power(a, 3), L.matrix_power(a, -2)),
    "cond": lambda a: (L.cond(a), L.cond(a, 1), L.cond(a, "fro")),
    "pinv of lower rank": lambda a: L.pinv(rank_two(a)),
    "pinv hermitian": lambda a: L.pinv(hermitian(a), hermitian=True),
    "det of a singular matrix": lambda a: (
        L.det(a[..., :2] @ a[..., :2, :]) if a.shape[-1] == 3 else L.det(a)
    ),
}
ANY = {
    "qr": L.qr,
    "lu": lambda a: L.lu(a)[1:],
    "svd": lambda a: (
        lambda u, s, vh: (u @ (s.to(a.dtype).unsqueeze(-1) ** 2 * vh), u.abs(), s, vh.abs())
    )(*L.svd(a, full_matrices=False)),
    "svdvals": L.svdvals,
    "pinv": L.pinv,
    "nuclear norm": lambda a: L.matrix_norm(a, "nuc"),
    "norms": lambda a: tuple(L.matrix_norm(a, p) for p in (2, -2, 1, taeda.inf, "fro")),
}


def check(function, *inputs) -> None:
    assert taeda.autograd.gradcheck(function, inputs)
    assert taeda.autograd.gradgradcheck(function, inputs)


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
@pytest.mark.parametrize("name", SQUARE)
def test_gradients_of_square_matrices(name, dtype):
    if "singular" in name:
        # The rank is lower by one: the gradient is what remains of the cofactors.
        a = matrix(3, 3, dtype=dtype)
        a[2] = a[0] + a[1]
        a[:, 2] = 0
        assert L.det(a) == 0
        assert taeda.autograd.gradcheck(L.det, (a.requires_grad_(),))
        return
    check(SQUARE[name], matrix(2, 3, 3, dtype=dtype, grad=True))


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)], ids=str)
@pytest.mark.parametrize("name", ANY)
def test_gradients_of_any_matrix(name, shape, dtype):
    check(ANY[name], matrix(*shape, dtype=dtype, grad=True))


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
def test_gradients_of_solvers(dtype):
    a, b = matrix(2, 3, 3, dtype=dtype, grad=True), matrix(3, 4, dtype=dtype, seed=1, grad=True)
    check(L.solve, a, b)
    check(lambda a, b: L.solve(a, b.mT, left=False), a, b)
    check(lambda a, b: L.solve(a[0], b[:, 0]), a, b)
    for adjoint in (False, True):
        check(lambda a, b, h=adjoint: L.lu_solve(*L.lu_factor(a), b, adjoint=h), a, b)
        check(
            lambda a, b, h=adjoint: L.lu_solve(*L.lu_factor(a), b.mT, left=False, adjoint=h), a, b
        )
    with taeda.no_grad():
        lu, pivots = L.lu_factor(a)
    check(lambda b: L.lu_solve(lu, pivots, b, adjoint=True), b)
    for upper in (False, True):
        check(lambda a, b, u=upper: L.solve_triangular(a, b, upper=u), a, b)
        check(
            lambda a, b, u=upper: L.solve_triangular(
                a, b.mT, upper=u, left=False, unitriangular=True
            ),
            a,
            b,
        )
        check(
            lambda a, b, u=upper: taeda.cholesky_solve(
                b, L.cholesky(positive(a), upper=u), upper=u
            ),
            a,
            b,
        )
    for symmetric in (False, True):
        s = a.detach() + (a.detach().mH if symmetric else a.detach().mT)
        ld, pivots = L.ldl_factor(s, hermitian=symmetric)
        check(lambda b, ld=ld, p=pivots, h=symmetric: L.ldl_solve(ld, p, b, hermitian=h), b)


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
def test_gradients_of_least_squares(dtype):
    for m, n in ((4, 2), (2, 4)):
        a, b = matrix(m, n, dtype=dtype, grad=True), matrix(m, 2, dtype=dtype, seed=1, grad=True)
        check(lambda a, b: L.lstsq(a, b).solution, a, b)
    check(
        lambda a, b: L.lstsq(a, b, driver="gels")[:2],
        matrix(4, 2, grad=True),
        matrix(4, 1, grad=True),
    )


@pytest.mark.parametrize("dtype", [taeda.float64, taeda.complex128], ids=str)
def test_gradients_of_reflectors(dtype):
    a, tau = matrix(2, 4, 3, dtype=dtype, grad=True), matrix(2, 2, dtype=dtype, seed=1, grad=True)
    other = matrix(2, 4, 2, dtype=dtype, seed=2, grad=True)
    check(L.householder_product, a, tau)
    for left in (False, True):
        for transpose in (False, True):
            check(
                lambda a, t, c, left=left, h=transpose: taeda.ormqr(
                    a, t, c if left else c.mT, left=left, transpose=h
                ),
                a,
                tau,
                other,
            )


def test_gradients_that_do_not_exist():
    a = matrix(4, 3, grad=True)
    with pytest.raises(RuntimeError, match="mode='r'"):
        L.qr(a, "r").R.sum().backward()
    with pytest.raises(RuntimeError, match="mode='complete'"):
        L.qr(a, "complete").R.sum().backward()
    with pytest.raises(RuntimeError, match="geqrf"):
        taeda.geqrf(a).a.sum().backward()
    for function in (L.eigh, L.eig):  # the phase of an eigenvector is arbitrary
        c = hermitian(matrix(3, 3, dtype=taeda.complex128)).requires_grad_()
        with pytest.raises(RuntimeError, match="phi"):
            (function(c).eigenvectors * (1 + 2j)).real.sum().backward()
