"""Functions of tensors that take their arguments more freely than the operations below them.

And networks, optimizers and schedules without hidden state: ``factory``, ``Parameters``,
``optimizer``, ``scheduler``; `docs/functional.md` introduces them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from taeda import _C
from taeda._C import Tensor

if TYPE_CHECKING:
    from taeda._functional.lowrank import pca_lowrank as pca_lowrank
    from taeda._functional.lowrank import svd_lowrank as svd_lowrank
    from taeda.functional._difference import Change as Change
    from taeda.functional._difference import Difference as Difference
    from taeda.functional._factory import Factory as Factory
    from taeda.functional._factory import Model as Model
    from taeda.functional._factory import factory as factory
    from taeda.functional._optimizer import PureOptimizer as PureOptimizer
    from taeda.functional._optimizer import optimizer as optimizer
    from taeda.functional._parameters import Parameters as Parameters
    from taeda.functional._scheduler import PureScheduler as PureScheduler
    from taeda.functional._scheduler import ScheduleState as ScheduleState
    from taeda.functional._scheduler import scheduler as scheduler
    from taeda.functional._state import OptimizerState as OptimizerState

__all__ = [
    "broadcast_shapes",
    "cartesian_prod",
    "chain_matmul",
    "einsum",
    "empty_permuted",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "meshgrid",
    "nonzero",
    "numel",
    "tensordot",
    "typename",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "where",
]


def is_tensor(obj: object) -> bool:
    """Whether ``obj`` is a Tensor."""
    return isinstance(obj, _C.Tensor)


def _tensor(function: str, input: Any) -> Any:
    if not isinstance(input, _C.Tensor):
        raise TypeError(
            f"{function}(): argument 'input' (position 1) must be Tensor, "
            f"not {type(input).__name__}"
        )
    return input


def is_floating_point(input: Any) -> bool:
    """Whether the dtype of a tensor is real floating point."""
    return _tensor("is_floating_point", input).is_floating_point()


def is_complex(input: Any) -> bool:
    """Whether the dtype of a tensor is complex."""
    return _tensor("is_complex", input).is_complex()


def is_signed(input: Any) -> bool:
    """Whether the dtype of a tensor can hold negative numbers."""
    return _tensor("is_signed", input).is_signed()


def is_conj(input: Any) -> bool:
    """Whether a conjugation is left pending: never, ``conj`` computes it at once."""
    return _tensor("is_conj", input).is_conj()


def is_neg(input: Any) -> bool:
    """Whether a negation is left pending: never."""
    return _tensor("is_neg", input).is_neg()


def is_same_size(input: Any, other: Any) -> bool:
    """Whether two tensors have the same sizes."""
    return _tensor("is_same_size", input).is_same_size(other)


def is_storage(obj: object) -> bool:
    """Whether ``obj`` is a storage."""
    return isinstance(obj, _C.UntypedStorage)


def is_nonzero(input: Any) -> bool:
    """Whether the one element of a tensor is not zero; RuntimeError if it has more or none."""
    return bool(_tensor("is_nonzero", input))


def numel(input: Any) -> int:
    """Return the number of elements of a tensor."""
    return _tensor("numel", input).numel()


def typename(obj: Any) -> str:
    """Return the name of the type of ``obj``, with its module."""
    if isinstance(obj, _C.Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    module = getattr(kind, "__module__", "")
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def broadcast_shapes(*shapes: Sequence[int] | int) -> Any:
    """Return the shape that tensors of these shapes broadcast to.

    Args:
        shapes: sequences of sizes; an int stands for a one-dimensional shape.

    Raises:
        RuntimeError: the shapes do not fit.

    >>> taeda.broadcast_shapes((2, 1), (3,))
    taeda.Size([2, 3])
    """
    result: list[int] = []
    for shape in shapes:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(size < 0 for size in sizes):
            raise RuntimeError(f"broadcast_shapes(): sizes must not be negative, got {sizes}")
        result = [1] * (len(sizes) - len(result)) + result
        for i in range(-1, -len(sizes) - 1, -1):
            if sizes[i] != 1:
                if result[i] not in (1, sizes[i]):
                    raise RuntimeError(
                        "Shape mismatch: objects cannot be broadcast to a single shape: "
                        + ", ".join(str(s) for s in shapes)
                    )
                result[i] = sizes[i]
    return _C.Size(result)


def nonzero(input: Any, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero.

    Args:
        input: a tensor of ``n`` dimensions with ``z`` such elements.
        out: a tensor to write to.
        as_tuple: ``n`` tensors of shape ``(z,)`` instead of one of shape ``(z, n)``.
    """
    if as_tuple:
        if out is not None:
            raise TypeError("nonzero(): as_tuple and out exclude each other")
        return _C.ops._nonzero_tuple(input)
    return _C.ops.nonzero(input) if out is None else _C.ops.nonzero(input, out=out)


