"""Stands for ``torch._C``: the few of its names that packages use and that are true here."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable
from typing import Any

from taeda import Generator, Size, Tensor, amp, device, dtype, layout, memory_format
from taeda._C import (
    _disabled_torch_dispatch_impl,
    _disabled_torch_function_impl,
    _torch_function_modes,
)
from taeda.overrides import DisableTorchFunctionSubclass
from taeda.utils._python_dispatch import no_dispatch as _DisableTorchDispatch

__all__ = [
    "DisableTorchFunctionSubclass",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "Size",
    "Tensor",
    "_DisableTorchDispatch",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "_TensorMeta",
    "device",
    "dtype",
    "layout",
    "memory_format",
]


_TensorMeta = type(Tensor)


def _log_api_usage_once(event: str) -> None:
    """PyTorch tells a logger of the first use of something, if one is set; taeda has none."""


def _get_tracing_state() -> None:
    """The trace that is being recorded: none ever is."""


def _get_privateuse1_backend_name() -> str:
    """What devices of a backend from outside are called; there are none to rename."""
    return "privateuseone"


def _are_functorch_transforms_active() -> bool:
    """Whether the caller runs inside ``vmap``, the one transform that changes what tensors are."""
    batching = sys.modules.get("taeda._batching.tensor")
    return batching is not None and bool(batching.state.running)


def _is_torch_function_mode_enabled() -> bool:
    """Whether operations are handed to a ``TorchFunctionMode``."""
    return bool(_torch_function_modes())


def _is_alias_of(data: Tensor, base: Tensor) -> bool:
    """Whether two tensors are views of the same memory."""
    return data.untyped_storage()._cdata == base.untyped_storage()._cdata


class DispatchKey(enum.Enum):
    """The layers in front of an operation that can be left out by their name: autocast's."""

    AutocastCPU = "cpu"
    AutocastCUDA = "cuda"
    AutocastXPU = "xpu"


class DispatchKeySet:
    """A set of such layers."""

    def __init__(self, keys: DispatchKey | Iterable[DispatchKey]) -> None:
        self.keys = frozenset([keys] if isinstance(keys, DispatchKey) else keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self.keys | other.keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether a layer is in the set."""
        return key in self.keys


class _ExcludeDispatchKeyGuard:
    """Inside ``with`` the layers of a set are left out: there is no autocast on the CPU, if it is
    among them.
    """

    def __init__(self, keys: DispatchKeySet) -> None:
        self._leaves_out = keys.has(DispatchKey.AutocastCPU)
        self._off: Any = None

    def __enter__(self) -> None:
        if self._leaves_out:
            self._off = amp.autocast("cpu", enabled=False)
            self._off.__enter__()

    def __exit__(self, *exc_info: Any) -> None:
        if self._off is not None:
            self._off.__exit__(*exc_info)
            self._off = None
