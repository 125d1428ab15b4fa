"""Sparse tensors from indices and values, and from dense tensors."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.sparse import _compressed, _structure
from taeda.sparse._tensor import SparseTensor, compressed, coo, like, values_at

_ops = _C.ops


def finish(result: SparseTensor, requires_grad: bool) -> SparseTensor:
    return result.detach().requires_grad_() if requires_grad else result


def sparse_zeros(
    name: str,
    layout: Any,
    *,
    self: Tensor | None = None,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    memory_format: Any = None,
    requires_grad: bool = False,
) -> SparseTensor:
    """Return what a factory such as `zeros` gives for a sparse layout: no elements at all.

    Args:
        name: of the factory, for messages.
        layout: ``sparse_coo``, ``sparse_csr`` or ``sparse_csc``.
        self: the tensor whose dtype, device and perhaps size the result has.
        size, dtype, device, requires_grad: as the factory takes them.
    """
    if memory_format not in (None, _C.preserve_format):
        raise RuntimeError(f"{name}(): memory format option is only supported by strided tensors")
    if self is not None:
        size = self.shape if size is None else size
        dtype, device = dtype or self.dtype, device or self.device
    sizes = tuple(size)
    values = checked_values(_ops.zeros((0,), dtype=dtype, device=device), dtype, device)
    if layout is _C.sparse_coo:
        i = _ops.zeros((len(sizes), 0), dtype=taeda.int64, device=values.device)
        _structure.check_coo(i, values, sizes)
        return finish(coo(i, values, sizes, True), requires_grad)
    if layout not in (_C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(
            f"{name}(): expected a compressed layout without blocks, got "
            f"{_structure.name_of(layout)}"
        )
    if len(sizes) < 2:
        raise RuntimeError(
            f"{name}(): a tensor of layout {_structure.name_of(layout)} has 2 dimensions or more, "
            f"got size {list(sizes)}"
        )
    *batch, rows, columns = sizes
    lines = rows if layout is _C.sparse_csr else columns
    starts = _ops.zeros((*batch, lines + 1), dtype=taeda.int64, device=values.device)
    places = _ops.zeros((*batch, 0), dtype=taeda.int64, device=values.device)
    return finish(
        compressed(layout, starts, places, values.new_zeros((*batch, 0)), sizes), requires_grad
    )


def _indices(data: Any) -> Tensor:
    indices = _C.as_tensor(data)
    return indices if indices.dtype == taeda.int64 else indices.detach().to(taeda.int64)


def checked_values(data: Any, dtype: Any, device: Any) -> Tensor:
    values = _C.as_tensor(data, dtype=dtype, device=device)
    if values.is_meta:
        raise NotImplementedError("there are no sparse tensors on the meta device")
    return values


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Return a sparse tensor of layout ``taeda.sparse_coo``.

    Args:
        indices: of the elements, (sparse_dim, nnz); the size alone gives a tensor of zeros.
        values: of the elements, (nnz, ...); equal indices add up.
        size: by default the smallest that holds all indices.
        dtype: of the values; by default what they have.
        device: "cpu".
        requires_grad: make it a leaf whose gradient is recorded.
        check_invariants: chooses nothing: indices are always checked.
        is_coalesced: the indices are sorted and differ from each other, which is checked.

    Raises:
        RuntimeError: an index is out of bounds, or the shapes do not fit each other.

    >>> taeda.sparse_coo_tensor([[0, 1]], [2.0, 3.0], (3,)).to_dense()
    tensor([2., 3., 0.])
    """
    if values is None:
        sizes = tuple(indices if size is None else size)
        i = _ops.zeros((len(sizes), 0), dtype=taeda.int64, device=device)
        v = _ops.zeros((0,), dtype=dtype, device=device)
        _structure.check_coo(i, v, sizes)
        return finish(coo(i, v, sizes, True), requires_grad)
    v = checked_values(values, dtype, device)
    i = _indices(indices).to(v.device)
    sizes = _structure.infer_size(i, v) if size is None else tuple(size)
    _structure.check_coo(i, v, sizes)
    if is_coalesced and not _is_sorted(i, sizes):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        )
    return finish(coo(i, v, sizes, bool(is_coalesced)), requires_grad)


def _is_sorted(indices: Tensor, size: tuple[int, ...]) -> bool:
    order = _structure.order_of(indices, size[: indices.size(0)])
    unmoved = _ops.equal(order, _ops.arange(order.numel(), device=order.device))
    return unmoved and bool(_structure.is_first(indices).all())


# ---- methods of dense tensors -------------------------------------------------------------------


def to_sparse(
    self: Any,
    sparse_dim: Any = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """Return the elements that are not zero as a sparse tensor; see ``Tensor.to_sparse``."""
    if sparse_dim is not None and (layout, blocksize, dense_dim) != (None, None, None):
        raise TypeError("to_sparse() takes sparse_dim, or layout, blocksize and dense_dim")
    dense = dense_dim or 0
    if layout in _structure.FORMS:
        sizes = _compressed.check_request("to_sparse()", self, layout, blocksize, dense)
        return _compressed.from_dense(self, layout, sizes, dense)
    if blocksize is not None:
        raise RuntimeError(
            f"to_sparse(): conversion from Strided to {_structure.name_of(layout)} with blocksize "
            "argument given is not supported"
        )
    if layout is _C.strided:
        return self
    sparse_dim = self.dim() - dense if sparse_dim is None else sparse_dim
    if not 0 <= sparse_dim <= self.dim() or (sparse_dim == 0 and self.dim()):
        raise RuntimeError(
            f"to_sparse(): sparse_dim argument must be in [1,{self.dim()}] range, but "
            f"{sparse_dim} is given"
        )
    nonzero = self.detach() != 0
    if sparse_dim < self.dim():
        nonzero = nonzero.flatten(sparse_dim).any(-1)
    indices = nonzero.nonzero().t().contiguous()
    values = self[tuple(indices)] if sparse_dim else self.reshape(1)[: indices.size(1)]
    return coo(indices, values, tuple(self.shape), True)


def sparse_mask(self: Any, mask: Any) -> SparseTensor:
    """Return the elements at the positions of a sparse tensor.

    Args:
        mask: of the same shape; its values are not looked at.
    """
    if not isinstance(mask, SparseTensor):
        raise RuntimeError("sparse_mask(): mask must be a sparse tensor, got a strided one")
    if mask.shape != self.shape:
        raise RuntimeError(
            f"sparse_mask(): expected mask of shape {list(self.shape)}, got {list(mask.shape)}"
        )
    return like(mask, values_at(self, mask))
