"""Linear algebra on CUDA as on the CPU. Factors that have several forms are compared by products."""

from __future__ import annotations

from tests.cuda.compare import GRADIENTS, compared

CODE = """
L = torch.linalg
TYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
def close(dtype): return 3e-3 if dtype in (torch.float32, torch.complex64) else 1e-9
def large(dtype, *shape):  # of two types alone: blocks and products between them
    return [shape] * (dtype in (torch.float32, torch.complex128))
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
    for n, sides, batch in [(1, 1, ()), (7, 5, (3,)), (32, 70, ()), (33, 1, (2, 2)), (90, 9, ())]:
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
    assert compared(libraries, GRADIENTS + CODE + code) == 4 * 5 * 2 * 2 * 3 + 2


def test_cholesky_factors(libraries):
    code = """
for dtype in TYPES:
    for shape in [(1, 1), (5, 8, 8), (32, 32), (0, 3, 3), *large(dtype, 70, 70)]:
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
    assert compared(libraries, GRADIENTS + CODE + code) == (4 * 4 + 2) * 2 * 3 + 3


def test_lu_factors_and_what_they_solve(libraries):
    code = """
for dtype in TYPES:
    for shape in [(1, 1), (5, 8, 8), (20, 9), (9, 20), (0, 3, 3), *large(dtype, 66, 70)]:
        a = torch.randn(shape, dtype=dtype)
        same(lambda a: L.lu_factor_ex(a), a, tol=close(dtype))
        same(lambda a: L.lu(a), a, tol=close(dtype))
    for shape in [(1, 1), (9, 6, 6), *large(dtype, 70, 70)]:
        a, b = well(*shape, dtype=dtype), torch.randn(*shape[:-1], 7, dtype=dtype)
        for left in (True, False):
            same(lambda a, b: L.solve(a, b if left else b.mT, left=left), a, b, tol=close(dtype))
            for adjoint in (False, True):
                same(lambda a, b: L.lu_solve(*L.lu_factor(a), b if left else b.mT, left=left, adjoint=adjoint), a, b, tol=close(dtype))
        same(lambda a: (L.inv(a), L.det(a), *L.slogdet(a)), a, tol=10 * close(dtype))
zero = torch.randn(2, 40, 40, dtype=torch.float64)
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
    count = 4 * (5 * 2 + 2 * 7) + 2 * (2 + 7) + 9
    assert compared(libraries, GRADIENTS + CODE + code) == count


def test_qr_factors_and_least_squares(libraries):
    code = """
for dtype in TYPES:
    for shape in [(1, 1), (5, 8, 8), (20, 9), (9, 20), (3, 1), *large(dtype, 40, 36)]:
        a = torch.randn(shape, dtype=dtype)
        for mode in ("reduced", "complete", "r"):
            same(lambda a: tuple(L.qr(a, mode)), a, tol=close(dtype))
        same(torch.geqrf, a, tol=close(dtype))
    for shape in [(9, 9), *large(dtype, 44, 36)]:
        a, tau = torch.geqrf(torch.randn(shape, dtype=dtype))
        c = torch.randn(*shape[:-2], shape[-2], 6, dtype=dtype)
        for left in (True, False):
            for adjoint in (True, False):
                same(lambda a, tau, c: torch.ormqr(a, tau, c if left else c.mT, left, adjoint), a, tau, c, tol=close(dtype))
        same(L.householder_product, a, tau, tol=close(dtype))
    for shape in [(20, 12), (12, 20), (3, 9, 9)]:
        a, b = torch.randn(shape, dtype=dtype), torch.randn(*shape[:-1], 4, dtype=dtype)
        same(lambda a, b: tuple(L.lstsq(a, b, driver="gels"))[:2], a, b, tol=10 * close(dtype))
same(lambda a: tuple(L.qr(a)), torch.zeros(4, 3))
gradients(lambda a: L.qr(a)[1], (2, 20, 12))
"""
    count = 4 * (5 * 4 + 5 + 3) + 2 * (4 + 5) + 2
    assert compared(libraries, GRADIENTS + CODE + code) == count


def test_eigenvalues_and_singular_values(libraries):
    """Vectors are determined up to a factor: what they make is compared, and their products."""
    code = """
