"""What the standard's inspection functions say of taeda."""

from __future__ import annotations

from typing import Any

import taeda
from taeda._C import device as Device
from taeda._C import dtype
from taeda.array_api._dtypes import KINDS, isdtype

__all__ = ["__array_namespace_info__", "namespace_of"]

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


class NamespaceInfo:
    """What the namespace can do: see ``__array_namespace_info__``."""

    __module__ = "taeda.array_api"

    def capabilities(self) -> dict[str, Any]:
        """Return what is supported of what the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of new tensors."""
        return taeda.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """Return the dtypes of new tensors that are given none."""
        _known(device)
        real = taeda.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": taeda.int64,
            "indexing": taeda.int64,
        }

    def devices(self) -> list[Device]:
        """Return the devices whose tensors hold data."""
        return [taeda.device("cpu")]

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, dtype]:
        """Return the standard's dtypes that taeda has, by name.

        Args:
            device: they must be supported there.
            kind: as for ``isdtype``; by default all.
        """
        _known(device)
        every = (taeda.bool, *KINDS["numeric"])
        return {str(d).removeprefix("taeda."): d for d in every if kind is None or isdtype(d, kind)}


def _known(device: Any) -> None:
    if device is not None:
        taeda.device(device)


def __array_namespace_info__() -> NamespaceInfo:
    """Return an object that tells dtypes, devices and capabilities.

    >>> sorted(taeda.__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return NamespaceInfo()


def namespace_of(api_version: str | None) -> Any:
    """Return ``taeda.array_api``, which follows every version that may be asked for."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__(): api_version must be one of {', '.join(_VERSIONS)}, "
            f"got {api_version!r}"
        )
    from taeda import array_api  # the package, which is made of this module and others

    return array_api
