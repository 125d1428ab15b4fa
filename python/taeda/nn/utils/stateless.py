"""Modules called with other parameters and buffers than their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from taeda._C import Tensor
from taeda.nn.module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of some of its parameters and buffers.

    The module is left as it was, whatever happens. A buffer that the forward replaces is replaced
    in `parameters_and_buffers`, if it came from there.

    Args:
        module: the module.
        parameters_and_buffers: paths, as in `named_parameters()`, to the tensors to use.
        args: the positional arguments: a tuple, or one argument.
        kwargs: the keyword arguments.
        tie_weights: where a parameter has several paths, one of them is enough to replace it.
        strict: every parameter and buffer must be given, and nothing else.

    Raises:
        TypeError: a value is neither a tensor nor None.
        ValueError: tied parameters are given different tensors.
        RuntimeError: `strict`, and a key is missing or unexpected.

    >>> layer = taeda.nn.Linear(2, 2)
    >>> zeros = {"weight": taeda.zeros(2, 2), "bias": taeda.zeros(2)}
    >>> taeda.nn.utils.stateless.functional_call(layer, zeros, (taeda.ones(1, 2),))
    tensor([[0., 0.]])
    """
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    if not isinstance(parameters_and_buffers, Mapping):
        raise TypeError(
            "functional_call: parameters_and_buffers must be a dict, got "
            f"{type(parameters_and_buffers).__name__}"
        )
    with _reparametrize_module(
        module, parameters_and_buffers, tie_weights=tie_weights, strict=strict
    ):
        return module(*arguments, **(kwargs or {}))


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: Mapping[str, Tensor],
    *,
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """Within, the module has other tensors in place of some of its parameters and buffers.

    What `functional_call` says of its arguments holds here.
    """
    given = dict(parameters_and_buffers)
    locations = _locations(module)
    values = _with_tied(given, locations) if tie_weights else given
    if strict:
        _check_keys(module, values, locations)
    for name, value in values.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"functional_call: {name} is {value!r}, not an instance of Tensor")
    places = {}
    for name in values:
        places[name] = locations.get(name) or _place(module, name)
    own = {}
    try:
        for name, value in values.items():
            table, key = places[name]
            own[name] = table.get(key, _ABSENT)
            table[key] = value
        yield
    finally:
        for name, value in own.items():
            table, key = places[name]
            now = table.get(key, _ABSENT)
            if (
                name in given
                and now is not _ABSENT
                and now is not given[name]
                and hasattr(parameters_and_buffers, "update")
            ):
                parameters_and_buffers.update({name: now})
            if value is not _ABSENT:
                table[key] = value
            elif now is not _ABSENT:
                del table[key]


_ABSENT = object()


def _locations(module: Module) -> dict[str, tuple[Any, str]]:
    """For each path of a parameter or buffer, the table that holds it and its name there."""
    found = {}

    def look(owner: Module, prefix: str, above: tuple[Module, ...]) -> None:
        for table in (owner._parameters, owner._buffers):
            for key, value in table.items():
                if value is not None:
                    found[prefix + key] = (table, key)
        above = (*above, owner)
        for name, child in owner._modules.items():
            # A module within itself has no end of paths: those that lead through it once will do.
            if child is not None and all(child is not one for one in above):
                look(child, f"{prefix}{name}.", above)

    look(module, "", ())
    return found


def _place(module: Module, name: str) -> tuple[Any, str]:
    """The dictionary of a path that is no parameter or buffer, and the name in it.

    A plain attribute is replaced, and a name that nothing has is there for the call alone.
    """
    path, _, key = name.rpartition(".")
    if not key:
        raise KeyError(f"functional_call: a tensor's name can't be empty, got {name!r}")
    owner: Any = module
    for part in path.split(".") if path else ():
        owner = owner._modules.get(part)
        if owner is None:
            raise AttributeError(f"functional_call: {name}: {type(module).__name__} has no {path}")
    for table in (owner._parameters, owner._buffers):
        if key in table:
            return table, key
    present = getattr(owner, key, None)
    if present is not None and not isinstance(present, Tensor):
        raise TypeError(f"functional_call: {name} is {present!r}, not an instance of Tensor")
    return owner.__dict__, key


def _with_tied(given: dict[str, Any], locations: dict[str, tuple[Any, str]]) -> dict[str, Any]:
    """The given tensors, and for those that are tied to one that is given, the same one."""
    groups: dict[int, list[str]] = {}
    for name, (table, key) in locations.items():
        groups.setdefault(id(table[key]), []).append(name)
    values = dict(given)
    for names in groups.values():
        known = [name for name in names if name in given]
        if len(known) > 1 and any(given[name] is not given[known[0]] for name in known):
            raise ValueError(
                f"functional_call got multiple values for keys {known}, which are tied. Consider "
                "using tie_weights=False"
            )
        if known:
            values.update(dict.fromkeys(names, given[known[0]]))
    return values


def _check_keys(module: Module, values: dict[str, Any], locations: dict[str, Any]) -> None:
    problems = []
    for title, names in (
        ("Unexpected", [name for name in values if name not in locations]),
        ("Missing", [name for name in locations if name not in values]),
    ):
        if names:
            problems.append(f"{title} key(s): {', '.join(map(repr, names))}.")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
        )
