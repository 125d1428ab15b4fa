"""Arguments that say where and of what dtype a module's parameters are made."""

from __future__ import annotations

from typing import Any

__all__ = ["factory_kwargs"]


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the ``device``, ``dtype`` and ``memory_format`` of a module's arguments.

    Args:
        kwargs: those, and maybe a dict ``factory_kwargs`` of more of them.

    Raises:
        TypeError: there is something else, or one comes twice.

    >>> taeda.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": taeda.float64}})
    {'dtype': taeda.float64, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    known = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - known - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in known & kwargs.keys():
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = kwargs[key]
    return result
