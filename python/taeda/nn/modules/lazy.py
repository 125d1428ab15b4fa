"""Layers that learn the shapes of their parameters from the first input."""

from __future__ import annotations

import itertools
from typing import Any

from taeda.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Put before a Module among the bases of a class whose parameters have no shape at first.

    The subclass sets `cls_to_become` and defines `initialize_parameters(*args, **kwargs)`, which
    is called with the arguments of the first forward and materializes the parameters. Loading a
    state_dict materializes them too.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        module: Any = self
        self._load_hook = module.register_load_state_dict_pre_hook(_take_shapes)
        self._initialize_hook = module.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize the parameters; a subclass must define it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        module: Any = self
        return any(
            is_lazy(value)
            for value in itertools.chain(module._parameters.values(), module._buffers.values())
        )


def give_shape(module: Any, name: str, shape: Any) -> None:
    """Materialize a parameter or buffer of a module; a buffer becomes a plain tensor."""
    value = module._parameters.get(name)
    if value is None:
        value = module._buffers[name]
        value.materialize(shape)
        module._buffers[name] = value.detach()
    else:
        value.materialize(shape)


def _take_shapes(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    """Before loading: materialize each parameter with the shape of what is loaded."""
    for name, value in [*module._parameters.items(), *module._buffers.items()]:
        given = state_dict.get(prefix + name)
        if is_lazy(value) and given is not None and not is_lazy(given):
            give_shape(module, name, given.shape)


def _initialize(module: Any, args: Any, kwargs: Any) -> None:
    """Before the first forward: materialize the parameters and become the ordinary class."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"{type(module).__name__}.initialize_parameters left parameters without a shape"
        )
    module._initialize_hook.remove()
    module._load_hook.remove()
    del module._initialize_hook, module._load_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become
