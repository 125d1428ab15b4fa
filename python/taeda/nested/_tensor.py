"""The class of nested tensors.

A NestedTensor is a batch of sequences of different lengths: its values are a dense tensor in which
one dimension has all sequences one after the other, and a ``Ragged`` says where each begins. The
values carry the history. The tensor itself has no elements, so every op on it comes to
``__torch_function__``, and derivatives are those of the dense ops that the answers are made of.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda._symbols import jagged
from taeda._tensor.unreadable import Unreadable
from taeda.autograd import _run
from taeda.nested._ragged import Ragged
from taeda.nested._symbol import NestedSize, product

_ops = _C.ops

# By the name of the op; filled by the modules that `taeda.nested` imports.
FUNCTIONS: dict[str, Callable[..., Any]] = {}


# Ops by what they are called from Python: linalg.norm is another than norm.
_NAMES = {id(op): name for name, op in vars(_C.ops).items()}


def answers(*names: str, named: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function the answer to ops; ValueError where there is no op of a name.

    Args:
        names: of the ops.
        named: whether the function takes the op's name as its first argument.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            if not hasattr(_C.ops, name):
                raise ValueError(f"answers(): there is no operation {name!r}")
            FUNCTIONS[name] = functools.partial(function, name) if named else function
        return function

    return register


def name_of(func: Any) -> str:
    """The name of an op in ``_C.ops``."""
    return str(_NAMES.get(id(func)) or getattr(func, "__name__", func))


class NestedTensor(Unreadable):
    """Sequences of different lengths as one tensor, of layout ``taeda.jagged`` or strided.

    It is made by the functions of ``taeda.nested``; where PyTorch has one Tensor class for the
    strided layout, this is a subclass.
    """

    _values_: Tensor  # the dimensions but the first; the ragged one has all sequences
    _ragged_: Ragged
    _dim_: int  # which dimension is ragged; at least 1
    _strided_: bool

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = name_of(func), kwargs or {}
        if kwargs.get("out") is not None:
            raise NotImplementedError(f"{name}(): out= is not supported with nested tensors")
        handler = FUNCTIONS.get(name)
        if handler is None:
            raise NotImplementedError(
                f"{name}() is not implemented for nested tensors; values() has all sequences in "
                "one dense tensor, unbind() gives each"
            )
        return handler(*args, **kwargs)

    # ---- the parts ----

    def values(self) -> Tensor:
        """All sequences one after the other, with history; of strided layout flat."""
        return self._values_.reshape(-1) if self._strided_ else self._values_

    def offsets(self) -> Tensor:
        """Where each sequence begins in the values, and where the last ends: (batch + 1)."""
        self._need_jagged("offsets")
        return self._ragged_.offsets_on(self._values_.device)

    def lengths(self) -> Tensor | None:
        """How many elements each sequence has, where there are holes between them; else None."""
        self._need_jagged("lengths")
        return self._ragged_.lengths_on(self._values_.device)

    def _need_jagged(self, name: str) -> None:
        if self._strided_:
            raise AttributeError(
                f"a nested tensor of strided layout has no attribute '{name}'; make it with "
                "layout=taeda.jagged"
            )

    @property
    def _ragged_idx(self) -> int:
        return self._dim_

    @property
    def _lengths(self) -> Tensor | None:
        return self.lengths()

    @property
    def _offsets(self) -> Tensor:
        return self.offsets()

    @property
    def _values(self) -> Any:
        return self.values()

    @property
    def _max_seqlen(self) -> int:
        return self._ragged_.longest

    @property
    def _min_seqlen(self) -> int:
        return self._ragged_.shortest

    def _get_max_seqlen(self) -> int:
        return self._ragged_.longest

    def _get_min_seqlen(self) -> int:
        return self._ragged_.shortest

    def _with(self, values: Tensor) -> NestedTensor:
        """Other values with the same sequences."""
        return like(self, values)

    # ---- what it is ----

    @property
    def is_nested(self) -> bool:
        """True."""
        return True

    @property
    def layout(self) -> Any:
        """``taeda.jagged`` or ``taeda.strided``."""
        return taeda.strided if self._strided_ else jagged

    @property
    def shape(self) -> Any:
        """The sizes of the dimensions; that of the ragged one is a symbol such as ``j1``."""
        if self._strided_:
            raise RuntimeError(
                "a nested tensor of strided layout has no shape; size(dim) gives the sizes that "
                "are regular, layout=taeda.jagged makes tensors with a shape"
            )
        return self._size()

    def _size(self) -> Any:
        sizes: list[Any] = [len(self._ragged_), *self._values_.shape]
        sizes[self._dim_] = self._ragged_.size
        return NestedSize(sizes)

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or one of them."""
        if dim is None:
            return self.shape
        d = dim_in(dim, self.dim())
        if self._strided_ and d == self._dim_:
            if self._ragged_.shortest == self._ragged_.longest:
                return self._ragged_.longest
            raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
        return self._size()[d]

    def stride(self, dim: int | None = None) -> Any:
        """The steps from one element to the next, as of a contiguous tensor of these sizes."""
        self._need_jagged("stride")
        sizes = self._size()
        order = sorted(range(1, len(sizes)), key=lambda d: (-self._values_.stride(d - 1), d))
        steps = [1] * len(sizes)
        for i, d in enumerate(order):
            steps[d] = product(sizes[e] for e in order[i + 1 :])
        steps[0] = product(sizes[1:])
        return tuple(steps) if dim is None else steps[dim_in(dim, self.dim())]

    def dim(self) -> int:
        """How many dimensions there are, with that of the batch."""
        return self._values_.dim() + 1

    ndimension = dim

    @property
    def ndim(self) -> int:
        """How many dimensions there are, with that of the batch."""
        return self._values_.dim() + 1

    def numel(self) -> int:
        """How many elements the values have."""
        return self._values_.numel()

    nelement = numel

    @property
    def nbytes(self) -> int:
        """Bytes in the values."""
        return self._values_.nbytes

    def is_contiguous(self, memory_format: Any = taeda.contiguous_format) -> bool:
        """Whether the values are contiguous, and without holes."""
        without_holes = self._ragged_.lengths is None
        return without_holes and self._values_.is_contiguous(memory_format=memory_format)

    def is_same_size(self, other: Tensor) -> bool:
        """Whether another nested tensor has the same sizes."""
        return isinstance(other, NestedTensor) and self._size() == other._size()

    def is_pinned(self) -> bool:
        """Whether the values are in pinned memory."""
        return self._values_.is_pinned()

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._values_.is_inference()

    @property
    def _version(self) -> int:
        return self._values_._version

    @property
    def mT(self) -> Any:
        """The last two dimensions exchanged."""
        return self.transpose(-2, -1)

    @property
    def real(self) -> Any:
        """The real part."""
        return like(self, self._values_.real)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return like(self, self._values_.imag)

    # ---- gradients: those of the values ----

    @property
    def grad(self) -> Any:
        """The gradient that backward() has gathered, nested, or None."""
        grad = self._values_.grad
        return None if grad is None else like(self, grad)

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None and (
            not isinstance(value, NestedTensor) or value._values_.shape != self._values_.shape
        ):
            raise RuntimeError("the gradient of a nested tensor must be None or have its sizes")
        self._values_.grad = None if value is None else value._values_

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Have a function see the gradient, nested, and perhaps replace it."""

        def call(grad: Tensor) -> Any:
            found = hook(like(self, grad))
            return found._values_ if isinstance(found, NestedTensor) else found

        return self._values_.register_hook(call)

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add gradients to the leaves; ``gradient`` is nested, and needed."""
        if not isinstance(gradient, NestedTensor):
            raise RuntimeError(
                "backward() of a nested tensor needs its gradient, a nested tensor of its sizes"
            )
        taeda.autograd.backward([self], [gradient], retain_graph, create_graph, inputs=inputs)

    @property
    def data(self) -> Any:
        """The same elements without history."""
        return like(self, self._values_.data)

    @data.setter
    def data(self, value: Any) -> None:
        raise NotImplementedError("data of a nested tensor cannot be assigned; see copy_()")

    # ---- Python's protocols ----

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from taeda.nested._repr import text

        return text(self)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __len__(self) -> int:
        return len(self._ragged_)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __getitem__(self, index: Any) -> Any:
        from taeda.nested._index import get  # which makes nested tensors

        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError("elements of a nested tensor cannot be assigned; see values()")

    def __contains__(self, element: Any) -> bool:
        return element in self._values_

    def item(self) -> Any:
        """The only element as a number."""
        if self.numel() != 1:
            raise RuntimeError(
                f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
            )
        return self._values_.item()

    def __index__(self) -> int:
        return self._values_.reshape(-1)[0].__index__() if self.numel() == 1 else self.item()

    def __deepcopy__(self, memo: dict[Any, Any]) -> NestedTensor:
        if id(self) not in memo:
            memo[id(self)] = like(self, copy.deepcopy(self._values_, memo))
        return memo[id(self)]

    def __copy__(self) -> NestedTensor:
        return like(self, self._values_.detach()).requires_grad_(self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from taeda.nested._make import rebuild, state  # which makes nested tensors

        return rebuild, state(self)


def _refusal(name: str, why: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}() is not implemented for nested tensors: {why}")

    refuse.__name__ = name
    refuse.__doc__ = f"Raise NotImplementedError: {why}."
    return refuse


for _name in [
    "__array__", "__dlpack__", "__dlpack_device__", "as_subclass", "data_ptr", "numpy",
    "register_post_accumulate_grad_hook", "resize_", "set_", "share_memory_", "storage",
    "storage_offset", "tolist", "untyped_storage", "pin_memory", "is_set_to", "is_shared",
]:  # fmt: skip
    setattr(NestedTensor, _name, _refusal(_name, "values() has the memory"))
for _name in ["H", "T", "mH"]:
    _why = "the batch is the first dimension, and stays that; see transpose()"
    setattr(NestedTensor, _name, property(_refusal(_name, _why)))


def dim_in(dim: int, n: int) -> int:
    """A dimension counted from the first, of ``n``."""
    if not -n <= dim < n:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
        )
    return dim % n


