"""A few eigenvalues of a large symmetric matrix, using only products with it.

Knyazev, "Toward the optimal preconditioned eigensolver: locally optimal block preconditioned
conjugate gradient method", 2001 (the method "basic"), and Duersch, Shao, Yang and Gu, "A robust and
efficient implementation of LOBPCG", 2018 (the method "ortho"), with the orthogonalisation of
Stathopoulos and Wu, 2002.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _C, linalg
from taeda._type_info import finfo
from taeda.autograd.function import Function

ops = _C.ops

__all__ = ["lobpcg"]

_IPARAMS, _FPARAMS, _BPARAMS = (
    {"ortho_i_max": 3, "ortho_j_max": 3},
    {"ortho_tol": None, "ortho_tol_drop": None, "ortho_tol_replace": None},
    {"ortho_use_drop": False},
)


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[LOBPCG], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Any, Any]:
    """Return the ``k`` largest (or smallest) eigenvalues of ``A v = e B v`` and their vectors.

    Args:
        A: symmetric matrices of shape (*, m, m), float32 or float64, dense or sparse.
        k: how many; by default as many as ``X`` has columns, or 1. ``m`` must be at least 3 k.
        B: symmetric positive definite matrices of shape (*, m, m); the identity by default.
        X: where to begin, of shape (*, m, n); random by default.
        n: how many vectors to iterate on where ``X`` is not given; ``k`` by default.
        iK: a preconditioner, of shape (*, m, m), that resembles the inverse of ``A``.
        niter: the most iterations (1000); negative for as many as it takes.
        tol: the relative residual at which a pair has converged; the square root of the dtype's
            epsilon by default.
        largest: True (default) for the largest eigenvalues, in descending order; False for the
            smallest, in ascending order.
        method: "ortho" (default) keeps the search directions orthonormal, "basic" does not.
        tracker: called before and between iterations with the solver, whose `ivars`, `fvars` and
            `tvars` hold its state; it may set ``bvars["force_stop"]``.
        ortho_iparams: "ortho_i_max" and "ortho_j_max", rounds of orthogonalisation (3).
        ortho_fparams: "ortho_tol", "ortho_tol_drop" and "ortho_tol_replace" (epsilon).
        ortho_bparams: "ortho_use_drop", whether directions that depend on others are left out.

    Returns:
        the eigenvalues (*, k) and the eigenvectors (*, m, k), orthonormal with respect to ``B``.
        Derivatives by ``A`` exist where ``B`` is None and the eigenvalues are distinct.

    Raises:
        ValueError: ``m`` is smaller than 3 k, ``method`` or a parameter is unknown, or a derivative
            is asked for with ``B``.
        RuntimeError: ``A`` is neither float32 nor float64.
        AssertionError: ``A`` is not square.

    >>> A = taeda.diag(taeda.arange(1.0, 11.0))
    >>> e, v = taeda.lobpcg(A, k=2)
    >>> taeda.allclose(e, taeda.tensor([10.0, 9.0]), atol=1e-3)
    True
    """
    m = A.shape[-1]
    assert A.dim() >= 2 and A.shape[-2] == m, f"lobpcg(): A must be square, got {list(A.shape)}"
    if A.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"lobpcg(): A must be float32 or float64, got {A.dtype}")
    if k is None:
        k = 1 if X is None else X.shape[-1]
    n = X.shape[-1] if X is not None else k if n is None else n
    if not 0 < k <= n:
        raise ValueError(f"lobpcg(): k must be positive and at most n = {n}, got {k}")
    if m < 3 * n:
        raise ValueError(
            f"lobpcg(): the number of rows of A ({m}) must be at least 3 times the number of "
            f"vectors ({n})"
        )
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg(): method must be 'basic' or 'ortho', got {method!r}")
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    eps = finfo(A.dtype).eps
    fparams = {"tol": eps**0.5 if tol is None else tol}
    bparams = {"largest": largest is not False}
    iparams |= _chosen("ortho_iparams", ortho_iparams, _IPARAMS)
    fparams |= {n: eps if v is None else v for n, v in
                _chosen("ortho_fparams", ortho_fparams, _FPARAMS).items()}  # fmt: skip
    bparams |= _chosen("ortho_bparams", ortho_bparams, _BPARAMS)

    def solve(a: Any) -> tuple[Any, Any]:
        return _each_matrix(a, B, X, iK, iparams, fparams, bparams, method or "ortho", tracker)

    if not (_C.is_grad_enabled() and (A.requires_grad or (B is not None and B.requires_grad))):
        return solve(A.detach())
    if B is not None:
        raise ValueError("lobpcg(): there are no derivatives where B is given")
    dense = A.to_dense() if A.layout != _C.strided else A
    e, v = _Lobpcg.apply(dense, lambda a: solve(A.detach() if a.dim() == 2 else a))
    return e, v


def _chosen(what: str, given: dict[str, Any] | None, known: dict[str, Any]) -> dict[str, Any]:
    unknown = set(given or {}) - set(known)
    if unknown:
        raise ValueError(f"lobpcg(): {what} has no {sorted(unknown)}; it has {sorted(known)}")
    return {**known, **(given or {})}


def _each_matrix(
    A: Any,
    B: Any,
    X: Any,
    iK: Any,
    iparams: Any,
    fparams: Any,
    bparams: Any,
    method: str,
    tracker: Any,
) -> tuple[Any, Any]:
    """The solver's results for one matrix, or for each of a batch."""
    n, k = iparams["n"], iparams["k"]
    batch = A.shape[:-2]
    if X is None:
        X = ops.randn((*batch, A.shape[-1], n), dtype=A.dtype, device=A.device)
    if not batch:
        worker = LOBPCG(A, B, X, iK, iparams, fparams, bparams, method, tracker)
        worker.run()
        return worker.E[:k], worker.X[:, :k]

    def matrices(t: Any) -> list[Any]:
        if t is None:
            return [None] * A.shape[:-2].numel()
        return list(t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]))

    found = [
        _each_matrix(*each, iparams, fparams, bparams, method, tracker)
        for each in zip(matrices(A), matrices(B), matrices(X), matrices(iK), strict=True)
    ]
    e, v = ops.stack([f[0] for f in found]), ops.stack([f[1] for f in found])
    return e.reshape(*batch, k), v.reshape(*batch, A.shape[-1], k)


