"""Nested tensors whose components differ in several dimensions: a few ops of strided layout."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.nested._pointwise import pointwise
from taeda.nested._tensor import FUNCTIONS, NestedTensor, dim_in, name_of

_ops = _C.ops
Sizes = list[tuple[int, ...]]
_OWN: dict[str, Callable[..., Any]] = {}  # the answers to ops, by their names


class IrregularTensor(NestedTensor):
    """Tensors of different sizes, one after the other in flat values.

    There are ops on single elements, ``unbind``, ``to_padded_tensor`` and the like.
    """

    _sizes_: Sizes

    @classmethod
    def of(cls, values: Tensor, sizes: Sizes) -> IrregularTensor:
        """Make one of flat values and the components' sizes.

        Raises:
            RuntimeError: they do not fit.
        """
        if values.dim() != 1 or sum(map(math.prod, sizes)) != values.numel():
            raise RuntimeError(
                f"nested tensor: components of sizes {sizes} do not fit {list(values.shape)} values"
            )
        shape = (len(sizes), *(0 for _ in sizes[0]))
        placeholder = _ops.zeros(shape, dtype=values.dtype, device=values.device)
        result: Any = Tensor._make_subclass(cls, placeholder)
        result._values_, result._sizes_, result._strided_ = values, sizes, True
        return result

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = name_of(func), kwargs or {}
        own = _OWN.get(name)
        if own is not None:
            return own(*args, **kwargs)
        handler: Any = FUNCTIONS.get(name)
        if not isinstance(handler, functools.partial) or handler.func is not pointwise:
            raise NotImplementedError(
                f"{name}() is not implemented for nested tensors that are ragged in several "
                "dimensions; unbind() gives each component"
            )
        return _pointwise(name, args, kwargs)

    def _with(self, values: Tensor) -> NestedTensor:
        return IrregularTensor.of(values, self._sizes_)

    def values(self) -> Tensor:
        """The elements of all components, flat, with history."""
        return self._values_

    def dim(self) -> int:
        """How many dimensions there are, with that of the batch."""
        return len(self._sizes_[0]) + 1

    @property
    def ndim(self) -> int:
        """How many dimensions there are, with that of the batch."""
        return self.dim()

    def __len__(self) -> int:
        return len(self._sizes_)

    def _size(self) -> Any:
        raise RuntimeError("a nested tensor of strided layout has no shape; see size(dim)")

    def size(self, dim: int | None = None) -> Any:
        """One of the sizes, where it is that of all components."""
        if dim is None:
            return self.shape
        d = dim_in(dim, self.dim())
        if d == 0:
            return len(self)
        found = {size[d - 1] for size in self._sizes_}
        if len(found) > 1:
            raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
        return found.pop()

    def is_contiguous(self, memory_format: Any = taeda.contiguous_format) -> bool:
        """True."""
        return True

    def is_same_size(self, other: Tensor) -> bool:
        """Whether another nested tensor has the same sizes."""
        return isinstance(other, IrregularTensor) and self._sizes_ == other._sizes_

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        if not items or not hasattr(items[0], "__index__") or isinstance(items[0], bool):
            raise NotImplementedError(
                "nested tensors that are ragged in several dimensions are indexed by numbers"
            )
        part = self.unbind()[int(items[0])]
        return part[tuple(items[1:])] if items[1:] else part

    def padded(self, padding: Any, output_size: Any) -> Tensor:
        """Each component with padding behind it in all dimensions."""
        most = [max(sizes) for sizes in zip(*self._sizes_, strict=True)]
        whole = [len(self), *most] if output_size is None else list(output_size)
        fits = len(whole) == self.dim() and whole[0] == len(self)
        if not fits or any(n < m for n, m in zip(whole[1:], most, strict=True)):
            raise RuntimeError(
                f"to_padded_tensor(): output_size {whole} is less than [{len(self)}, "
                f"{', '.join(map(str, most))}]"
            )
        parts = []
        for part in self.unbind():
            pads = [k for n, m in zip(whole[:0:-1], part.shape[::-1], strict=True)
                    for k in (0, n - m)]  # fmt: skip
            parts.append(_ops.constant_pad_nd(part, pads, padding))
        return _ops.stack(parts)


def stack_up(tensors: list[Tensor]) -> IrregularTensor:
    """Components as one tensor, with their history."""
    flat = _ops.cat([t.reshape(-1) for t in tensors])
    return IrregularTensor.of(flat, [tuple(t.shape) for t in tensors])


def _pointwise(name: str, args: Any, kwargs: Any) -> Any:
    given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    nested = [x for x in given if isinstance(x, IrregularTensor)]
    for x in given:
        if isinstance(x, IrregularTensor) and x._sizes_ == nested[0]._sizes_:
            continue
        if isinstance(x, NestedTensor) or x.dim():
            raise RuntimeError(
                f"{name}(): nested tensors that are ragged in several dimensions go together with "
                "numbers and with tensors of the same sizes"
            )
    values = [x._values_ if isinstance(x, NestedTensor) else x for x in args]
    named = {k: x._values_ if isinstance(x, NestedTensor) else x for k, x in kwargs.items()}
    result = getattr(_ops, name)(*values, **named)
    if name.endswith("_"):
        return args[0]
    return nested[0]._with(result) if isinstance(result, Tensor) else result


def _answers(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function, which takes the op's name first, the answer to ops."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _OWN.update((name, functools.partial(function, name)) for name in names)
        return function

    return register


@_answers("unbind")
def _unbind(name: str, x: IrregularTensor, dim: int = 0) -> tuple[Tensor, ...]:
    if dim_in(dim, x.dim()) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    parts = _ops.split_with_sizes(x._values_, [math.prod(size) for size in x._sizes_], 0)
    return tuple(p.reshape(size) for p, size in zip(parts, x._sizes_, strict=True))


@_answers("select")
def _select(name: str, x: IrregularTensor, dim: int, index: int) -> Tensor:
    if dim_in(dim, x.dim()) != 0:
        raise NotImplementedError(
            "select() of nested tensors that are ragged in several dimensions is along dim=0"
        )
    return x.unbind()[index]


@_answers("to")
def _to(name: str, x: IrregularTensor, *args: Any, **kwargs: Any) -> Any:
    values = x._values_.to(*args, **kwargs)
    return x if values is x._values_ else x._with(values)


@_answers("contiguous")
def _contiguous(name: str, x: IrregularTensor, **kwargs: Any) -> IrregularTensor:
    return x


@_answers("clone", "zeros_like", "ones_like", "empty_like", "rand_like", "randn_like")
def _on_values(name: str, x: IrregularTensor, **kwargs: Any) -> NestedTensor:
    return x._with(getattr(_ops, name)(x._values_, **kwargs))


@_answers("sum", "mean")
def _over_all(name: str, x: IrregularTensor, *dims: Any, **kwargs: Any) -> Tensor:
    if dims or "dim" in kwargs:
        raise NotImplementedError(
            f"{name}() of nested tensors that are ragged in several dimensions is over all elements"
        )
    return getattr(_ops, name)(x._values_, **kwargs)


@_answers("linear")
def _linear(name: str, x: IrregularTensor, weight: Tensor, bias: Any = None) -> IrregularTensor:
    return stack_up([_ops.linear(part, weight, bias) for part in x.unbind()])
