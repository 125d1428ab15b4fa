"""Batched tensors, and the vmap levels that they belong to."""

from __future__ import annotations

import math
import threading
from typing import Any

from taeda import _C
from taeda._C import Tensor

ops = _C.ops


class Level:
    """One vmap that is running: `index` counts the ones around it."""

    __slots__ = ("index", "randomness", "size")

    def __init__(self, index: int, size: int, randomness: str) -> None:
        self.index = index
        self.size = size
        self.randomness = randomness


class _State(threading.local):
    """The levels that this thread is in, the innermost last.

    Attributes:
        running: all of them.
        levels: those that operations are called at: while the rule of a level computes with values,
            the ones around it.
    """

    running: tuple[Level, ...] = ()
    levels: tuple[Level, ...] = ()


state = _State()


class inside:
    """A context manager: the body of a vmap over `size` elements. Entering it gives the level."""

    def __init__(self, size: int, randomness: str) -> None:
        self.level = Level(len(state.levels), size, randomness)

    def __enter__(self) -> Level:
        self.outer = state.levels, state.running
        state.levels = (*state.levels, self.level)
        state.running = (*state.running, self.level)
        _C._watch_random(True)
        return self.level

    def __exit__(self, *_: object) -> None:
        state.levels, state.running = self.outer
        _C._watch_random(bool(state.running))


def _no_memory(name: str) -> Any:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"vmap: {name}: Cannot access data pointer of Tensor that doesn't have storage"
        )

    refuse.__name__ = name
    return refuse


def _no_item(self: Any, *args: Any) -> Any:
    _C.Tensor.item(self)  # raises


class BatchedTensor(Tensor):
    """A tensor without the first dimension of another one.

    Attributes:
        _value: the other tensor, whose first dimension has the size of the level.
        _level: the vmap that hides this dimension.
    """

    _value: Tensor
    _level: Level

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        lines = repr(self._value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={self._level.index + 1}, bdim=0, value=\n    {lines}\n)"

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control "
            "flow. We don't support that; taeda.where() may express it."
        )

    __int__ = __float__ = __complex__ = __index__ = _no_item

    def __contains__(self, element: Any) -> bool:
        return bool((self == element).any())

    # ---- gradients are the values' ----

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the value are recorded for gradients."""
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        _no_leaf("requires_grad_()")

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Raise RuntimeError: the transforms of `func` give gradients within vmap."""
        _no_leaf("requires_grad_()")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Raise RuntimeError: the transforms of `func` give gradients within vmap."""
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "func.grad or func.vjp instead or call backward() outside of vmap."
        )

    @property
    def grad_fn(self) -> Any:
        """The operation that made the value, or None."""
        return self._value.grad_fn

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made the value."""
        return self._value.is_leaf

    @property
    def grad(self) -> Any:
        """None: nothing accumulates gradients within vmap."""
        return None

    @grad.setter
    def grad(self, value: Any) -> None:
        _no_leaf("the attribute grad")

    def retain_grad(self) -> None:
        """Raise RuntimeError: nothing accumulates gradients within vmap."""
        _no_leaf("retain_grad()")

    def register_hook(self, hook: Any) -> Any:
        """Call `hook` with the gradient of this tensor, batched as it is."""
        level = self._level

        def on_value(gradient: Tensor) -> Any:
            result = hook(wrap(gradient, level))
            return None if result is None else front(result, level)

        return self._value.register_hook(on_value)

    def detach_(self) -> Any:
        """Forget the history of the value."""
        self._value.detach_()
        return self

    @property
    def data(self) -> Any:
        """The same values without history."""
        return wrap(self._value.data, self._level)

    @data.setter
    def data(self, value: Any) -> None:
        raise RuntimeError("vmap: data of a tensor that is vmapped over cannot be assigned")

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        raise NotImplementedError("vmap: a tensor that is vmapped over cannot be deep-copied")

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError("vmap: a tensor that is vmapped over cannot be pickled")


def _no_leaf(what: str) -> None:
    raise RuntimeError(
        f"You are attempting to call {what} on a Tensor inside of a function being transformed by "
        "vmap. This is unsupported: use the transforms of func (grad, vjp, jacrev, jacfwd, hessian)"
        " or call it outside."
    )


for _name in [
    "__array__", "__dlpack__", "__dlpack_device__", "data_ptr", "numpy", "pin_memory",
    "register_post_accumulate_grad_hook", "resize_", "set_", "share_memory_", "storage", "tolist",
    "untyped_storage",
]:  # fmt: skip
    setattr(BatchedTensor, _name, _no_memory(_name))


def is_batched(x: Any) -> bool:
    """Whether `x` is a batched tensor of any level."""
    return type(x) is BatchedTensor


def wrap(value: Any, level: Level) -> Any:
    """Hide the first dimension of `value`.

    Levels are nested in the order in which they were entered, whatever the order of the calls.
    """
    if type(value) is BatchedTensor and value._level.index > level.index:
        return wrap(wrap(value._value.movedim(1, 0), level), value._level)
    batched = _C._hide_first_dim(value)
    batched._value = value
    batched._level = level
    return batched


def front(x: Tensor, level: Level) -> Tensor:
    """`x` with the dimension of `level` in front; a view of equal elements if it had none."""
    value, hidden = separate(x, level)
    return value if hidden else value.unsqueeze(0).expand(level.size, *value.shape)


def separate(x: Any, level: Level) -> tuple[Any, bool]:
    """`x` with the dimension that `level` hides in front, and whether there is one."""
    if type(x) is not BatchedTensor:
        return x, False
    if x._level is level:
        return x._value, True
    if x._level.index < level.index:
        return x, False
    value, hidden = separate(x._value, level)
    return (wrap(value.movedim(1, 0), x._level), True) if hidden else (x, False)


def level_of(x: Any) -> Level | None:
    """The innermost level that `x`, a tensor or a sequence of them, is batched at."""
    if type(x) is BatchedTensor:
        return x._level
    found = None
    if type(x) is tuple or type(x) is list:
        for item in x:
            kind = type(item)
            if kind is BatchedTensor:
                level = item._level
            elif kind is tuple or kind is list:
                level = level_of(item)
            else:
                continue
            if level is not None and (found is None or level.index > found.index):
                found = level
    return found


def first_of_finished(x: Any) -> Any:
    """The first element of `x` if it is batched at a level that is over, else `x`."""
    while type(x) is BatchedTensor and x._level not in state.running:
        x = x._value.select(0, 0)
    return x


def flattened(value: Tensor) -> Tensor:
    """`value` with two dimensions, of which the first stays as it is."""
    sizes = value.shape
    return value.reshape(sizes[0], math.prod(sizes[1:]))


def innermost_value(x: Any) -> Any:
    """The tensor that holds the values of all levels."""
    while type(x) is BatchedTensor:
        x = x._value
    return x
