"""Derivatives of functions as functions, and functions of modules' state.

The transforms `grad`, `vjp`, `jvp` and so on take a function and return one, or a product with its
Jacobian. They can be nested in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.func._gradients import grad, grad_and_value, jvp, linearize, vjp
from taeda.func._jacobians import hessian, jacfwd, jacrev
from taeda.func._vmap import vmap
from taeda.nn import Module
from taeda.nn.utils import stateless

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of some of its parameters and buffers.

    Args:
        module: the module, which is left as it was.
        parameter_and_buffer_dicts: one dictionary, or several without a common key, from paths as
            in `named_parameters()` to the tensors to use.
        args, kwargs, tie_weights, strict: as for `nn.utils.stateless.functional_call`.

    Raises:
        ValueError: a key is in several dictionaries, or they are no dictionaries.

    >>> layer = taeda.nn.Linear(2, 1)
    >>> state = {"weight": taeda.ones(1, 2), "bias": taeda.zeros(1)}
    >>> taeda.func.functional_call(layer, state, (taeda.tensor([[3.0, 4.0]]),))
    tensor([[7.]])
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Mapping):
        return stateless.functional_call(
            module, given, args, kwargs, tie_weights=tie_weights, strict=strict
        )
    if not isinstance(given, Sequence) or not all(isinstance(part, Mapping) for part in given):
        raise ValueError(
            "functional_call: Expected parameter_and_buffer_dicts to be a dictionary or a sequence "
            f"of dictionaries, got {type(given).__name__}"
        )
    names = [name for part in given for name in part]
    several = sorted({name for name in names if names.count(name) > 1})
    if several:
        raise ValueError(
            f"{several} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        )
    together = {name: value for part in given for name, value in part.items()}
    return stateless.functional_call(
        module, together, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let batch normalisation in a module use the statistics of each batch alone.

    Running statistics are updated in place, which `vmap` cannot do for each element of a batch.

    Args:
        root: the module; it and all modules in it are changed in place.

    Returns:
        root.

    >>> layer = taeda.func.replace_all_batch_norm_modules_(taeda.nn.BatchNorm1d(3))
    >>> print(layer.running_mean, layer.track_running_stats)
    None False
    """
    for module in root.modules():
        if isinstance(module, taeda.nn.modules.batchnorm._BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and the buffers of several modules of one kind.

    Args:
        models: modules of the same class, all in training or all in evaluation mode.

    Returns:
        two dictionaries from paths to tensors with one more dimension in front: the parameters, as
        new leaves that require grad as the first module's do, and the buffers.

    Raises:
        RuntimeError: there is no module, or they differ in class or mode.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    kinds = {type(model) for model in models}
    if len(kinds) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to be of the same class, got "
            f"{sorted(kind.__name__ for kind in kinds)}"
        )
    parameters = {}
    for name, first in models[0].named_parameters():
        values = [model.get_parameter(name).detach() for model in models]
        parameters[name] = taeda.stack(values).requires_grad_(first.requires_grad)
    buffers = {
        name: taeda.stack([model.get_buffer(name) for model in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function that gives what another one gives, with the changes that it makes.

    A compiler would see operations without changes in place. Here nobody looks at them, so it is
    the function itself.

    Args:
        func: the function.
        remove: ``"mutations"`` or ``"mutations_and_views"``.

    Raises:
        RuntimeError: ``remove`` is something else.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): valid options for argument \"remove\" are "
            "remove='mutations', or remove='mutations_and_views'. Got: "
            f"{remove!r}"
        )
    return func


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return what a tensor within a transform stands for, with the dimensions that are mapped over.

    Args:
        tensor: a tensor that a function sees within `vmap`; any other is returned as it is.
        recurse: look through several of them.
    """
    from taeda._batching.tensor import BatchedTensor

    while isinstance(tensor, BatchedTensor):
        tensor = tensor._value
        if not recurse:
            break
    return tensor