_PLAIN = (Tensor, bool, int, float, complex)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...


@overload
def where(condition: Tensor, input: Any, other: Any, *, out: Tensor | None = None) -> Tensor: ...


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """Take elements from one tensor where a condition holds and from another where it does not.

    ``where(condition, input, other)`` broadcasts all three; ``input`` and ``other`` may be numbers.
    ``where(condition)`` is ``nonzero(condition, as_tuple=True)``.
    """
    operands = (condition, *args)
    for operand in operands:
        # A container of tensors knows this function, not the operation below.
        if not isinstance(operand, _PLAIN) and hasattr(type(operand), "__torch_function__"):
            from taeda.overrides import handle_torch_function

            return handle_torch_function(where, operands, *operands, **kwargs)
    if not args and not kwargs:
        return _C.ops._nonzero_tuple(condition)
    return _C.ops.where(condition, *args, **kwargs)


def _different(
    found: tuple[Tensor, Tensor, Tensor], return_inverse: bool, return_counts: bool
) -> Any:
    """The parts of (values, inverse, counts) that are wanted."""
    values, inverse, counts = found
    if not return_inverse and not return_counts:
        return values
    return (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements of a tensor, in ascending order.

    Args:
        input: the tensor. Each NaN is different from all others.
        sorted: they are in order whatever this says, as in PyTorch on the CPU.
        return_inverse: return also where each element is found among them, an int64 tensor of the
            input's shape (with ``dim``, of its size there).
        return_counts: return also how often each occurs, an int64 tensor.
        dim: compare the slices along this dimension instead of elements.

    Returns:
        The elements, or a tuple of what is asked for.

    >>> taeda.unique(taeda.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    if not isinstance(sorted, bool):
        raise TypeError(f"unique(): argument 'sorted' must be bool, not {type(sorted).__name__}")
    found = _C.ops._unique(_tensor("unique", input), dim, return_inverse, return_counts)
    return _different(found, return_inverse, return_counts)


def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the elements without those that equal the one before them.

    Args:
        input: the tensor; without ``dim`` it is taken as flat.
        return_inverse: return also where each element is found among them, an int64 tensor of the
            input's shape (with ``dim``, of its size there).
        return_counts: return also the length of each run, an int64 tensor.
        dim: compare the slices along this dimension instead of elements.

    Returns:
        The elements, or a tuple of what is asked for.

    >>> taeda.unique_consecutive(taeda.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    x = _tensor("unique_consecutive", input)
    found = _C.ops._unique_consecutive(x, dim, return_inverse, return_counts)
    return _different(found, return_inverse, return_counts)


def einsum(*args: Any) -> Tensor:
    """Multiply tensors and sum over indices, as Einstein's notation says.

    Args:
        args: an equation such as ``"ik,kj->ij"`` and the tensors (one by one or as a list), or each
            tensor followed by a list of its indices as ints, and the result's indices at the end.

    >>> taeda.einsum("ij,j->i", taeda.ones(2, 3), taeda.ones(3))
    tensor([3., 3.])
    """
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand")
    if isinstance(args[0], _C.Tensor):
        equation, operands = _einsum_from_lists(args)
    else:
        equation, operands = args[0], args[1:]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    return _C.ops._einsum(equation, list(operands))


def _einsum_from_lists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Turn ``(tensor, [0, 1], ..., [1])`` into an equation and the tensors."""

    def letters(indices: Sequence[Any]) -> str:
        text = ""
        for index in indices:
            if index is Ellipsis:
                text += "..."
            elif 0 <= index < 52:
                text += chr(ord("A") + index if index < 26 else ord("a") + index - 26)
            else:
                raise ValueError("einsum(): indices must be from 0 to 51")
        return text

    operands = args[0 : len(args) // 2 * 2 : 2]
    equation = ",".join(letters(indices) for indices in args[1::2])
    if len(args) % 2:
        equation += "->" + letters(args[-1])
    return equation, operands


def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Multiply two tensors and sum over several dimensions of each.

    Args:
        a, b: the tensors.
        dims: how many of the last dimensions of ``a`` and the first of ``b`` to sum over, or two
            lists of dimensions, one for each.
        out: a tensor to write to.
    """
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        first, second = dims
        dims_a = [first] if isinstance(first, int) else list(first)
        dims_b = [second] if isinstance(second, int) else list(second)
    result = _C.ops._tensordot(a, b, dims_a, dims_b)
    return _into(out, result, "tensordot")


def _into(out: Any, result: Any, function: str) -> Any:
    """Write a result to ``out``, where that is given."""
    if out is None:
        return result
    if out.dtype != result.dtype:
        raise RuntimeError(
            f"{function}(): expected out tensor to have dtype {result.dtype}, but got {out.dtype}"
        )
    out.resize_(result.shape)
    return out.copy_(result)


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of the elements of one-dimensional tensors, one in each row."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for tensor in tensors:
        if tensor.dim() != 1:
            raise RuntimeError(f"cartesian_prod(): expected a 1D vector, got shape {tensor.shape}")
    if len(tensors) == 1:
        return tensors[0]
    grids = _C.ops.meshgrid(list(tensors), indexing="ij")
    return _C.ops.stack([grid.flatten() for grid in grids], 1)


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of all points of a grid, one tensor for each dimension.

    Args:
        tensors: the coordinates along each dimension, of one dimension or none; or a list of them.
        indexing: "ij" (the default, of which a warning tells once) gives results of the shape of
            the tensors' sizes, "xy" has the first two dimensions swapped.

    Raises:
        RuntimeError: there is no tensor, or they differ in dtype or device.

    >>> x, y = taeda.meshgrid(taeda.tensor([1, 2]), taeda.tensor([3, 4]), indexing="ij")
    >>> x
    tensor([[1, 1],
            [2, 2]])
    """
    global _meshgrid_warned
    if indexing is None and (not _meshgrid_warned or _C.is_warn_always_enabled()):
        _meshgrid_warned = True
        import warnings

        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            stacklevel=2,
        )
    return _C.ops.meshgrid(*tensors, indexing=indexing)


_meshgrid_warned = False


def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """Return the product of several matrices, multiplied in the cheapest order."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    if not matrices:
        raise RuntimeError("chain_matmul(): expected one or more matrices")
    if any(matrix.dim() != 2 for matrix in matrices):
        raise RuntimeError("chain_matmul(): expected matrices, tensors of two dimensions")
    result = matrices[0] if len(matrices) == 1 else _C.ops.linalg_multi_dot(matrices)
    return _into(out, result, "chain_matmul")


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Convert flat indices to coordinates: one tensor for each dimension.

    Args:
        indices: integers from 0 to below the number of elements.
        shape: the sizes of the tensor.

    Raises:
        TypeError: the indices are no integers.
        ValueError: a size is negative, or an index lies outside.
    """
    places = _tensor("unravel_index", indices)
    if places.is_floating_point() or places.is_complex() or places.dtype == _C.bool:
        raise TypeError(f"unravel_index(): indices must be integers, got {places.dtype}")
    sizes = [shape] if isinstance(shape, int) else [int(n) for n in shape]
    if any(n < 0 for n in sizes):
        raise ValueError(f"unravel_index(): shape must not be negative, got {sizes}")
    if (
        places.numel()
        and not _C._is_batched(places)
        and bool(((places < 0) | (places >= math.prod(sizes))).any())
    ):
        raise ValueError(f"unravel_index(): an index is outside a tensor of shape {sizes}")
    found = []
    for size in reversed(sizes):
        found.append(places % size if size else places)
        places = _C.ops.div(places, size, rounding_mode="floor") if size else places
    return tuple(reversed(found))


def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    """Return an uninitialised tensor whose dimensions lie in memory in another order.

    Args:
        size: the sizes.
        physical_layout: the dimensions, from the outermost in memory to the innermost.
        dtype, device, requires_grad: as in `empty`.

    Raises:
        RuntimeError: ``physical_layout`` is no order of the dimensions.
    """
    sizes, order = list(size), list(physical_layout)
    if len(order) != len(sizes):
        raise RuntimeError(
            f"empty_permuted(): Number of dimensions in size ({len(sizes)}) does not match the "
            f"length of the physical_layout ({len(order)})"
        )
    if sorted(order) != [*range(len(sizes))]:
        raise RuntimeError(
            f"empty_permuted(): physical_layout must name each dimension once, got {order}"
        )
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(sizes[d], 1)
    return _C.ops.empty_strided(
        sizes, strides, dtype=dtype, device=device, requires_grad=requires_grad
    )


# ---- networks without hidden state, loaded when they are first used ------------------------------

# Imported on first use; the last ones are operations that PyTorch has here, too.
_LAZY = {
    **dict.fromkeys(("Change", "Difference"), "taeda.functional._difference"),
    **dict.fromkeys(("Factory", "Model", "factory"), "taeda.functional._factory"),
    **dict.fromkeys(("PureOptimizer", "optimizer"), "taeda.functional._optimizer"),
    **dict.fromkeys(("PureScheduler", "ScheduleState", "scheduler"), "taeda.functional._scheduler"),
    **dict.fromkeys(("pca_lowrank", "svd_lowrank"), "taeda._functional.lowrank"),
    "OptimizerState": "taeda.functional._state",
    "Parameters": "taeda.functional._parameters",
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d", "block_diag"), "taeda"),
    **dict.fromkeys(
        ("broadcast_tensors", "cdist", "istft", "lu", "norm", "split", "stft"), "taeda"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