def hermitian(a, upper):
    w, v = L.eigh(a, "U" if upper else "L")
    return w, (v * w.to(v.dtype).unsqueeze(-2)) @ v.mH, v.mH @ v
def singular(a, full):
    u, s, vh = L.svd(a, full_matrices=full)
    k = s.size(-1)
    return s, (u[..., :k] * s.to(u.dtype).unsqueeze(-2)) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH
for dtype in TYPES:
    for shape in [(1, 1), (2, 7, 7), *large(dtype, 12, 12)]:
        a = torch.randn(shape, dtype=dtype)
        for upper in (False, True):
            same(lambda a: hermitian(a, upper), a, tol=close(dtype))
        same(L.eigvalsh, a, tol=close(dtype))
    for shape in [(1, 1), (2, 5, 5), (7, 3), (3, 7), *large(dtype, 1, 9), *large(dtype, 9, 1), *large(dtype, 34, 12)]:
        a = torch.randn(shape, dtype=dtype)
        for full in (False, True):
            same(lambda a: singular(a, full), a, tol=close(dtype))
        same(L.svdvals, a, tol=close(dtype))
    low = torch.randn(9, 3, dtype=dtype) @ torch.randn(3, 7, dtype=dtype)
    same(lambda a: singular(a, True), low, tol=close(dtype))
    same(lambda a: (L.matrix_rank(a), L.pinv(a), L.cond(a[:3, :3]), L.matrix_norm(a, 2)), low, tol=10 * close(dtype))
    same(lambda a: hermitian(a, False), torch.diag(torch.tensor([3, 1, 2, 2, 0, -1])).to(dtype), tol=close(dtype))
    for extreme in (1e-25, 1e25):
        same(lambda a: tuple(t / extreme for t in (L.svdvals(a), L.eigvalsh(a + a.mH))), extreme * torch.randn(5, 5, dtype=dtype), tol=close(dtype))
many = torch.diag(torch.linspace(-1, 2, 35)) + 0.1 * torch.randn(1, 35, 35)  # by many blocks
same(lambda a: hermitian(a, False), many, tol=1e-3)
same(lambda a: singular(a[:, :, :34], True), many, tol=1e-3)
same(lambda a: singular(a, True), torch.zeros(4, 3))
same(lambda a: hermitian(a, True), torch.zeros(2, 3, 3))
gradients(lambda a: L.eigh(a + a.mT)[0], (2, 9, 9))
gradients(lambda a: L.svdvals(a), (2, 9, 6))
gradients(lambda a: (lambda u, s, v: u @ v)(*L.svd(a, full_matrices=False)), (6, 6))
"""
    count = 4 * (2 * 3 + 4 * 3 + 3 + 2) + 2 * (3 + 3 * 3) + 7
    assert compared(libraries, GRADIENTS + CODE + code) == count


def test_awkward_matrices(libraries):
    """Equal columns, zeros, and numbers that are not normal: what is left of them cannot be rotated."""
    code = """
x = torch.randn(2, 8, 8, dtype=torch.float64)
half = x.clone()
half[:, 4:] = 0
kinds = [torch.full_like(x, 3), half, x[:, :, :1] * x[:, :1], x * 1e-40, x * 10.0 ** torch.arange(-6, 2)]
for exact in kinds:
    for dtype in (torch.float32, torch.float64):
        a = exact.to(dtype).to("cuda")
        wide, eps = a.double(), torch.finfo(dtype).eps * 40
        near = eps * wide.norm() + 1e-43
        def close(got, want, most): assert ((got - want).abs() <= most).all()
        def orthogonal(q): close(q.mT @ q, torch.eye(8, dtype=q.dtype, device="cuda"), eps)
        u, s, vh = (t.double() for t in L.svd(a))
        q, r = (t.double() for t in L.qr(a))
        w, v = (t.double() for t in L.eigh(a + a.mT))
        close(u * s.unsqueeze(-2) @ vh, wide, near)
        close(q @ r, wide, near)
        close(v * w.unsqueeze(-2) @ v.mT, (a + a.mT).double(), 2 * near)
        for q in (u, vh, q, v): orthogonal(q)
        print("ok")
"""
    assert compared(libraries, CODE + code) == 10
