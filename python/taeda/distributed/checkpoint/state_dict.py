"""States of models and optimizers whose keys are the names of parameters, wrapped or not.

>>> import taeda
>>> from taeda.distributed.checkpoint.state_dict import get_state_dict
>>> model = taeda.nn.Linear(2, 1)
>>> optimizer = taeda.optim.SGD(model.parameters(), lr=0.1)
>>> state, optimizer_state = get_state_dict(model, optimizer)
>>> list(state), optimizer_state["param_groups"][0]["params"]
(['weight', 'bias'], ['weight', 'bias'])
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taeda import Tensor, zeros_like
from taeda.distributed._group import get_rank, is_initialized
from taeda.distributed._objects import broadcast_object_list
from taeda.distributed.tensor import DTensor
from taeda.distributed.tensor._dtensor import part_like
from taeda.nn.module import Module
from taeda.utils._pytree import tree_map

if TYPE_CHECKING:
    from taeda.optim import Optimizer

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_WRAPPERS = ("module.", "_fsdp_wrapped_module.")


@dataclass
class StateDictOptions:
    """How states are made and loaded.

    Attributes:
        full_state_dict: whether it has whole tensors rather than DTensors; with ``cpu_offload``
            in the first process alone, and nothing in others.
        cpu_offload: whether tensors are copied to the CPU.
        ignore_frozen_params: leave out parameters that require no gradient.
        keep_submodule_prefixes: keep the names of modules above, where a part is asked for.
        strict: raise for keys that are missing or too many.
        broadcast_from_rank0: whether the first process alone has the state that is loaded.
        flatten_optimizer_state_dict: one dict, with keys like ``state.0.weight.step``.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _wrappers(model: Module) -> str:
    """What wrappers have put in front of the names of a model's parameters."""
    from taeda.distributed.fsdp import FullyShardedDataParallel
    from taeda.nn.parallel import DataParallel, DistributedDataParallel

    prefix = ""
    while True:
        if isinstance(model, (DataParallel, DistributedDataParallel)):
            prefix, model = prefix + "module.", model.module
        elif isinstance(model, FullyShardedDataParallel):
            prefix, model = prefix + "_fsdp_wrapped_module.", model.module
        else:
            return prefix


def _names(model: Module) -> dict[int, str]:
    """The name of each parameter, by its identity."""
    return {id(p): _wrapperless(name, model) for name, p in model.named_parameters()}


def _wrapperless(name: str, model: Module) -> str:
    """A parameter's name without what wrappers of the model, or of modules below, have added."""
    return name.removeprefix(_wrappers(model)).replace("_fsdp_wrapped_module.", "")


def _prefix(model: Module) -> str:
    """What is in front of the keys of a model's state; that of FSDP is not."""
    return _wrappers(model).replace("_fsdp_wrapped_module.", "")


