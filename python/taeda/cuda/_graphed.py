"""Functions and modules whose work, forward and backward, is recorded once and replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor, amp
from taeda.autograd import Function
from taeda.cuda._devices import synchronize
from taeda.cuda._graphs import CUDAGraph, graph
from taeda.cuda._pools import graph_pool_handle
from taeda.cuda._streams import Stream, current_stream, stream
from taeda.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["make_graphed_callables"]


class _Recorded:
    """One function's graphs, and the memory that they read and write."""

    def __init__(self, function: Callable[..., Any], sample: Sequence[Any], who: str) -> None:
        self.function, self.sample = function, tuple(sample)
        leaves, _spec = tree_flatten(self.sample)
        if not all(isinstance(leaf, Tensor) for leaf in leaves):
            kinds = sorted({type(leaf).__name__ for leaf in leaves})
            raise TypeError(f"{who}: sample_args must hold tensors only, got {kinds}")
        parameters: tuple[Any, ...] = ()
        if isinstance(function, taeda.nn.Module):
            _check_module(function, who)
            parameters = tuple(function.parameters())
        self.given = len(leaves)
        self.inputs = (*leaves, *parameters)
        self.forward, self.backward = CUDAGraph(), CUDAGraph()
        self.outputs: list[Any] = []
        self.spec: Any = None
        self.grads_out: list[Any] = []  # of the outputs: what backward starts from
        self.grads_in: list[Any] = []  # of the inputs: what it gives

    def warm_up(self, times: int, allow_unused: bool) -> None:
        """Run without recording: libraries make plans, and memory is allocated."""
        for _ in range(times):
            outputs, _spec = tree_flatten(self.function(*self.sample))
            if any(out.requires_grad for out in outputs):
                self._gradients(outputs, [taeda.empty_like(out) for out in outputs], allow_unused)

    def _gradients(self, outputs: list[Any], starts: list[Any], allow_unused: bool) -> Any:
        pairs = [(o, g) for o, g in zip(outputs, starts, strict=True) if o.requires_grad]
        return taeda.autograd.grad(
            outputs=tuple(o for o, _ in pairs),
            inputs=tuple(x for x in self.inputs if x.requires_grad),
            grad_outputs=tuple(g for _, g in pairs),
            allow_unused=allow_unused,
        )

    def record_forward(self, pool: Any) -> None:
        """Record what the function does."""
        with graph(self.forward, pool=pool):
            result = self.function(*self.sample)
        self.outputs, self.spec = tree_flatten(result)

    def record_backward(self, pool: Any, allow_unused: bool) -> None:
        """Record what its backward does, if there is one."""
        self.grads_out = [taeda.empty_like(o) if o.requires_grad else None for o in self.outputs]
        found: Any = ()
        if any(g is not None for g in self.grads_out):
            with graph(self.backward, pool=pool):
                found = self._gradients(self.outputs, self.grads_out, allow_unused)
        left = iter(found)
        self.grads_in = [next(left, None) if x.requires_grad else None for x in self.inputs]
        # The graph of autograd has done its work.
        self.outputs = [out.detach().requires_grad_(out.requires_grad) for out in self.outputs]

    def __call__(self, *args: Any) -> Any:
        leaves, _spec = tree_flatten(args)
        results = _Replay.apply(self, *leaves, *self.inputs[self.given :])
        return tree_unflatten(results, self.spec)


class _Replay(Function):
    """The node of the graph of autograd that runs both recorded graphs."""

    @staticmethod
    def forward(ctx: Any, recorded: _Recorded, *inputs: Any) -> Any:
        """Copy the inputs to where the graph reads them, and replay it."""
        ctx.recorded = recorded
        for static, given in zip(recorded.inputs[: recorded.given], inputs, strict=False):
            if static.data_ptr() != given.data_ptr():
                static.copy_(given)
        recorded.forward.replay()
        fresh = tuple(out.detach() for out in recorded.outputs)
        constant = [f for f, o in zip(fresh, recorded.outputs, strict=True) if not o.requires_grad]
        ctx.mark_non_differentiable(*constant)
        return fresh

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The same for backward."""
        recorded = ctx.recorded
        for static, given in zip(recorded.grads_out, grads, strict=True):
            if static is None:
                continue
            if given is None:
                static.zero_()
            elif static.data_ptr() != given.data_ptr():
                static.copy_(given)
        recorded.backward.replay()
        return (None, *(None if g is None else g.detach() for g in recorded.grads_in))


def _check_module(module: Any, who: str) -> None:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    for name in hooks:
        if getattr(module, name, None):
            raise RuntimeError(
                f"{who}: a module must not have hooks, which a graph would run once; add them "
                "afterwards"
            )
    if any(buffer.requires_grad for buffer in module.buffers()):
        raise RuntimeError(f"{who}: buffers that require a gradient cannot be recorded")


def _replaying(recorded: _Recorded) -> Any:
    """What stands for the function: for a module, itself with another ``forward``."""
    module = recorded.function
    if not isinstance(module, taeda.nn.Module):
        return recorded
    training, before = module.training, module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        # Of the other mode nothing has been recorded.
        same = module.training == training and not kwargs
        return recorded(*args) if same else before(*args, **kwargs)

    setattr(module, "forward", forward)  # noqa: B010
    return module


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: tuple[int, int] | None = None,
) -> Any:
    """Functions or modules that do the same by replaying graphs, forward and backward.

    Calls copy their arguments to where the graphs read them. What they return is overwritten by the
    next call. Modules are given back themselves, and replay in the mode, training or not, in which
    they were when they were recorded.

    Args:
        callables: a function or module, or a tuple of them, in the order in which they will run.
        sample_args: a tuple of tensors as the arguments will be: the same shapes, dtypes and
            ``requires_grad``; for several callables, a tuple of such.
        num_warmup_iters: how often each runs before it is recorded.
        allow_unused_input: whether the results may not depend on one of the arguments.
        pool: whose memory to use, as for :class:`CUDAGraph`.

    Raises:
        TypeError: there is something else than tensors in ``sample_args``.
        RuntimeError: a module has hooks, or autocast keeps converted parameters.

    Example:
        >>> import taeda
        >>> if taeda.cuda.is_available():
        ...     model, x = taeda.nn.Linear(3, 2).cuda(), taeda.randn(5, 3, device="cuda")
        ...     model = taeda.cuda.make_graphed_callables(model, (x,))
        ...     model(x).sum().backward()
    """
    who = "cuda.make_graphed_callables"
    if taeda.is_autocast_enabled("cuda") and amp.autocast_mode.is_autocast_cache_enabled():
        raise RuntimeError(
            f"{who}: autocast must not keep converted parameters, which are recorded once; use "
            "cache_enabled=False"
        )
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    everything = [_Recorded(f, s, who) for f, s in zip(functions, samples, strict=True)]
    pool = graph_pool_handle() if pool is None else pool
    synchronize()
    side = Stream()
    side.wait_stream(current_stream())
    with stream(side):
        for recorded in everything:
            recorded.warm_up(num_warmup_iters, allow_unused_input)
    current_stream().wait_stream(side)
    synchronize()
    for recorded in everything:
        recorded.record_forward(pool)
    for recorded in reversed(everything):  # as backward will run
        recorded.record_backward(pool, allow_unused_input)
    graphed = tuple(map(_replaying, everything))
    return graphed[0] if single else graphed
