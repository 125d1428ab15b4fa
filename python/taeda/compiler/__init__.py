"""What code asks of a compiler, where there is none: everything runs eagerly.

>>> import taeda
>>> taeda.compiler.is_compiling()
False
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from . import config as config

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "get_default_backend",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_default_backend",
    "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]

T = TypeVar("T")
_said = False


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module as it is: taeda runs eagerly, and says so the first time.

    Args:
        model: what to compile. None returns a decorator.
        fullgraph: whether one graph must hold everything; none is made.
        dynamic: whether sizes may change; they may.
        backend: a compiler's name, or a function that is one; none is called.
        mode: what a compiler would optimise for; not together with ``options``.
        options: a compiler's options; not together with ``mode``.
        disable: True asks for what happens anyway, so nothing is said.

    Raises:
        RuntimeError: ``mode`` and ``options`` are both given, or ``model`` cannot be called.
    """
    if mode is not None and options is not None:
        raise RuntimeError("compile: either mode or options can be specified, but both are")
    if model is None:
        return lambda model: compile(
            model,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise RuntimeError(f"compile: expected a function or module, got {type(model).__name__}")
    if not disable:
        _say_once(backend)
    return model


def _say_once(backend: Any) -> None:
    global _said
    if not _said:
        _said = True
        asked = "" if backend is None else f" (backend={backend!r} is not called)"
        warnings.warn(
            f"compile: taeda runs functions and modules eagerly, as they are{asked}",
            stacklevel=3,
        )


def is_compiling() -> bool:
    """Whether a compiler looks at the code that asks: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether a compiler traces the code that asks: never."""
    return False


def is_exporting() -> bool:
    """Whether the code that asks is being exported: never."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Return a function as it is, or a decorator that does: no compiler looks at it anyway."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: T) -> T:
    """Return a function as it is: a compiler would not look inside."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """No-op: taeda has no CUDA graphs."""


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """The names of the compilers: none."""
    return []


def reset() -> None:
    """Forget what has been compiled: nothing has."""


def assume_constant_result(fn: T) -> T:
    """Return a function as it is: a compiler would call it once."""
    return fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """Return a function as it is, or a decorator that does: it would be compiled once for all calls."""
    return (lambda fn: fn) if fn is None else fn


def substitute_in_graph(original_fn: Callable[..., Any], **options: Any) -> Callable[[T], T]:
    """Return a decorator that returns a function as it is: a compiler would use it for another.

    Raises:
        TypeError: ``original_fn`` is no function.
    """
    if not callable(original_fn):
        raise TypeError(f"substitute_in_graph: expected a function, got {original_fn!r}")
    return lambda fn: fn


_default_backend: Any = "inductor"


def get_default_backend() -> Any:
    """What `set_default_backend` was told; initially ``"inductor"``. None is called."""
    return _default_backend


def set_default_backend(backend: str | Callable[..., Any] | None) -> None:
    """Say which compiler `compile` uses: none is called.

    Args:
        backend: a name, a function, or None for the initial one.
    """
    global _default_backend
    if backend is not None and not isinstance(backend, str) and not callable(backend):
        raise TypeError(f"set_default_backend: expected a name or a function, got {backend!r}")
    _default_backend = "inductor" if backend is None else backend


_guard_collectives = False


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Say whether processes agree on what to compile; what was said before."""
    global _guard_collectives
    before, _guard_collectives = _guard_collectives, enabled
    return before


class set_stance:
    """Say when to compile: nothing is. A call, the context of a block, or a decorator.

    Args:
        stance: ``"default"``, ``"force_eager"`` or another of PyTorch's words.
        skip_guard_eval_unsafe: whether to check less before running what has been compiled.
        force_backend: the compiler to use, with ``"default"`` alone.

    Raises:
        RuntimeError: another word comes with ``force_backend``.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc_info: object) -> None:
        return None

    def __call__(self, fn: T) -> T:
        """Return a function as it is."""
        return fn


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of tensors of one of NumPy arrays: arguments and results are converted.

    >>> import numpy
    >>> taeda.compiler.wrap_numpy(numpy.sort)(taeda.tensor([2.0, 1.0]))
    tensor([1., 2.])
    """
    import functools

    import numpy

    import taeda
    from taeda.utils import _pytree

    def to_array(x: Any) -> Any:
        return x.numpy() if isinstance(x, taeda.Tensor) else x

    def to_tensor(x: Any) -> Any:
        return taeda.as_tensor(x) if isinstance(x, (numpy.ndarray, numpy.generic)) else x

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        given, named = _pytree.tree_map(to_array, (args, kwargs))
        return _pytree.tree_map(to_tensor, fn(*given, **named))

    return wrapped
