"""Stands for ``functorch``, the package beside ``torch``: the transforms, and modules as functions.

`taeda.func` has the transforms; `functional_call` and `stack_module_state` there do what
`make_functional` and `combine_state_for_ensemble` are still used for.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from taeda import Tensor
from taeda.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)
from taeda.nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


class FunctionalModuleWithBuffers(Module):
    """A module given its parameters and buffers at each call: ``f(params, buffers, *args)``."""

    def __init__(self, stateless_model: Module, names: list[str], buffer_names: list[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = names
        self.buffer_names = buffer_names

    @classmethod
    def _create_from(
        cls, model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
        model = copy.deepcopy(model)
        params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        if disable_autograd_tracking:
            model.requires_grad_(False)
        made = cls(model, list(params), list(buffers))
        return made, tuple(params.values()), tuple(buffers.values())

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters and buffers."""
        state = dict(zip(self.param_names, params, strict=True))
        state.update(zip(self.buffer_names, buffers, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers that is given its parameters at each call: ``f(params, *args)``."""

    @classmethod
    def _create_from(  # type: ignore[override]
        cls, model: Module, disable_autograd_tracking: bool = False
    ) -> tuple[Any, tuple[Tensor, ...]]:
        made, params, _ = super()._create_from(model, disable_autograd_tracking)
        return made, params

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """Return a module without buffers as a function of its parameters, and copies of these."""
    if next(iter(model.buffers()), None) is not None:
        raise ValueError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return a module as a function of its parameters and buffers, and copies of these."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return one of several like modules as a function, and the parameters and buffers, stacked."""
    params, buffers = stack_module_state(list(models))
    function = FunctionalModuleWithBuffers._create_from(models[0])[0]
    return function, tuple(params.values()), tuple(buffers.values())
