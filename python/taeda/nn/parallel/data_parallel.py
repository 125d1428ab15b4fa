"""A batch cut over the GPUs of one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda.nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taeda import Tensor

    Devices = Sequence[int | taeda.device] | None

__all__ = ["DataParallel", "data_parallel"]


def _check_devices(who: str, device_ids: Devices) -> None:
    """Raise for devices that this process does not have."""
    if device_ids and not taeda.cuda.is_available():
        raise RuntimeError(
            f"{who}: device_ids names {list(device_ids)}, but there is no GPU; leave it out to run "
            "on the CPU"
        )


class DataParallel(Module):
    """Give each GPU of this process a share of every batch. Without a GPU, call ``module`` itself.

    Args:
        module: the module to call. Its names gain the prefix ``module.`` in the ``state_dict``.
        device_ids: GPUs, by number.
        output_device: where the result goes; the first of ``device_ids`` unless given.
        dim: the dimension along which inputs are cut.

    Raises:
        RuntimeError: ``device_ids`` names GPUs, and there is none.

    >>> model = taeda.nn.DataParallel(taeda.nn.Linear(3, 2))
    >>> model(taeda.ones(4, 3)).shape
    taeda.Size([4, 2])
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Devices = None,
        output_device: int | taeda.device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        _check_devices("DataParallel", device_ids)
        self.module = module
        self.device_ids: list[int] = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Devices = None,
    output_device: int | taeda.device | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Tensor:
    """Call ``module`` on ``inputs``, a tuple of arguments or one, as ``DataParallel`` does.

    Raises:
        RuntimeError: ``device_ids`` names GPUs, and there is none.
    """
    args = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*args, **(module_kwargs or {}))