_zeros: dict[Any, Tensor] = {}


def make(values: Tensor, ragged: Ragged, dim: int, strided: bool = False) -> NestedTensor:
    """Make a nested tensor of parts that fit together."""
    key = values.dtype, values.device
    if key not in _zeros:
        with taeda.inference_mode(False):
            _zeros[key] = _ops.zeros((), dtype=values.dtype, device=values.device)
    sizes = [len(ragged), *values.shape]
    sizes[dim] = 0
    result: Any = Tensor._make_subclass(NestedTensor, _zeros[key].expand(sizes))
    result._values_, result._ragged_ = values, ragged
    result._dim_, result._strided_ = dim, strided
    return result


def like(x: NestedTensor, values: Tensor, dim: int | None = None) -> NestedTensor:
    """Return other values with the sequences of ``x``; ``dim`` is the ragged dimension."""
    if type(x) is not NestedTensor:
        return x._with(values)
    return make(values, x._ragged_, x._dim_ if dim is None else dim, x._strided_)


def pack(x: NestedTensor) -> NestedTensor:
    """The tensor with values that are those of its sequences, without holes."""
    ragged, d = x._ragged_, x._dim_ - 1
    if ragged.covers(x._values_.size(d)):
        return x
    values = x._values_.index_select(d, ragged.sources(x._values_.device))
    return make(values, ragged.packed(), x._dim_, x._strided_)


_run.nested = NestedTensor
