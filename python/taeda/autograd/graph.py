"""Looking at the recorded graph and hooking into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from taeda import _C
from taeda._C import Tensor
from taeda._C import _Node as Node

__all__ = [
    "GradientEdge",
    "Node",
    "get_gradient_edge",
    "register_multi_grad_hook",
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
    return GradientEdge(*_C._gradient_edge(tensor))


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
        _C._push_saved_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc_info: object) -> None:
        _C._pop_saved_hooks()


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
    # What has come in during the backward that is running; emptied when it ends.
    grads: dict[int, Tensor] = {}
    state = {"running": False, "done": False}

    def call() -> None:
        state["done"] = True
        fn([grads.get(i) for i in range(len(tensors))])

    def end() -> None:
        try:
            if mode == "all" and not state["done"]:
                call()
        finally:
            grads.clear()
            state.update(running=False, done=False)

    def hook_for(i: int) -> Callable[[Tensor], None]:
        def hook(grad: Tensor) -> None:
            if not state["running"]:
                state["running"] = True
                _C._queue_callback(end)
            if state["done"]:
                return
            grads[i] = grad
            if mode == "any":
                state["done"] = True
                fn(grad)
            elif len(grads) == len(tensors):
                call()

        return hook

    return _Handles([tensor.register_hook(hook_for(i)) for i, tensor in enumerate(tensors)])