def get_model_state_dict(
    model: Module,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """A model's state without the prefixes of wrappers.

    Args:
        model: the model, in `DistributedDataParallel` or `FullyShardedDataParallel` or not.
        submodules: leave out all but these modules.
        options: how.
    """
    options = options or StateDictOptions()
    prefix = _prefix(model)
    whole = model.state_dict()
    state = OrderedDict((key.removeprefix(prefix), value) for key, value in whole.items())
    if options.ignore_frozen_params:
        frozen = {
            name.removeprefix(_wrappers(model))
            for name, p in model.named_parameters()
            if not p.requires_grad
        }
        state = OrderedDict((key, state[key]) for key in state if key not in frozen)
    if submodules:
        kept: OrderedDict[str, Any] = OrderedDict()
        for name, module in model.named_modules():
            if module in submodules:
                start = name.removeprefix(_wrappers(model)) + "."
                for key, value in state.items():
                    if key.startswith(start):
                        if not options.keep_submodule_prefixes:
                            key = key.removeprefix(start)
                        kept[key] = value
        state = kept
    return _placed(state, options)


def _placed(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """A state as the options want it: whole tensors, on the CPU."""
    if options.full_state_dict:
        state = tree_map(lambda x: x.full_tensor() if isinstance(x, DTensor) else x, state)
        if options.cpu_offload and is_initialized() and get_rank() != 0:
            return {}
    return tree_map(_copied, state) if options.cpu_offload else state


def _received(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """The state of the first process, where it alone has one."""
    if not options.broadcast_from_rank0 or not is_initialized():
        return state
    sent = [state if get_rank() == 0 else None]
    broadcast_object_list(sent, 0)
    return sent[0] or {}


def _copied(value: Any) -> Any:
    return value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value


def _by_name(model: Module, optimizer: Optimizer, state: Any = None) -> dict[str, Any]:
    """An optimizer's state with names in place of numbers."""
    names = _names(model)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for p in parameters:
        if id(p) not in names:
            raise RuntimeError("a parameter of the optimizer is not one of the model")
    keys = [names[id(p)] for p in parameters]
    state = optimizer.state_dict() if state is None else state
    return {
        "state": {keys[number]: dict(value) for number, value in state["state"].items()},
        "param_groups": [
            {**group, "params": [keys[number] for number in group["params"]]}
            for group in state["param_groups"]
        ],
    }


def _by_number(
    model: Module, optimizer: Optimizer, state: dict[str, Any], strict: bool
) -> dict[str, Any]:
    """What an optimizer loads, of a state with names."""
    names = _names(model)
    groups = {name: group for group in state["param_groups"] for name in group["params"]}
    numbered: dict[int, Any] = {}
    made = []
    count = 0
    for group in optimizer.param_groups:
        keys = [names[id(p)] for p in group["params"]]
        missing = [key for key in keys if key not in groups]
        if missing and strict:
            raise RuntimeError(f"the optimizer's state has no parameters {missing}")
        given: dict[str, Any] = next((groups[key] for key in keys if key in groups), {})
        entry = {k: v for k, v in {**group, **given}.items() if k not in ("params", "param_names")}
        entry["params"] = list(range(count, count + len(keys)))
        made.append(entry)
        for number, key in zip(entry["params"], keys, strict=True):
            if key in state["state"]:
                numbered[number] = dict(state["state"][key])
        count += len(keys)
    return {"state": numbered, "param_groups": made}


def _flattened(state: dict[str, Any]) -> dict[str, Any]:
    flat = {
        f"state.{name}.{key}": value
        for name, values in state["state"].items()
        for key, value in values.items()
    }
    for group in state["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def _unflattened(flat: dict[str, Any], model: Module, optimizer: Optimizer) -> dict[str, Any]:
    names = _names(model)
    state: dict[str, Any] = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        keys = [names[id(p)] for p in group["params"]]
        entry: dict[str, Any] = {"params": keys}
        for key in keys:
            start = f"state.{key}."
            found = {k[len(start) :]: v for k, v in flat.items() if k.startswith(start)}
            if found:
                state["state"][key] = found
            start = f"param_groups.{key}."
            entry.update({k[len(start) :]: v for k, v in flat.items() if k.startswith(start)})
        state["param_groups"].append(entry)
    return state


def _give_state(optimizer: Optimizer) -> None:
    """Make the state of an optimizer that has made no step: by one that changes nothing."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    for p in parameters:
        if p.requires_grad:
            p.grad = zeros_like(p)
    for group in optimizer.param_groups:
        group["lr"] = zeros_like(group["lr"]) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _all(optimizers: Optimizer | Iterable[Optimizer]) -> list[Any]:
    from taeda.optim import Optimizer

    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """The state of optimizers, by the names of the model's parameters.

    Args:
        model: whose parameters the optimizers have.
        optimizers: one or more; their states are joined.
        submodules: leave out the parameters of all but these modules.
        options: how.

    Returns:
        A dict of ``"state"`` and ``"param_groups"``; or a flat one, if the options say so.
    """
    options = options or StateDictOptions()
    joined: dict[str, Any] = {"state": {}, "param_groups": []}
    kept = None
    if submodules:
        names = _names(model)
        kept = {names[id(p)] for module in submodules for p in module.parameters()}
    for optimizer in _all(optimizers):
        _give_state(optimizer)
        state = _by_name(model, optimizer)
        for name, values in state["state"].items():
            if kept is None or name in kept:
                joined["state"][name] = values
        for group in state["param_groups"]:
            if kept is not None:
                group["params"] = [name for name in group["params"] if name in kept]
            joined["param_groups"].append(group)
    joined = _placed(joined, options)
    return _flattened(joined) if options.flatten_optimizer_state_dict and joined else joined


def get_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """`get_model_state_dict` and `get_optimizer_state_dict`."""
    model_state = get_model_state_dict(model, submodules=submodules, options=options)
    if not _all(optimizers):
        return model_state, {}
    return model_state, get_optimizer_state_dict(
        model, optimizers, submodules=submodules, options=options
    )


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load what `get_model_state_dict` has returned, whole or in parts.

    Returns:
        What ``load_state_dict`` returns.
    """
    options = options or StateDictOptions()
    prefix = _prefix(model)
    own = {_wrapperless(name, model): p for name, p in model.named_parameters()}
    state = {
        prefix + key: part_like(value, own[key]) if key in own else value
        for key, value in _received(model_state_dict, options).items()
    }
    return model.load_state_dict(state, strict=options.strict)


def set_optimizer_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load what `get_optimizer_state_dict` has returned.

    Raises:
        RuntimeError: a parameter of an optimizer is missing, and the options do not allow it.
    """
    options = options or StateDictOptions()
    given = _received(optim_state_dict, options)
    for optimizer in _all(optimizers):
        state = given
        if "param_groups" not in state:
            state = _unflattened(state, model, optimizer)
        numbered = _by_number(model, optimizer, state, options.strict)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        numbered["state"] = {
            number: {key: part_like(value, parameters[number]) for key, value in values.items()}
            for number, values in numbered["state"].items()
        }
        optimizer.load_state_dict(numbered)


def set_state_dict(
    model: Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """`set_optimizer_state_dict`, then `set_model_state_dict`, whose result is returned."""
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
