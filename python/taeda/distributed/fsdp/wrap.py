"""Which modules `FullyShardedDataParallel` wraps one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from taeda.nn.module import Module

__all__ = [
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap all modules."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wrap modules that a function says yes to.

    Args:
        module: a module.
        recurse: whether the question is to look below it, which is always done.
        nonwrapped_numel: the number of elements of its parameters that are not wrapped.
        lambda_fn: the function.
    """
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    transformer_layer_cls: set[type[Module]],
) -> bool:
    """Wrap modules of some classes; the arguments are those of `lambda_auto_wrap_policy`."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None,
    exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:
    """Wrap modules that have enough parameters.

    Args:
        module: a module.
        recurse: whether the question is to look below it.
        nonwrapped_numel: the number of elements of its parameters that are not wrapped.
        min_num_params: the number to wrap.
        force_leaf_modules: classes below which nothing is wrapped; attention by default.
        exclude_wrap_modules: classes that are not wrapped; lists and dicts by default.
    """
    from taeda import nn

    large = nonwrapped_numel >= min_num_params
    if recurse:
        leaves = {nn.MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
        return large and not isinstance(module, tuple(leaves))
    excluded = {nn.ModuleList, nn.ModuleDict} if exclude_wrap_modules is None else (
        exclude_wrap_modules
    )  # fmt: skip
    return large and not isinstance(module, tuple(excluded))


class ModuleWrapPolicy:
    """Wrap modules of some classes.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._classes = tuple(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._classes)


def _wrap_below(module: Module, policy: Any, ignored: set[Module], wrap: Any) -> int:
    """Wrap modules below one, and return how many elements of parameters are now wrapped."""
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        total = sum(p.numel() for p in child.parameters())
        if policy(module=child, recurse=True, nonwrapped_numel=total):
            inner = _wrap_below(child, policy, ignored, wrap)
            if policy(module=child, recurse=False, nonwrapped_numel=total - inner):
                setattr(module, name, wrap(child))
                inner = total
            wrapped += inner
    return wrapped
