"""Conversion of an optimizer's parameters and saved state."""

from __future__ import annotations

from typing import Any

import taeda


def state_entry(optimizer: Any, state_dict: dict[str, Any], key: str) -> Any:
    """Return a state dict's entry; raises KeyError if it is missing."""
    if key not in state_dict:
        raise KeyError(
            f"{type(optimizer).__name__}.load_state_dict: the state dict has no {key!r}, but the "
            f"keys {list(state_dict)}"
        )
    return state_dict[key]


def in_order(optimizer: Any, params: Any) -> list[Any]:
    """Return an optimizer's parameters as a list; raises TypeError for sets and non-iterables."""
    if isinstance(params, (set, frozenset)):
        raise TypeError(
            f"{type(optimizer).__name__}: params must be in an order that is the same in every "
            "run, which a set's is not; use a list"
        )
    try:
        entries = iter(params)
    except TypeError as error:
        raise TypeError(f"{type(optimizer).__name__}: params: {error}") from None
    return list(entries)


def split_names(optimizer: Any, entries: list[Any]) -> tuple[list[Any], list[str] | None]:
    """The tensors of a group, and their names where they came in pairs."""
    pairs = [isinstance(entry, tuple) for entry in entries]
    if any(pairs) and not all(pairs):
        raise ValueError(
            f"{type(optimizer).__name__}: either all params come with names, or none does; some "
            "param names are missing"
        )
    params = [entry[1] for entry in entries] if any(pairs) else entries
    for param in params:
        if not isinstance(param, taeda.Tensor):
            kind = type(param)
            library = "torch." if kind.__module__.startswith("torch") else ""  # a homonym
            raise TypeError(
                f"{type(optimizer).__name__}: can only optimize Tensors, but one of the params "
                f"is {library}{kind.__name__}"
            )
    return params, [entry[0] for entry in entries] if any(pairs) else None


def fit(value: Any, param: Any) -> Any:
    """A piece of loaded state in the dtype and on the device of its parameter."""
    if isinstance(value, taeda.Tensor):
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: fit(v, param) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(fit(v, param) for v in value)
    return value
