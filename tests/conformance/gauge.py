"""Makes results comparable that are known only up to a factor, as eigenvectors are, or that are sparse.

Each vector is turned so that its largest entry is positive. Written for tensors of either library.
"""

from __future__ import annotations

from typing import Any


def turns(vectors: Any) -> Any:
    """The factors, one for each column, that the vectors are to be multiplied by."""
    largest = vectors.gather(-2, vectors.abs().argmax(-2, keepdim=True))
    return (largest / largest.abs()).conj()


def eigen(result: Any) -> Any:
    values, vectors = result
    return (values, vectors * turns(vectors)) if vectors.numel() else (values, vectors)


def singular(result: Any, conjugate: bool = True) -> Any:
    u, s, v = result
    k = s.shape[-1]
    # What lies beyond the k-th vector only has to complete a basis.
    u, v = u[..., :k], v[..., :k, :] if conjugate else v[..., :k]
    if not u.numel() or not v.numel():
        return u, s, v
    if not (u != 0).any():  # the vectors were not asked for
        return u, s, v
    turn = turns(u)
    return u * turn, s, v * turn.conj().mT if conjugate else v * turn


# The database's own form of these calls PyTorch on its argument.
CONSTRAINED = {
    "cholesky_inverse": lambda f, x, upper=False: f(x.triu() if upper else x.tril(), upper=upper),
}
CANONICAL = {
    "linalg.eigh": eigen,
    "linalg.eig": eigen,
    "linalg.svd": singular,
    "svd": lambda result: singular(result, conjugate=False),
    "svd_lowrank": lambda result: singular(result, conjugate=False),
    "to_sparse": lambda result: result.to_dense(),
    "pca_lowrank": lambda result: singular(result, conjugate=False),
}
