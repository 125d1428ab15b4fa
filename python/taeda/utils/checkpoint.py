"""Trade time for memory: forget what part of a network computed, and compute it again in backward.

Chen, Xu, Zhang, Guestrin: Training deep nets with sublinear memory cost, 2016.

>>> import taeda
>>> from taeda.utils.checkpoint import checkpoint
>>> block = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.Tanh(), taeda.nn.Linear(8, 4))
>>> x = taeda.ones(2, 4, requires_grad=True)
>>> checkpoint(block, x, use_reentrant=False).sum().backward()
>>> x.grad.shape
taeda.Size([2, 4])
"""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C
from taeda.autograd import Function
from taeda.autograd.graph import saved_tensors_hooks
from taeda.nn.modules.container import Sequential
from taeda.random import fork_rng, rng_states, set_rng_states
from taeda.utils._selective import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from taeda import Tensor

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """A function saved other tensors when it was computed again than it did at first."""


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts that do nothing, for the first computation and for the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


_early_stop: bool | None = None  # set by set_checkpoint_early_stop


class set_checkpoint_early_stop:
    """Within the block, whether recomputing stops once it has what backward needs, whatever
    ``checkpoint`` is told; without ``use_reentrant`` only.
    """

    def __init__(self, enable: bool) -> None:
        self._enable = enable

    def __enter__(self) -> None:
        global _early_stop
        self._before, _early_stop = _early_stop, self._enable

    def __exit__(self, *exc_info: object) -> None:
        global _early_stop
        _early_stop = self._before


