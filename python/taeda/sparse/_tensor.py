"""The class of sparse tensors.

A SparseTensor has the shape and dtype of what it stands for, but no elements that a kernel could
read: its memory is a single zero. The values are a dense tensor beside it, and carry the history.
So every op that is called with a SparseTensor, from Python or from C++, comes to
``__torch_function__``, and derivatives are those of the dense ops that the functions are made of.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda._tensor.unreadable import Unreadable
from taeda.sparse import _structure
from taeda.sparse._structure import FORMS, name_of

_ops = _C.ops

# By the name of the op; filled by _functions, _shapes and _changes.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def answers(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function the answer to ops; ValueError where there is no op of a name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if not hasattr(_C.ops, name):
                raise ValueError(f"answers(): there is no operation {name!r}")
            FUNCTIONS[name] = function
        return function

    return register


class SparseTensor(Unreadable):
    """A tensor of layout ``taeda.sparse_coo``, or compressed: ``taeda.sparse_csr`` and its like.

    It is made by ``taeda.sparse_coo_tensor``, ``taeda.sparse_compressed_tensor`` and
    ``Tensor.to_sparse``; where PyTorch has one Tensor class, this is a subclass.
    """

    _layout: Any
    _indices_: Tensor  # of layout sparse_coo: (sparse_dim, nnz)
    _starts: Tensor  # of a compressed one: (batch, rows or columns + 1)
    _places: Tensor  # and (batch, nnz)
    _values_: Tensor
    _coalesced: bool
    _rows: Any  # what `compressed_rows` has found

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", str(func))
        handler = FUNCTIONS.get(name)
        if handler is None:
            raise NotImplementedError(
                f"{name}() is not implemented for sparse tensors; to_dense() gives a dense one"
            )
        return handler(*args, **(kwargs or {}))

    # ---- properties ----

    @property
    def layout(self) -> Any:
        """``taeda.sparse_coo``, or one of the compressed layouts."""
        return self._layout

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is ``taeda.sparse_coo``."""
        return self._layout is _C.sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is ``taeda.sparse_csr``."""
        return self._layout is _C.sparse_csr

    def _need_coo(self, what: str) -> None:
        if not self.is_sparse:
            raise RuntimeError(
                f"{what} expected sparse coordinate tensor layout but got {name_of(self._layout)}"
            )

    def _compressed_part(self, name: str) -> Tensor:
        """Return a tensor of indices by the name it has in this layout."""
        form = FORMS.get(self._layout)
        if form is None or name not in (form.starts, form.places):
            kind = "row" if name in ("crow_indices", "col_indices") else "column"
            raise RuntimeError(
                f"{name} expected sparse {kind} compressed tensor layout but got "
                f"{name_of(self._layout)}"
            )
        return self._starts if name == form.starts else self._places

    def _batch_dim(self) -> int:
        return 0 if self.is_sparse else self._starts.dim() - 1

    def sparse_dim(self) -> int:
        """Return how many dimensions are given by indices, those of a batch not counted."""
        return self._indices_.size(0) if self.is_sparse else 2

    def dense_dim(self) -> int:
        """Return how many dimensions each value has."""
        return self.dim() - self._batch_dim() - self.sparse_dim()

    def _nnz(self) -> int:
        return self._values_.size(self._batch_dim())

    def is_coalesced(self) -> bool:
        """Whether the elements are known to be sorted and unique."""
        self._need_coo("is_coalesced")
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Declare whether the elements are sorted and unique. Not checked.

        What is said of elements that are not makes later results wrong.
        """
        self._need_coo("_coalesced_")
        self._coalesced, self._rows = bool(coalesced), None
        return self

    def indices(self) -> Tensor:
        """Return the indices, (sparse_dim, nnz), of a coalesced tensor."""
        self._need_coo("indices")
        if not self._coalesced:
            raise RuntimeError(
                "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
            )
        return self._indices_

    def values(self) -> Tensor:
        """Return the values, (nnz, ...), of a coalesced or compressed tensor; with history."""
        if self.is_sparse and not self._coalesced:
            raise RuntimeError(
                "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
            )
        return self._values_

    def _indices(self) -> Tensor:
        self._need_coo("_indices")
        return self._indices_

    def _values(self) -> Tensor:
        self._need_coo("_values")
        return self._values_

    def crow_indices(self) -> Tensor:
        """Return where each row (of blocks) begins: (batch, rows + 1), of CSR or BSR."""
        return self._compressed_part("crow_indices")

    def col_indices(self) -> Tensor:
        """Return the column of each element or block: (batch, nnz), of CSR or BSR."""
        return self._compressed_part("col_indices")

    def ccol_indices(self) -> Tensor:
        """Return where each column (of blocks) begins: (batch, columns + 1), of CSC or BSC."""
        return self._compressed_part("ccol_indices")

    def row_indices(self) -> Tensor:
        """Return the row of each element or block: (batch, nnz), of CSC or BSC."""
        return self._compressed_part("row_indices")

    # ---- conversions ----

    def coalesce(self) -> SparseTensor:
        """Return the tensor with elements sorted by index, and equal ones added up."""
        self._need_coo("coalesce")
        if self._coalesced:
            return self
        size = tuple(self.shape)
        order = _structure.order_of(self._indices_, size[: self.sparse_dim()])
        indices, values = self._indices_[:, order], self._values_[order]
        first = _structure.is_first(indices)
        starts = first.nonzero().squeeze(1)
        if starts.numel() < order.numel():
            indices = indices[:, starts]
            values = add_up(values, first.cumsum(0) - 1, starts.numel())
        return coo(indices, values, size, True)

    def to_dense(self, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
        """Return a dense tensor.

        Args:
            dtype: must be ``None``: convert before or after.
            masked_grad: chooses nothing; the gradient has the elements of the sparse tensor.
        """
        if dtype is not None:
            raise RuntimeError("to_dense(): dtype argument is not supported; use to() before")
        indices, values = self._elements()
        if not len(indices):
            return values.sum(0).to(self.dtype)
        kind = taeda.int64 if self.dtype == taeda.bool else self.dtype
        result = _ops.zeros(tuple(self.shape), dtype=kind, device=values.device)
        return result.index_put(indices, values.to(kind), accumulate=True).to(self.dtype)

    def _elements(self) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return the index of each element, dimension by dimension, and the values."""
        if self.is_sparse:
            return tuple(self._indices_), self._values_
        from taeda.sparse._compressed import elements  # which makes tensors of this class

        return elements(self)

    def to_sparse_coo(self) -> SparseTensor:
        """Return a tensor of layout ``taeda.sparse_coo``."""
        if self.is_sparse:
            return self
        parts, values = self._elements()
        indices = _ops.stack(parts)
        unique = _structure.is_first(indices)
        rising = _ops.zeros(unique.shape, dtype=taeda.bool, device=unique.device)[1:]
        for row in indices.flip(0):
            rising = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & rising)
        return coo(indices, values, tuple(self.shape), bool((rising & unique[1:]).all()))

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseTensor:
        """Return the tensor in layout ``taeda.sparse_csr``.

        Args:
            dense_dim: must be ``None``, as of a sparse tensor it is known.
        """
        return self._to_compressed("to_sparse_csr", _C.sparse_csr, None, dense_dim)

    def to_sparse_csc(self, dense_dim: int | None = None) -> SparseTensor:
        """Return the tensor in layout ``taeda.sparse_csc``; as ``to_sparse_csr``."""
        return self._to_compressed("to_sparse_csc", _C.sparse_csc, None, dense_dim)

    def to_sparse_bsr(self, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
        """Return the tensor in layout ``taeda.sparse_bsr``.

        Args:
            blocksize: rows and columns of a block, which divide the matrix's.
            dense_dim: must be ``None``.
        """
        return self._to_compressed("to_sparse_bsr", _C.sparse_bsr, blocksize, dense_dim)

    def to_sparse_bsc(self, blocksize: Any, dense_dim: int | None = None) -> SparseTensor:
        """Return the tensor in layout ``taeda.sparse_bsc``; as ``to_sparse_bsr``."""
        return self._to_compressed("to_sparse_bsc", _C.sparse_bsc, blocksize, dense_dim)

    def _to_compressed(self, who: str, layout: Any, block: Any, dense_dim: Any) -> SparseTensor:
        from taeda.sparse import _compressed  # which makes tensors of this class

        if dense_dim is not None:
            raise RuntimeError(
                f"{who}(): a sparse tensor has its dense_dim, which must not be given"
            )
        if self.sparse_dim() != 2:
            raise RuntimeError(
                f"{who}(): conversion of tensors with sparse_dim() != 2 is not supported, got "
                f"{self.sparse_dim()}"
            )
        sizes = _compressed.check_request(f"{who}()", self, layout, block, self.dense_dim())
        return _compressed.convert(self, layout, sizes)

    def to_sparse(
        self,
        sparse_dim: Any = None,
        *,
        layout: Any = None,
        blocksize: Any = None,
        dense_dim: int | None = None,
    ) -> Any:
        """Return the tensor in another layout, by default ``taeda.sparse_coo``.

        Args:
            sparse_dim: must be what it is.
            layout: ``taeda.sparse_coo``, a compressed layout, or ``taeda.strided``.
            blocksize: rows and columns of a block, for ``sparse_bsr`` and ``sparse_bsc``.
            dense_dim: must be ``None``.
        """
        if sparse_dim is not None and sparse_dim != self.sparse_dim():
            raise RuntimeError(
                f"to_sparse(): sparse_dim must be {self.sparse_dim()}, which it is, got "
                f"{sparse_dim}"
            )
        if layout in (None, _C.sparse_coo, _C.strided):
            if blocksize is not None or dense_dim is not None:
                raise RuntimeError("to_sparse(): blocksize and dense_dim do not go with the layout")
            return self.to_dense() if layout is _C.strided else self.to_sparse_coo()
        return self._to_compressed("to_sparse", layout, blocksize, dense_dim)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return the tensor with another dtype or device: itself where nothing changes."""
        if args and isinstance(args[0], SparseTensor):
            args = (args[0].dtype, *args[1:])
        values = self._values_.to(*args, **kwargs)
        if values.is_meta:
            raise NotImplementedError("to(): there are no sparse tensors on the meta device")
        return self if values is self._values_ else like(self, values)

    def cpu(self, memory_format: Any = None) -> SparseTensor:
        """Return the tensor in the memory of the CPU: itself where it is there."""
        return self.to("cpu")

    # ---- gradients: those of the values ----

    @property
    def grad(self) -> Any:
        """The gradient that backward() has gathered, sparse, or None."""
        grad = self._values_.grad
        return None if grad is None else like(self, grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and (
            not isinstance(value, SparseTensor) or value._values_.shape != self._values_.shape
        ):
            raise RuntimeError("the gradient of a sparse tensor must be None or have its elements")
        self._values_.grad = None if value is None else value._values_

    def detach(self) -> SparseTensor:
        """Return a tensor of the same elements without history."""
        return like(self, self._values_.detach())

    @property
    def data(self) -> Any:
        """The same elements without history."""
        return self.detach()

    @data.setter
    def data(self, value: Any) -> None:
        raise NotImplementedError("data of a sparse tensor cannot be assigned; see copy_()")

    # ---- Python's protocols ----

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from taeda.sparse._repr import text

        return text(self)

    def __getitem__(self, index: Any) -> Any:
        result: Any = self
        for i in index if isinstance(index, tuple) else (index,):
            if not isinstance(i, int) or isinstance(i, bool):
                raise NotImplementedError(
                    f"sparse tensors are indexed by integers, not {type(i).__name__}; "
                    "index_select() chooses several slices"
                )
            result = result.select(0, i) if isinstance(result, SparseTensor) else result[i]
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError("elements of a sparse tensor cannot be assigned")

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __contains__(self, element: Any) -> bool:
        raise NotImplementedError("'in' is not implemented for sparse tensors")

    def item(self) -> Any:
        """Return the only element as a number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self.to_dense().item()

    def __index__(self) -> int:
        return self.to_dense().__index__()

    def numpy(self, *, force: bool = False) -> Any:
        """Raise TypeError: NumPy has no sparse arrays."""
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __deepcopy__(self, memo: dict[Any, Any]) -> SparseTensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment. Use tensor.detach().clone() instead."
            )
        if id(self) not in memo:
            memo[id(self)] = _rebuild(*copy.deepcopy(_state(self), memo))
        return memo[id(self)]

    def __copy__(self) -> SparseTensor:
        return like(self, self._values_.detach()).requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, _state(self)


def _no_memory(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}(): a sparse tensor has no memory of its elements")

    refuse.__name__ = name
    refuse.__doc__ = "Raise NotImplementedError: sparse tensors have no dense storage."
    return refuse


for _name in [
    "__dlpack__", "__dlpack_device__", "as_subclass", "backward", "data_ptr", "pin_memory",
    "register_hook", "register_post_accumulate_grad_hook", "resize_", "set_", "share_memory_",
    "storage", "storage_offset", "stride", "tolist", "untyped_storage",
]:  # fmt: skip
    setattr(SparseTensor, _name, _no_memory(_name))


# ---- making them, without checks -----------------------------------------------------------------


def _make(size: tuple[int, ...], values: Tensor) -> Any:
    placeholder = _ops.zeros((), dtype=values.dtype, device=values.device).expand(size)
    return Tensor._make_subclass(SparseTensor, placeholder)


def coo(
    indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool = False
) -> SparseTensor:
    """Make a tensor of layout sparse_coo of parts that fit together."""
    result = _make(size, values)
    result._layout, result._indices_, result._values_ = _C.sparse_coo, indices, values
    result._coalesced, result._rows = coalesced, None
    return result


def compressed(
    layout: Any, starts: Tensor, places: Tensor, values: Tensor, size: tuple[int, ...]
) -> SparseTensor:
    """Make a tensor of a compressed layout of parts that fit together."""
    result = _make(size, values)
    result._layout, result._starts, result._places = layout, starts, places
    result._values_, result._coalesced, result._rows = values, False, None
    return result


def like(x: SparseTensor, values: Tensor) -> SparseTensor:
    """Return other values at the positions of ``x``, on the values' device."""
    size, place = tuple(x.shape), values.device
    if x.is_sparse:
        result = coo(x._indices_.to(place), values, size, x._coalesced)
    else:
        starts, places = x._starts.to(place), x._places.to(place)
        result = compressed(x._layout, starts, places, values, size)
    result._rows = x._rows if place == x.device else None
    return result


def _state(x: SparseTensor) -> tuple[Any, ...]:
    positions = (x._indices_,) if x.is_sparse else (x._starts, x._places)
    kept = (positions, x._values_.detach(), tuple(x.shape), x._coalesced, x.requires_grad)
    return kept if x.is_sparse else (*kept, x._layout)


def _rebuild(
    positions: tuple[Tensor, ...],
    values: Tensor,
    size: Any,
    coalesced: bool,
    requires_grad: bool,
    layout: Any = _C.sparse_csr,
) -> SparseTensor:
    """Rebuild a tensor from the result of ``__reduce_ex__``."""
    from taeda.sparse import _make, _make_compressed  # which make tensors of this class

    if len(positions) == 1:
        result = _make.sparse_coo_tensor(positions[0], values, size, is_coalesced=coalesced)
    else:
        make = _make_compressed.sparse_compressed_tensor
        result = make(positions[0], positions[1], values, size, layout=layout)
    return result.requires_grad_() if requires_grad else result


def add_up(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Sum the values with the same index: (count, ...); of bools, whether any is true."""
    kind = taeda.int64 if values.dtype == taeda.bool else values.dtype
    sums = _ops.zeros((count, *values.shape[1:]), dtype=kind, device=values.device)
    return sums.index_add(0, index, values.to(kind)).to(values.dtype)


def need_matrix(what: str, x: Tensor, dense_dim: int | None = None) -> None:
    """Raise unless ``x`` is a matrix without dense dimensions."""
    dense = x.dense_dim() if isinstance(x, SparseTensor) else 0
    if x.dim() != 2 or dense or dense_dim:
        raise NotImplementedError(
            f"{what}(): only matrices without dense dimensions are supported, got shape "
            f"{list(x.shape)} with {dense_dim or dense} dense dimensions"
        )


def values_at(dense: Tensor, x: SparseTensor) -> Tensor:
    """Return what a dense tensor of the same shape has where ``x`` has values."""
    positions, _ = x._elements()
    if not positions:
        return dense.expand(x._values_.shape)
    return dense[positions].reshape(x._values_.shape)
