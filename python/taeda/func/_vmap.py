"""`vmap`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.utils._pytree import TreeSpec, _broadcast_to_and_flatten, tree_flatten
from taeda.utils._pytree import tree_unflatten as tree_unflatten

__all__ = ["vmap"]

InDims = int | tuple[Any, ...]
OutDims = int | tuple[Any, ...] | None


def vmap(
    func: Callable[..., Any],
    in_dims: InDims = 0,
    out_dims: OutDims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `func` to each element of a batch, all at once.

    Args:
        func: takes and returns tensors, or tuples, lists and dictionaries of them. It is called
            once, with tensors that hide the dimension that is mapped over.
        in_dims: which dimension of each positional argument to map over: an int for all of them,
            or a tuple of the arguments' structure with ints, and None for what is the same for the
            whole batch. Keyword arguments are not mapped over.
        out_dims: where the dimension appears in each output. None, for an output that does not
            depend on the batch, returns it as it is.
        randomness: random operations are errors ("error"), draw for each element ("different"), or
            once for all of them ("same").
        chunk_size: map over this many elements at a time, to save memory. Default: all.

    Raises:
        ValueError: in_dims or out_dims do not fit, no tensor is mapped over, sizes differ, or
            `func` returns something that is no tensor.
        RuntimeError: `func` reads elements as Python numbers, makes shapes from them, or writes
            into a tensor that is not mapped over.

    >>> import taeda
    >>> x, y = taeda.arange(6.0).reshape(3, 2), taeda.ones(2)
    >>> taeda.vmap(taeda.dot, in_dims=(0, None))(x, y)
    tensor([1., 5., 9.])
    >>> weights, data = taeda.ones(2), taeda.arange(4.0).reshape(2, 2)
    >>> taeda.vmap(taeda.func.grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(
    ...     weights, data
    ... )
    tensor([[ 0.,  2.],
            [20., 30.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, tree = _process_batched_inputs(in_dims, args, func)
        run = functools.partial(_run, func, out_dims, randomness, tree, kwargs)
        if chunk_size is None or chunk_size >= size:
            return run(size, leaves, dims)
        pieces = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            parts = zip(leaves, dims, strict=True)
            piece = [x if d is None else x.narrow(d, start, n) for x, d in parts]
            pieces.append(run(n, piece, dims))
        return _joined(pieces, out_dims)

    return wrapper


def _get_name(func: Any) -> str:
    return getattr(func, "__name__", repr(func))


# The next three have PyTorch's names and arguments and are looked up at each call: packages whose
# containers know of vmap put functions of their own in their place.


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Any
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """The batch's size, and the flat arguments with their dimensions."""
    call = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
            "you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, tree = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, tree)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {tree}."
        )
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        dims[i] = None if dim is None else _in_dim(call, x, dim)
    sizes = [x.size(dim) for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, leaves, tree


def _in_dim(call: str, x: Any, dim: Any) -> int:
    if not isinstance(dim, int):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension "
            "or None."
        )
    if isinstance(x, Tensor) and x.is_nested:
        raise NotImplementedError(
            f"{call}: nested tensors have sequences of different sizes, which vmap does not map "
            "over; unbind() gives each"
        )
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{call}: Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
            "vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -x.dim() <= dim < x.dim():
        raise ValueError(
            f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {x.dim()} so expected in_dim to satisfy "
            f"-{x.dim()} <= in_dim < {x.dim()}."
        )
    return dim % x.dim()


def _run(
    func: Any,
    out_dims: Any,
    randomness: str,
    tree: TreeSpec,
    kwargs: dict[str, Any],
    size: int,
    leaves: Sequence[Any],
    dims: Sequence[int | None],
) -> Any:
    """The outputs for a batch."""
    from taeda._batching.tensor import inside

    with inside(size, randomness) as level:
        mapped = _create_batched_inputs(dims, leaves, level, tree)
        outputs = func(*mapped, **kwargs)
    return _unwrap_batched(outputs, out_dims, level, size, func)


def _create_batched_inputs(
    flat_in_dims: Sequence[int | None],
    flat_args: Sequence[Any],
    vmap_level: Any,
    args_spec: TreeSpec,
) -> Any:
    """The arguments, without the dimension that is mapped over."""
    return args_spec.unflatten(
        x if dim is None else _add_batch_dim(x, dim, vmap_level)
        for x, dim in zip(flat_args, flat_in_dims, strict=True)
    )


def _add_batch_dim(x: Tensor, dim: int, level: Any) -> Tensor:
    """Hide a dimension of a tensor inside the vmap of a level."""
    from taeda._batching.tensor import wrap

    found: Tensor = wrap(x.movedim(dim, 0) if dim else x, level)
    return found


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: Any, batch_size: int, func: Any
) -> Any:
    """The outputs with the dimension where `out_dims` says."""
    outputs, structure = tree_flatten(batched_outputs)
    places = _broadcast_to_and_flatten(out_dims, structure)
    if places is None or not all(p is None or isinstance(p, int) for p in places):
        _refuse_out_dims(func, out_dims, structure)
    assert places is not None
    name = _get_name(func)
    return structure.unflatten(
        _maybe_remove_batch_dim(name, x, vmap_level, batch_size, place)
        for x, place in zip(outputs, places, strict=True)
    )


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: Any, batch_size: int, out_dim: int | None
) -> Any:
    """One output with its dimension, or as it is where it has no place for one."""
    from taeda._batching.tensor import separate

    if out_dim is None:
        if separate(batched_output, vmap_level)[1]:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(batched_output)}. Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _remove_batch_dim(x: Tensor, level: Any, batch_size: int, out_dim: int) -> Tensor:
    """A tensor with the dimension that a level hides; equal elements if it hides none."""
    from taeda._batching.tensor import separate

    value, hidden = separate(x, level)
    if not hidden:
        value = value.unsqueeze(0).expand(batch_size, *value.shape)
    found: Tensor = value.movedim(0, out_dim) if out_dim else value
    return found


def _refuse_out_dims(func: Any, out_dims: Any, structure: TreeSpec) -> None:
    leaves, tree = tree_flatten(out_dims)
    if not all(leaf is None or isinstance(leaf, int) for leaf in leaves):
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
            "or a python collection of ints representing where in the outputs the vmapped "
            "dimension should appear."
        )
    raise ValueError(
        f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible "
        f"with the structure of `outputs`. out_dims has structure {tree} but outputs has structure "
        f"{structure}."
    )


def one_of_batch(value: Any) -> Any:
    """`value`, with one element of tensors batched at a level that has ended."""
    from taeda._batching.tensor import first_of_finished

    leaves, tree = tree_flatten(value)
    return tree.unflatten(first_of_finished(x) for x in leaves)


def _joined(pieces: Sequence[Any], out_dims: Any) -> Any:
    """The outputs of all chunks together, in the structure of the first."""
    structure = tree_flatten(pieces[0])[1]
    places = _broadcast_to_and_flatten(out_dims, structure)
    assert places is not None  # they fitted each piece
    columns = zip(*(tree_flatten(piece)[0] for piece in pieces), strict=True)
    return structure.unflatten(
        parts[0] if place is None else _C.ops.cat(parts, place)
        for parts, place in zip(columns, places, strict=True)
    )
