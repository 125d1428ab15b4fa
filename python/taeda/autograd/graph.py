"""Looking at the recorded graph and hooking into it."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from taeda import _C
from taeda._C import Tensor
from taeda._C import _Node as Node
from taeda.autograd import _run

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes: result `output_nr` of `node`. An input of `autograd.grad`."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of `tensor`, which must require a gradient. It does not keep the tensor alive.

    >>> import taeda
    >>> x = taeda.ones(2, requires_grad=True)
    >>> y = x * 3
    >>> edge = taeda.autograd.graph.get_gradient_edge(y)
    >>> taeda.autograd.grad(y.sum(), edge)
    (tensor([1., 1.]),)
    """
    (tensor,) = _run.with_history((tensor,))
    return GradientEdge(*_C._gradient_edge(tensor))


class _Hooks(threading.local):
    entered = 0  # blocks of saved_tensors_hooks
    forbidden: str | None = None
    mutable = False  # within allow_mutation_on_saved_tensors


_hooks = _Hooks()


class saved_tensors_hooks:
    """Within the block, tensors that operations save pass through a pair of functions.

    Args:
        pack_hook: given a tensor when it is saved, returns anything.
        unpack_hook: given that, returns the tensor when a derivative needs it.

    >>> import taeda
    >>> kept = []
    >>> with taeda.autograd.graph.saved_tensors_hooks(
    ...     lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i]
    ... ):
    ...     x = taeda.tensor(3.0, requires_grad=True)
    ...     y = x.exp()
    >>> len(kept)
    1
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if _hooks.forbidden is not None:
            raise RuntimeError(_hooks.forbidden)
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)
        _hooks.entered += 1

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_saved_hooks()
        _hooks.entered -= 1


class save_on_cpu(saved_tensors_hooks):
    """Within the block, saved tensors are kept in the CPU's memory until they are needed.

    Args:
        pin_memory: keep them where a device copies from by itself, which is then not waited for.
            RuntimeError where there is no such device.
        device_type: the device for which memory is pinned.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        import taeda

        if pin_memory and not taeda.get_device_module(device_type).is_available():
            raise RuntimeError(f"save_on_cpu(): there is no {device_type} to pin memory for")

        def pack(t: Tensor) -> tuple[Any, Tensor]:
            if not pin_memory:
                return t.device, t.cpu()
            return t.device, taeda.empty_like(t, device="cpu", pin_memory=True).copy_(t)

        super().__init__(pack, lambda kept: kept[1].to(kept[0], non_blocking=pin_memory))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block, `saved_tensors_hooks` raises a RuntimeError with this message.

    Raises:
        RuntimeError: such hooks are set already.
    """
    if _hooks.entered:
        raise RuntimeError(error_message)
    before, _hooks.forbidden = _hooks.forbidden, error_message
    try:
        yield
    finally:
        _hooks.forbidden = before


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Say that a tensor's memory has been changed, so that backward refuses what it saved of it.

    Args:
        tensor: a tensor, or several, whose memory something else than an operation has written.

    >>> import taeda
    >>> x = taeda.ones(2)
    >>> taeda.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in (tensor,) if isinstance(tensor, Tensor) else tuple(tensor):
        # A view of nothing shares the version of the memory.
        t.detach().as_strided((0,), (1,)).zero_()


class _Mutation:
    """The state of an `allow_mutation_on_saved_tensors` block: whether it is still open."""

    open = True


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Mutation]:
    """Within the block, tensors that are saved may be changed in place before backward.

    Each is copied when it is saved. Backward must run within the same block.

    Raises:
        RuntimeError: such a block is open in this thread already.

    >>> import taeda
    >>> a = taeda.ones(2, requires_grad=True)
    >>> with taeda.autograd.graph.allow_mutation_on_saved_tensors():
    ...     b = a.clone()
    ...     y = (b * b).sum()
    ...     _ = b.zero_()
    ...     y.backward()
    >>> a.grad
    tensor([2., 2.])
    """
    if _hooks.mutable:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    block = _Mutation()

    def unpack(copy: Tensor) -> Tensor:
        assert block.open, "backward must run within the allow_mutation_on_saved_tensors block"
        return copy

    _hooks.mutable = True
    try:
        with saved_tensors_hooks(lambda t: t.clone(), unpack):
            yield block
    finally:
        _hooks.mutable = block.open = False


class _Handles:
    """Removes several hooks together."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take all hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> _Handles:
    """Call `fn` once per backward, when the gradients of `tensors` have been computed.

    Args:
        tensors: tensors that require gradients.
        fn: with mode "all", called with the list of gradients, as soon as the last has been
            computed; where some tensors have none, called at the end of the backward, with None
            for those. With mode "any", called with the first gradient that is computed.
        mode: "all" or "any".

    Returns:
        A handle with `remove()`.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook(): mode must be 'all' or 'any', got {mode!r}")
    running: weakref.ref[_Received] | None = None

    def hook_for(i: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            nonlocal running
            received = running() if running else None
            if received is None:
                received = _Received(len(tensors), fn if mode == "all" else None)
                running = weakref.ref(received)
                _C._queue_callback(received)
            if received.done:
                return
            if mode == "any":
                received.done = True
                fn(grad)
            else:
                received.add(i, grad)

        return hook

    return _Handles([tensor.register_hook(hook_for(i)) for i, tensor in enumerate(tensors)])


class _Received:
    """The gradients of several tensors that a backward pass has computed.

    The pass alone holds it, as a callback for its end: one that an exception ends leaves nothing.
    """

    def __init__(self, count: int, fn: Callable[..., None] | None) -> None:
        self.grads: list[Tensor | None] = [None] * count
        self.left, self.fn, self.done = count, fn, False

    def add(self, i: int, grad: Tensor) -> None:
        self.left -= self.grads[i] is None
        self.grads[i] = grad
        if self.left == 0:
            self()

    def __call__(self) -> None:
        if self.fn is not None and not self.done:
            self.done = True
            grads, self.grads = self.grads, []
            self.fn(grads)


@functools.cache
def _names_of_arguments() -> list[str]:
    """The names that operations have for what they may save."""
    import inspect

    names = {"result", "self"}
    for op in vars(_C.ops).values():
        with contextlib.suppress(TypeError, ValueError):
            names.update(inspect.signature(op).parameters)
    return sorted(names)


def _dir_of_node(self: Any) -> list[str]:
    """Attributes of a node, with ``_saved_self`` and the like: what its operation has saved."""
    found = object.__dir__(self)
    for name in _names_of_arguments():
        try:
            getattr(self, f"_saved_{name}")
        except AttributeError:
            continue
        except RuntimeError:
            pass  # it has been freed
        found = [*found, f"_saved_{name}"]
    return sorted(found)


setattr(_C._Node, "__dir__", _dir_of_node)  # noqa: B010
