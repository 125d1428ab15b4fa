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
    """A tensor of layout ``taeda.sparse_coo`` or ``taeda.sparse_csr``.

    It is made by ``taeda.sparse_coo_tensor``, ``taeda.sparse_csr_tensor`` and
    ``Tensor.to_sparse``; where PyTorch has one Tensor class, this is a subclass.
    """

    _indices_: Tensor  # of layout sparse_coo: (sparse_dim, nnz)
    _crow: Tensor | None  # of layout sparse_csr: (rows + 1)
    _col: Tensor  # and (nnz)
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
        """``taeda.sparse_coo`` or ``taeda.sparse_csr``."""
        return _C.sparse_coo if self._crow is None else _C.sparse_csr

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is ``taeda.sparse_coo``."""
        return self._crow is None

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is ``taeda.sparse_csr``."""
        return self._crow is not None

    def _need_coo(self, what: str) -> None:
        if self._crow is not None:
            raise RuntimeError(f"{what} expected sparse coordinate tensor layout but got SparseCsr")

    def _need_csr(self, what: str) -> None:
        if self._crow is None:
            raise RuntimeError(
                f"{what} expected sparse row compressed tensor layout but got Sparse"
            )

    def sparse_dim(self) -> int:
        """Return how many dimensions are given by indices."""
        return self._indices_.size(0) if self._crow is None else 2

    def dense_dim(self) -> int:
        """Return how many dimensions each value has."""
        return self._values_.dim() - 1

    def _nnz(self) -> int:
        return self._values_.size(0)

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
        if self._crow is None and not self._coalesced:
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
        """Return where each row of a compressed matrix begins, (rows + 1)."""
        self._need_csr("crow_indices")
        assert self._crow is not None
        return self._crow

    def col_indices(self) -> Tensor:
        """Return the column of each element of a compressed matrix, (nnz)."""
        self._need_csr("col_indices")
        return self._col

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
        indices, values = self._positions(), self._values_
        if not len(indices):
            return values.sum(0).to(self.dtype)
        kind = taeda.int64 if self.dtype == taeda.bool else self.dtype
        result = _ops.zeros(tuple(self.shape), dtype=kind)
        return result.index_put(indices, values.to(kind), accumulate=True).to(self.dtype)

    def _positions(self) -> tuple[Tensor, ...]:
        """Return the index of each element, dimension by dimension."""
        if self._crow is None:
            return tuple(self._indices_)
        return _ops._csr_rows(self._crow, self._col), self._col.long()

    def to_sparse_coo(self) -> SparseTensor:
        """Return a tensor of layout ``taeda.sparse_coo``."""
        if self._crow is None:
            return self
        indices = _ops.stack(self._positions())
        first = _structure.is_first(indices)
        ordered = bool(
            ((indices[1, 1:] > indices[1, :-1]) | (indices[0, 1:] > indices[0, :-1])).all()
        )
        return coo(indices, self._values_, tuple(self.shape), ordered and bool(first.all()))

    def to_sparse_csr(self, dense_dim: int | None = None) -> SparseTensor:
        """Return a matrix of layout ``taeda.sparse_csr``.

        Args:
            dense_dim: must be ``None`` or 0.
        """
        need_matrix("to_sparse_csr", self, dense_dim)
        if self._crow is not None:
            return self
        ordered = self.coalesce()
        crow, col, values = compressed_rows(ordered)
        return csr(crow, col, values, tuple(self.shape))

    def to_sparse(self, sparse_dim: Any = None, *, layout: Any = None, **other: Any) -> Any:
        """Return a sparse tensor of a layout, by default ``taeda.sparse_coo``."""
        if sparse_dim is not None or other:
            raise NotImplementedError(
                "to_sparse(): a sparse tensor can only be given another layout"
            )
        return self.to_sparse_csr() if layout is _C.sparse_csr else self.to_sparse_coo()

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Return the tensor with another dtype: itself where nothing changes."""
        if args and isinstance(args[0], SparseTensor):
            args = (args[0].dtype, *args[1:])
        values = self._values_.to(*args, **kwargs)
        if values.is_meta:
            raise NotImplementedError("to(): sparse tensors are on the cpu only")
        return self if values is self._values_ else like(self, values)

    def cpu(self, memory_format: Any = None) -> SparseTensor:
        """Return the tensor itself."""
        return self

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
        return like(self, self._values_)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.requires_grad and not self.is_leaf:
            raise RuntimeError(
                "a tensor with a history cannot be pickled; pickle tensor.detach() instead"
            )
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
    placeholder = _ops.zeros((), dtype=values.dtype).expand(size)
    return Tensor._make_subclass(SparseTensor, placeholder)


def coo(
    indices: Tensor, values: Tensor, size: tuple[int, ...], coalesced: bool = False
) -> SparseTensor:
    """Make a tensor of layout sparse_coo of parts that fit together."""
    result = _make(size, values)
    result._indices_, result._crow, result._values_ = indices, None, values
    result._coalesced, result._rows = coalesced, None
    return result


def csr(crow: Tensor, col: Tensor, values: Tensor, size: tuple[int, ...]) -> SparseTensor:
    """Make a matrix of layout sparse_csr of parts that fit together."""
    result = _make(size, values)
    result._crow, result._col, result._values_ = crow, col, values
    result._coalesced, result._rows = False, None
    return result


def like(x: SparseTensor, values: Tensor) -> SparseTensor:
    """Return other values at the positions of ``x``."""
    if x._crow is not None:
        return csr(x._crow, x._col, values, tuple(x.shape))
    result = coo(x._indices_, values, tuple(x.shape), x._coalesced)
    result._rows = x._rows
    return result


def _state(x: SparseTensor) -> tuple[Any, ...]:
    positions = (x._indices_,) if x._crow is None else (x._crow, x._col)
    return positions, x._values_.detach(), tuple(x.shape), x._coalesced, x.requires_grad


def _rebuild(
    positions: tuple[Tensor, ...], values: Tensor, size: Any, coalesced: bool, requires_grad: bool
) -> SparseTensor:
    """Rebuild a tensor from the result of ``__reduce_ex__``."""
    from taeda.sparse import _make as make  # which makes tensors of this class

    if len(positions) == 1:
        result = make.sparse_coo_tensor(positions[0], values, size, is_coalesced=coalesced)
    else:
        result = make.sparse_csr_tensor(positions[0], positions[1], values, size)
    return result.requires_grad_() if requires_grad else result


def add_up(values: Tensor, index: Tensor, count: int) -> Tensor:
    """Sum the values with the same index: (count, ...); of bools, whether any is true."""
    kind = taeda.int64 if values.dtype == taeda.bool else values.dtype
    sums = _ops.zeros((count, *values.shape[1:]), dtype=kind)
    return sums.index_add(0, index, values.to(kind)).to(values.dtype)


def need_matrix(what: str, x: Tensor, dense_dim: int | None = None) -> None:
    """Raise unless ``x`` is a matrix without dense dimensions."""
    dense = x.dense_dim() if isinstance(x, SparseTensor) else 0
    if x.dim() != 2 or dense or dense_dim:
        raise NotImplementedError(
            f"{what}(): only matrices without dense dimensions are supported, got shape "
            f"{list(x.shape)} with {dense_dim or dense} dense dimensions"
        )


def compressed_rows(x: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the rows of a matrix begin, and the columns and values row by row.

    What is found of the indices is kept with the tensor until they are changed.
    """
    if x._crow is not None:
        return x._crow, x._col, x._values_
    indices = x._indices_
    if x._rows is None or x._rows[0] != indices._version:
        crow, order = _ops._group_rows(indices[0], x.size(0))
        if x._coalesced:
            x._rows = indices._version, crow, indices[1].contiguous(), None
        else:
            x._rows = indices._version, crow, indices[1][order], order
    _, crow, col, order = x._rows
    return crow, col, x._values_ if order is None else x._values_[order]
