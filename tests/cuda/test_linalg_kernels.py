"""Linear algebra on CUDA as on the CPU. Factors that have several forms are compared by products."""

from __future__ import annotations

from tests.cuda.compare import GRADIENTS, compared

CODE = """
L = torch.linalg
TYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
def close(dtype): return 3e-3 if dtype in (torch.float32, torch.complex64) else 1e-9
def well(*shape, dtype=torch.float64):  # of a moderate condition
    n = shape[-1]
    return torch.randn(shape, dtype=dtype) / n ** 0.5 + 2 * torch.eye(n, dtype=dtype)
def positive(*shape, dtype=torch.float64):
    a = torch.randn(shape, dtype=dtype)
    return a @ a.mH / shape[-1] + torch.eye(shape[-1], dtype=dtype)
"""


def test_triangular_systems(libraries):
    code = """
for dtype in TYPES:
    for n, sides, batch in [(1, 1, ()), (7, 5, (3,)), (32, 70, ()), (33, 1, (2,)), (100, 9, (2, 2)), (150, 40, ())]:
        t, b = well(*batch, n, n, dtype=dtype), torch.randn(*batch, n, sides, dtype=dtype)
        for upper in (False, True):
            for left in (False, True):
                for form in (lambda t: t, lambda t: t.mT.contiguous().mT, lambda t: t.mH):
                    how = dict(upper=upper, left=left)
                    same(lambda t, b: L.solve_triangular(form(t), b if left else b.mT, **how), t, b, tol=close(dtype))
t, b = 0.1 * torch.randn(50, 50), torch.randn(3, 50, 4)
same(lambda t, b: L.solve_triangular(t, b, upper=False, unitriangular=True), t, b, tol=1e-4)
gradients(lambda t, b: L.solve_triangular(t.tril() / 9 + 2 * torch.eye(40, device=t.device), b, upper=False), (40, 40), (40, 3))
"""
    assert compared(libraries, GRADIENTS + CODE + code) == 4 * 6 * 2 * 2 * 3 + 2


def test_cholesky_factors(libraries):
    code = """
for dtype in TYPES:
    for shape in [(1, 1), (5, 8, 8), (32, 32), (2, 45, 45), (130, 130), (0, 3, 3)]:
        for upper in (False, True):
            a = positive(*shape, dtype=dtype)
            same(lambda a: L.cholesky(a, upper=upper), a, tol=close(dtype))
            same(lambda a: torch.cholesky_inverse(L.cholesky(a, upper=upper), upper), a, tol=close(dtype))
            same(lambda a, b: torch.cholesky_solve(b, L.cholesky(a, upper=upper), upper), a, torch.randn(*shape[:-1], 3, dtype=dtype), tol=close(dtype))
bad = positive(3, 60, 60)
bad[1, 40, 40] = -1
same(lambda a: L.cholesky_ex(a).info, bad)
try:
    L.cholesky(bad.to("cuda"))
except L.LinAlgError as error:
    assert "Batch element 1" in str(error) and "order 41" in str(error), error
    print("ok")
gradients(lambda a: L.cholesky(a @ a.mT / 40 + torch.eye(40, device=a.device)), (2, 40, 40))
"""
    assert compared(libraries, GRADIENTS + CODE + code) == 4 * 6 * 2 * 3 + 3


def test_lu_factors_and_what_they_solve(libraries):
    code = """
for dtype in TYPES:
    for shape in [(1, 1), (5, 8, 8), (40, 20), (20, 40), (2, 70, 70), (100, 130), (0, 3, 3)]:
        a = torch.randn(shape, dtype=dtype)
        same(lambda a: L.lu_factor_ex(a), a, tol=close(dtype))
        same(lambda a: L.lu(a), a, tol=close(dtype))
    for shape in [(1, 1), (50, 6, 6), (40, 40), (2, 90, 90)]:
        a, b = well(*shape, dtype=dtype), torch.randn(*shape[:-1], 7, dtype=dtype)
        for left in (True, False):
            same(lambda a, b: L.solve(a, b if left else b.mT, left=left), a, b, tol=close(dtype))
            for adjoint in (False, True):
                same(lambda a, b: L.lu_solve(*L.lu_factor(a), b if left else b.mT, left=left, adjoint=adjoint), a, b, tol=close(dtype))
        same(lambda a: (L.inv(a), L.det(a), *L.slogdet(a)), a, tol=10 * close(dtype))
zero = torch.randn(2, 50, 50)
zero[1, :, 20] = 0
same(lambda a: (L.lu_factor_ex(a).info, L.inv_ex(a).info, L.det(a)), zero)
try:
    L.inv(zero.to("cuda"))
except L.LinAlgError as error:
    assert "Batch element 1" in str(error), error
    print("ok")
gradients(lambda a, b: L.solve(a / 9 + 3 * torch.eye(40, device=a.device), b), (2, 40, 40), (2, 40, 3))
gradients(lambda a: L.inv(a / 9 + 3 * torch.eye(20, device=a.device)), (20, 20))
gradients(lambda a: L.det(a / 9 + torch.eye(5, device=a.device)), (3, 5, 5))
gradients(lambda a: L.matrix_exp(a), (3, 7, 7))
gradients(lambda a: L.matrix_power(a / 4 + torch.eye(6, device=a.device), -3), (6, 6))
same(lambda a: torch.lu_unpack(*L.lu_factor(a)), torch.randn(3, 5, 7))
same(L.solve_ex, well(3, 9, 9), torch.randn(3, 9, dtype=torch.float64))
"""
    count = 4 * (7 * 2 + 4 * (2 * 3 + 1)) + 9
    assert compared(libraries, GRADIENTS + CODE + code) == count