class LOBPCG:
    """The iteration on one matrix. A tracker sees it, and may set ``bvars["force_stop"]``."""

    def __init__(
        self,
        A: Any,
        B: Any,
        X: Any,
        iK: Any,
        iparams: Any,
        fparams: Any,
        bparams: Any,
        method: str,
        tracker: Any,
    ) -> None:
        self.A, self.B, self.X, self.iK = A, B, X.detach(), iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.P: Any = X[:, :0]  # the directions of the last step
        self.E: Any = None
        self.R: Any = None
        self.ivars = {"istep": 0, "converged_count": 0, "iterations_left": iparams["niter"]}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Any] = {}

    def times_b(self, x: Any) -> Any:
        """B @ x."""
        return x if self.B is None else self.B @ x

    def run(self) -> None:
        """Iterate until enough pairs have converged."""
        self.X = self.orthogonalised(self.X, self.X[:, :0])
        if self.X.shape[1] < self.iparams["n"]:
            raise ValueError("lobpcg(): the columns of X are linearly dependent")
        self.X = self.X @ self.chosen_vectors(self.X.mT @ (self.A @ self.X))
        while True:
            self.update_residual()
            if self.tracker is not None:
                self.tracker(self)
            if self.stop_iteration() or not self.step():
                return
            self.ivars["istep"] += 1
            self.ivars["iterations_left"] -= 1

    def stop_iteration(self) -> bool:
        """Whether to stop."""
        return (
            self.bvars.get("force_stop", False)
            or self.ivars["iterations_left"] == 0
            or self.ivars["converged_count"] >= self.iparams["k"]
        )

    def update_residual(self) -> None:
        """E, R = A X - B X E, the relative sizes of R's columns, and how many have converged."""
        AX, BX = self.A @ self.X, self.times_b(self.X)
        self.E = (self.X * AX).sum(0) / (self.X * BX).sum(0)
        self.R = AX - BX * self.E
        sizes = linalg.vector_norm(self.X, dim=0)
        norms = {"X_norm": linalg.vector_norm(self.X).item()}
        # Lower bounds of the norms of A and B, from A X and B X.
        norms["A_norm"] = (linalg.vector_norm(AX, dim=0) / sizes).max().item()
        norms["B_norm"] = (linalg.vector_norm(BX, dim=0) / sizes).max().item()
        self.fvars |= norms
        scale = (norms["A_norm"] + self.E.abs() * norms["B_norm"]) * sizes
        error = linalg.vector_norm(self.R, dim=0) / scale.clamp_min(finfo(self.X.dtype).tiny)
        self.tvars["rerr"] = error
        small = (error < self.fparams["tol"]).tolist()
        # Only leading ones: the others still change.
        self.ivars["converged_count"] = [*small, False].index(False)

    def step(self) -> bool:
        """One iteration. False where there is no direction left to search in."""
        done, n = self.ivars["converged_count"], self.iparams["n"]
        W = self.R[:, done:]
        more = W if self.iK is None else self.iK @ W
        more = ops.cat([more, self.P], 1)
        if self.method == "basic":
            S, Z = self.ritz_basic(more)
        else:
            S = ops.cat([self.X, self.orthogonalised(more, self.X)], 1)
            Z = self.chosen_vectors(S.mT @ (self.A @ S))
        if S.shape[1] == n:
            return False
        self.P = S[:, n:] @ Z[n:, done:]
        self.X = S @ Z
        return True

    def chosen_vectors(self, projected: Any) -> Any:
        """The eigenvectors of a projected matrix that belong to the wanted end of the spectrum."""
        vectors = linalg.eigh((projected + projected.mT) / 2).eigenvectors
        if self.bparams["largest"]:
            vectors = vectors.flip(1)
        return vectors[:, : self.iparams["n"]]

    def ritz_basic(self, more: Any) -> tuple[Any, Any]:
        """The search space as it is, and the coefficients of the best vectors in it."""
        for S in (
            ops.cat([self.X, more], 1),
            ops.cat([self.X, more[:, : -self.P.shape[1] or None]], 1),
        ):
            gram = S.mT @ self.times_b(S)
            scale = gram.diagonal().clamp_min(finfo(S.dtype).tiny).rsqrt()
            factor, info = linalg.cholesky_ex(gram * scale * scale[:, None])
            if info.item() == 0 and factor.diagonal().min() > finfo(S.dtype).eps ** 0.5:
                half = (S.mT @ (self.A @ S)) * scale * scale[:, None]
                half = linalg.solve_triangular(factor, half, upper=False)
                half = linalg.solve_triangular(factor, half.mT, upper=False)
                Z = linalg.solve_triangular(factor.mT, self.chosen_vectors(half), upper=True)
                return S, Z * scale[:, None]
        # Too close to linear dependence for that.
        S = ops.cat([self.X, self.orthogonalised(more, self.X)], 1)
        return S, self.chosen_vectors(S.mT @ (self.A @ S))

    def orthogonalised(self, U: Any, V: Any) -> Any:
        """A basis of U's columns, orthonormal in B and orthogonal to the orthonormal V."""
        tol, drop = self.fparams["ortho_tol"], self.bparams["ortho_use_drop"]
        for _ in range(self.iparams["ortho_i_max"]):
            for _ in range(self.iparams["ortho_j_max"]):
                if V.shape[1]:
                    U = U - V @ (self.times_b(V).mT @ U)
                U = self.normalised(U, drop)
                if U.shape[1] == 0:
                    return U
                gram = U.mT @ self.times_b(U)
                gram.diagonal().sub_(1)
                if linalg.vector_norm(gram) <= 10 * tol * U.shape[1]:
                    break
            if (
                not V.shape[1]
                or linalg.vector_norm(self.times_b(V).mT @ U) <= 10 * tol * V.shape[1]
            ):
                return U
            drop = True  # what is still not orthogonal is rounding
        return U

    def normalised(self, U: Any, drop: bool) -> Any:
        """One round towards orthonormal columns, by the eigenvectors of their Gram matrix."""
        gram = U.mT @ self.times_b(U)
        size = gram.diagonal()
        U, size = U[:, size > 0], size[size > 0]
        if U.shape[1] == 0:
            return U
        scale = size.rsqrt()
        U = U * scale
        values, vectors = linalg.eigh(U.mT @ self.times_b(U))
        if drop:
            large = values > self.fparams["ortho_tol_drop"] * values.max() * U.shape[0]
            values, vectors = values[large], vectors[:, large]
        else:
            values = values.clamp_min(self.fparams["ortho_tol_replace"] * values.max().item())
        return U @ (vectors * values.rsqrt())


