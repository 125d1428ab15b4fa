"""Methods of dense tensors related to sparse ones; implemented in taeda.sparse."""

from __future__ import annotations

from typing import Any

from taeda import _C


def _only_sparse(name: str, layout: str) -> Any:
    def refuse(self: Any) -> Any:
        raise RuntimeError(f"{name} expected {layout} layout but got Strided")

    refuse.__doc__ = f"Raise RuntimeError: the tensor is not of a {layout} layout."
    return refuse


def _to_sparse(
    self: Any,
    sparse_dim: Any = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """Return the elements that are not zero as a sparse tensor.

    Args:
        sparse_dim: how many dimensions to give by indices, the rest stay dense; by default all.
            Not with the others.
        layout: ``taeda.sparse_coo`` (the default), ``sparse_csr``, ``sparse_csc``, ``sparse_bsr``
            or ``sparse_bsc``. Compressed layouts take the last two dimensions that are not dense,
            those in front are a batch of matrices with as many elements each.
        blocksize: rows and columns of a block, for ``sparse_bsr`` and ``sparse_bsc``.
        dense_dim: how many dimensions stay dense, by default none.
    """
    from taeda.sparse._make import to_sparse

    return to_sparse(self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def _to_sparse_coo(self: Any) -> Any:
    """Return the elements that are not zero in layout ``taeda.sparse_coo``."""
    return self.to_sparse()


def _to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """Return the elements that are not zero in layout ``taeda.sparse_csr``.

    Args:
        dense_dim: how many dimensions stay dense, by default none.
    """
    return self.to_sparse(layout=_C.sparse_csr, dense_dim=dense_dim)


def _to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """Return the elements that are not zero in layout ``taeda.sparse_csc``.

    Args:
        dense_dim: how many dimensions stay dense, by default none.
    """
    return self.to_sparse(layout=_C.sparse_csc, dense_dim=dense_dim)


def _to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Return the blocks that are not zero in layout ``taeda.sparse_bsr``.

    Args:
        blocksize: rows and columns of a block, which divide the matrix's.
        dense_dim: how many dimensions stay dense, by default none.
    """
    return self.to_sparse(layout=_C.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


def _to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """Return the blocks that are not zero in layout ``taeda.sparse_bsc``.

    Args:
        blocksize: rows and columns of a block, which divide the matrix's.
        dense_dim: how many dimensions stay dense, by default none.
    """
    return self.to_sparse(layout=_C.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


def _to_dense(self: Any, dtype: Any = None, *, masked_grad: Any = None) -> Any:
    """Return the tensor itself, or converted to ``dtype``; ``masked_grad`` is for sparse ones."""
    return self if dtype is None else self.to(dtype)


def _sparse_mask(self: Any, mask: Any) -> Any:
    """Return the elements at the stored positions of a sparse tensor of the same shape."""
    from taeda.sparse._make import sparse_mask

    return sparse_mask(self, mask)


def _sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Change the size of a tensor of layout ``taeda.sparse_coo`` in place.

    With elements, no dimension may shrink or change its kind, and new dense elements are zeros
    that follow all others.

    Args:
        size: the new one, of ``sparse_dim + dense_dim`` numbers.
        sparse_dim: how many of them belong to the indices.
        dense_dim: how many belong to the values.

    Raises:
        RuntimeError: the tensor has elements that have no place in the new size.
        NotImplementedError: it is of another layout.

    >>> x = taeda.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,))
    >>> x.sparse_resize_((5,), 1, 0).to_dense()
    tensor([1., 0., 2., 0., 0.])
    """
    from taeda.sparse._changes import sparse_resize

    return sparse_resize("sparse_resize_", self, size, sparse_dim, dense_dim)


def _sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Change the size of a tensor of layout ``taeda.sparse_coo`` in place and drop its elements.

    Args:
        size: the new one, of ``sparse_dim + dense_dim`` numbers.
        sparse_dim: how many of them belong to the indices.
        dense_dim: how many belong to the values.

    >>> x = taeda.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,))
    >>> x.sparse_resize_and_clear_((2, 2), 2, 0)._nnz(), x.shape
    (0, taeda.Size([2, 2]))
    """
    from taeda.sparse._changes import sparse_resize

    return sparse_resize("sparse_resize_and_clear_", self, size, sparse_dim, dense_dim)


def _sparse_dim(self: Any) -> int:
    """Return 0: no dimension is given by indices."""
    return 0


def _dense_dim(self: Any) -> int:
    """Return the number of dimensions."""
    return self.dim()


SPARSE_METHODS = {
    "to_sparse": _to_sparse,
    "to_sparse_coo": _to_sparse_coo,
    "to_sparse_csr": _to_sparse_csr,
    "to_sparse_csc": _to_sparse_csc,
    "to_sparse_bsr": _to_sparse_bsr,
    "to_sparse_bsc": _to_sparse_bsc,
    "to_dense": _to_dense,
    "sparse_mask": _sparse_mask,
    "sparse_resize_": _sparse_resize_,
    "sparse_resize_and_clear_": _sparse_resize_and_clear_,
    "sparse_dim": _sparse_dim,
    "dense_dim": _dense_dim,
    "values": _only_sparse("values", "sparse tensor"),
    "crow_indices": _only_sparse("crow_indices", "sparse row compressed tensor"),
    "col_indices": _only_sparse("col_indices", "sparse row compressed tensor"),
    "ccol_indices": _only_sparse("ccol_indices", "sparse column compressed tensor"),
    "row_indices": _only_sparse("row_indices", "sparse column compressed tensor"),
    **{
        name: _only_sparse(name, "sparse coordinate tensor")
        for name in ["coalesce", "is_coalesced", "indices", "_nnz", "_indices", "_values"]
    },
}
