"""Every function that PyTorch lets classes override reports itself to ``__torch_function__``."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import taeda

torch = pytest.importorskip("torch")

_SPACES = ("", "nn.functional", "linalg", "special", "fft", "functional", "Tensor")

# Methods that PyTorch has report, and taeda does not: those that say what a tensor is like, give its
# values to Python, or change what is not values.
_QUIET = [
    *("backward", "data_ptr", "detach_", "dim", "element_size", "get_device", "is_complex"),
    *("is_conj", "is_contiguous", "is_floating_point", "is_inference", "is_neg", "is_pinned"),
    *("is_same_size", "is_set_to", "is_shared", "is_signed", "item", "numel", "register_hook"),
    *("register_post_accumulate_grad_hook", "requires_grad_", "resize_", "retain_grad"),
    *("share_memory_", "size", "storage_offset", "tolist", "untyped_storage"),
]


def _at(lib: Any, path: str) -> Any:
    for part in filter(None, path.split(".")):
        lib = getattr(lib, part)
    return lib


def _recorder(lib: Any) -> tuple[Any, list[Any]]:
    """A tensor of a class that notes which functions ask it, and computes nothing."""
    seen: list[Any] = []

    class Recorder(lib.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> int:
            seen.append(func)
            return 0

    return lib.ones(2, 2).as_subclass(Recorder), seen


Fills = tuple[Callable[[Any], Any], ...]

# What an argument may be, made of the tensor that records.
_KINDS: Fills = (
    lambda t: t,
    lambda t: 1,
    lambda t: [t, t],
    lambda t: (1, 1),
    lambda t: 0.5,
    lambda t: "sum",
    lambda t: True,
)


def _fills(stand_in: Callable[..., Any]) -> Iterator[Fills]:
    """Arguments to try: of those without a default, the first is a tensor, or several of them."""
    needed = 0
    for parameter in inspect.signature(stand_in).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL or (
            parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        ):
            needed += 1
    for first in (_KINDS[0], _KINDS[2]):
        yield (first, *[_KINDS[0]] * (needed - 1))
        for kinds in itertools.product(_KINDS, repeat=min(max(needed - 1, 1), 4)):
            yield (first, *kinds, *[_KINDS[1]] * (needed - 1 - len(kinds)))
    yield _KINDS[5], _KINDS[0]  # einsum


def _reports(lib: Any, path: str, name: str, fills: Fills) -> bool:
    """Whether the function is the first that is reported."""
    tensor, seen = _recorder(lib)
    function = getattr(_at(lib, path), name)
    with contextlib.suppress(Exception):
        function(*[fill(tensor) for fill in fills])
    return bool(seen) and seen[0] == function


def _functions(path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The names that both libraries have in a module, with the arguments that PyTorch's take."""
    stand_ins = torch.overrides.get_testing_overrides()
    theirs, ours = _at(torch, path), _at(taeda, path)
    for name in dir(theirs):
        if name.startswith("_"):
            continue
        function = getattr(theirs, name)
        try:
            stand_in = stand_ins.get(function)
        except TypeError:  # what cannot be a key
            continue
        if stand_in is not None and callable(getattr(ours, name, None)):
            yield name, stand_in


@pytest.mark.parametrize("path", _SPACES)
def test_functions_report_themselves(path: str) -> None:
    functions = list(_functions(path))
    asked, missing = 0, []
    for name, stand_in in functions:
        fills = next((f for f in _fills(stand_in) if _reports(torch, path, name, f)), None)
        asked += fills is not None
        if fills is not None and not _reports(taeda, path, name, fills):
            missing.append(name)
    assert asked > 0.9 * len(functions)
    assert missing == (_QUIET if path == "Tensor" else [])