class _Lobpcg(Function):
    """The solver's results as functions of a dense A."""

    @staticmethod
    def forward(ctx: Any, A: Any, solve: Any) -> tuple[Any, Any]:
        e, v = solve(A)
        ctx.save_for_backward(A, e, v)
        return e, v

    @staticmethod
    def backward(ctx: Any, ge: Any, gv: Any) -> tuple[Any, None]:
        """First order perturbation: dv_i is (e_i - A)^+ dA v_i.

        Within the span of the vectors that are known, it is written out; outside of it, one linear
        system for each vector, bordered by them, is solved.
        """
        A, e, v = ctx.saved_tensors
        g = v * ge.unsqueeze(-2)
        inside = v.mT @ gv
        gaps = e.unsqueeze(-2) - e.unsqueeze(-1)
        own = ops.eye(e.shape[-1], dtype=_C.bool, device=e.device)
        g = g + v @ (inside.masked_fill(own, 0) / gaps.masked_fill(own, 1))
        m, k = v.shape[-2:]
        shifted = e[..., None, None] * ops.eye(m, dtype=A.dtype) - A.unsqueeze(-3)
        border = v.unsqueeze(-3).expand(*shifted.shape[:-1], k)
        corner = border.new_zeros(*border.shape[:-2], k, k)
        system = ops.cat([ops.cat([shifted, border], -1), ops.cat([border.mT, corner], -1)], -2)
        outside = (gv - v @ inside).mT.unsqueeze(-1)
        right = ops.cat([outside, outside.new_zeros(*outside.shape[:-2], k, 1)], -2)
        g = g + linalg.solve(system, right)[..., :m, 0].mT
        g = g @ v.mT
        return (g + g.mT) / 2, None
