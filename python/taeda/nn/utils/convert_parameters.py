"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import taeda
from taeda._C import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _one_device(who: str, parameters: list[Tensor]) -> None:
    devices = {str(parameter.device) for parameter in parameters}
    if len(devices) > 1:
        raise TypeError(
            f"{who}: Found two parameters on different devices, this is currently not supported: "
            f"{sorted(devices)}"
        )


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of the parameters, one after another, in one vector."""
    parameters = list(parameters)
    _one_device("parameters_to_vector", parameters)
    return taeda.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make the parameters views of consecutive parts of a vector.

    Raises:
        TypeError: `vec` is no tensor, or the parameters are on several devices.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: vec must be a Tensor, got: {type(vec).__name__}")
    parameters = list(parameters)
    _one_device("vector_to_parameters", parameters)
    start = 0
    for parameter in parameters:
        end = start + parameter.numel()
        parameter.data = vec[start:end].view_as(parameter).data
        start = end