_debug: bool | None = None  # set by set_checkpoint_debug_enabled


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Within the block, whether checkpoints are debugged, whatever ``checkpoint`` is told; None
    leaves that to it.
    """
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input requires a gradient, so that none would flow."""
    if not any(isinstance(x, taeda.Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Inputs cut off from their graph, that require gradients where they did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got: {type(inputs).__name__}")
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, taeda.Tensor) else x
        for x in inputs
    )


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The CUDA devices that tensors in ``args`` are on, and the states of their random streams."""
    tensors = (x for x in args if isinstance(x, taeda.Tensor))
    devices = list(dict.fromkeys(x.get_device() for x in tensors if x.is_cuda))
    return devices, [taeda.cuda.get_rng_state(device) for device in devices]


def set_device_states(
    devices: list[int], states: list[Tensor], *, device_type: str | None = None
) -> None:
    """Set what ``get_device_states`` gave.

    Raises:
        RuntimeError: states of devices are given that are not there.
    """
    if (devices or states) and (device_type not in (None, "cuda") or not taeda.cuda.is_available()):
        raise RuntimeError(
            f"set_device_states: got states of {len(states)} devices "
            f"({device_type or 'cuda'}), but there is none beside the CPU"
        )
    for device, state in zip(devices, states, strict=True):
        taeda.cuda.set_rng_state(state, device)


@contextlib.contextmanager
def _random_state(state: Any) -> Iterator[None]:
    """Within the block, random numbers go on from `rng_states`; None leaves them."""
    if state is None:
        yield
        return
    with fork_rng():
        set_rng_states(state)
        yield


@contextlib.contextmanager
def _autocast_state(state: tuple[Any, ...]) -> Iterator[None]:
    """Within the block, autocast is as `_C._autocast()` said it was.

    What is converted in the block is forgotten after it, unless an autocast block is around it.
    """
    before = _C._autocast()
    _C._set_autocast(*state)
    try:
        yield
    finally:
        _C._set_autocast(*before)
        if not (before[0] or before[2]):
            _C._clear_autocast_cache()


class CheckpointFunction(Function):
    """The reentrant form: a node of the graph, whose backward runs another backward."""

    @staticmethod
    def forward(
        ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any
    ) -> Any:
        """Compute without a graph."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state = rng_states() if preserve_rng_state else None
        ctx.autocast = _C._autocast()
        ctx.inputs = [None if isinstance(a, taeda.Tensor) else a for a in args]
        ctx.positions = [i for i, a in enumerate(args) if isinstance(a, taeda.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.positions))
        with taeda.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Compute again, with a graph, and run it backward."""
        if not _C._backward_fills_all_leaves():
            raise RuntimeError(
                "checkpoint: with use_reentrant=True, gradients cannot be asked for by "
                "autograd.grad() or backward(inputs=...); use use_reentrant=False, or backward() "
                "without inputs"
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with _random_state(ctx.state), _autocast_state(ctx.autocast), taeda.enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, taeda.Tensor):
            outputs = (outputs,)
        pairs = [
            (output, grad)
            for output, grad in zip(outputs, grads, strict=True)
            if isinstance(output, taeda.Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        taeda.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        found = (x.grad if isinstance(x, taeda.Tensor) else None for x in detached)
        return (None, None, *found)


class _StopRecomputationError(Exception):
    """Everything that backward needs has been computed again."""


class _Frame:
    """The state of a non-reentrant checkpoint: how to recompute its tensors.

    Saving puts a number in the graph for each tensor. The first number that backward asks for
    brings all of them back; each leaves when it is asked for.
    """

    def __init__(
        self,
        recompute: Callable[[], Any],
        check: Callable[[Tensor], Any],
        early_stop: bool,
        debug: bool,
    ) -> None:
        self._recompute = recompute
        self._check = check
        self._early_stop = early_stop
        self._metadata: list[Any] = []
        self._tensors: dict[int, Tensor] = {}
        self._saved: list[str] | None = [] if debug else None

    def pack(self, tensor: Tensor) -> int:
        """Note a tensor that is saved at first."""
        self._metadata.append(self._check(tensor))
        if self._saved is not None:
            self._saved.append(_place_of(tensor))
        return len(self._metadata) - 1

    def unpack(self, number: int) -> Tensor:
        """The tensor again."""
        if number not in self._tensors:
            self._compute_again()
        return self._tensors.pop(number)

    def _failure(self, text: str, again: list[str]) -> CheckpointError:
        if self._saved is None:
            return CheckpointError(
                f"{text}\nTo see where each tensor was saved, both times, give checkpoint() "
                "debug=True, or use set_checkpoint_debug_enabled(True)"
            )
        lists = (("the original forward", self._saved), ("the recomputation", again))
        for when, places in lists:
            lines = [f"\n  {i}: {place}" for i, place in enumerate(places)]
            text += f"\nTensors saved during {when}:" + "".join(lines or ["\n  none"])
        return CheckpointError(text)

    def _compute_again(self) -> None:
        count = 0
        again: list[str] = []

        def keep(tensor: Tensor) -> None:
            nonlocal count
            if self._saved is not None:
                again.append(_place_of(tensor))
            if count >= len(self._metadata):
                count += 1
                return
            found = self._check(tensor)
            if found != self._metadata[count]:
                raise self._failure(
                    "checkpoint: Recomputed values for the following tensors have different "
                    f"metadata than during the forward pass. tensor at position {count}: saved "
                    f"metadata: {self._metadata[count]}, recomputed metadata: {found}",
                    again,
                )
            self._tensors[count] = tensor.detach()
            count += 1
            if self._early_stop and count == len(self._metadata):
                raise _StopRecomputationError

        def refuse(_: None) -> Tensor:
            raise CheckpointError(
                "checkpoint: the graph of a recomputation was run backward while it was built; "
                "the function must not call backward or autograd.grad on its own results"
            )

        try:
            with saved_tensors_hooks(keep, refuse), taeda.enable_grad():
                self._recompute()
        except _StopRecomputationError:
            return
        if count != len(self._metadata):
            raise self._failure(
                "checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation. Number of tensors saved during forward: "
                f"{len(self._metadata)}. Number of tensors saved during recomputation: {count}.",
                again,
            )


def _place_of(tensor: Tensor) -> str:
    """What is being saved, and the innermost line outside of this package that has it saved."""
    import traceback

    package = os.path.dirname(os.path.dirname(__file__)) + os.sep
    kind = f"{str(tensor.dtype).rpartition('.')[2]} {list(tensor.shape)}"
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith(package):
            return f'{kind} in File "{frame.filename}", line {frame.lineno}: {frame.line}'
    return kind


def _describe(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_CHECKS: dict[str, Callable[[Any], Any]] = {"default": _describe, "none": lambda _: None}


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """``function(*args, **kwargs)``, of which backward computes the inner values again.

    Args:
        function: what to compute; it must do the same both times.
        args: its arguments, which are kept.
        use_reentrant: False (recommended) records the graph as usual, with numbers in place of
            saved tensors. True records one node, whose backward runs a backward of its own: inputs
            inside lists get no gradients, keyword arguments are not taken, and neither is
            ``autograd.grad``. None warns, and stands for True.
        context_fn: gives two contexts, one to compute in at first and one to compute in again;
            without reentrance only.
        determinism_check: ``"default"`` compares shapes, dtypes and devices of the values computed
            again with those at first; ``"none"`` does not.
        debug: have an error list where every tensor was saved, the first time and again, which
            takes a look at the stack for each; without reentrance only.
        early_stop: stop computing again when the last value that is needed is there.
        kwargs: the function's keyword arguments; ``preserve_rng_state`` (True by default) is taken
            out, and says whether random numbers are the same both times.

    Returns:
        What the function returns.

    Raises:
        ValueError: an option that the form does not take.
        CheckpointError: in backward, where the function did something else the second time.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint: the use_reentrant parameter should be passed explicitly; "
            "use_reentrant=False is recommended, True is what is taken now",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError(
                f"checkpoint: Unexpected keyword arguments: {', '.join(kwargs)}; the reentrant "
                "form takes none"
            )
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "checkpoint: context_fn and debug are only supported when use_reentrant=False"
            )
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in _CHECKS:
        raise ValueError(
            f"checkpoint: determinism_check must be one of {sorted(_CHECKS)}, got "
            f"{determinism_check!r}"
        )
    first_context, second_context = context_fn()
    state = rng_states() if preserve else None
    autocast = _C._autocast()

    def recompute() -> None:
        with _random_state(state), _autocast_state(autocast), second_context:
            function(*args, **kwargs)

    if _early_stop is not None:
        early_stop = _early_stop
    debug = debug if _debug is None else _debug
    frame = _Frame(recompute, _CHECKS[determinism_check], early_stop, debug)
    if not taeda.is_grad_enabled():
        return function(*args, **kwargs)
    with saved_tensors_hooks(frame.pack, frame.unpack), first_context:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Functions one after the other, of which all but the last segment are checkpointed.

    Args:
        functions: a ``Sequential``, or a list of functions of one argument.
        segments: in how many parts to cut them.
        input: the first function's argument.
        use_reentrant: as for :func:`checkpoint`.
        kwargs: ``preserve_rng_state``, as for :func:`checkpoint`.

    Returns:
        What the last function returns.

    Raises:
        ValueError: other keyword arguments.
    """
    if use_reentrant is None:
        warnings.warn(
            "checkpoint_sequential: the use_reentrant parameter should be passed explicitly; "
            "use_reentrant=False is recommended, True is what is taken now",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(
            f"checkpoint_sequential: Unexpected keyword arguments: {', '.join(kwargs)}"
        )
    if isinstance(functions, Sequential):
        functions = list(functions.children())
    length = len(functions) // segments

    def run(part: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for function in part:
                x = function(x)
            return x

        return forward

    for i in range(segments - 1):
        part = run(functions[i * length : (i + 1) * length])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return run(functions[(segments - 1) * length :])(input)
