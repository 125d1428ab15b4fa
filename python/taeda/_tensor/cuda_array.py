"""``__cuda_array_interface__``, by which libraries share memory of CUDA devices.

https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C

__all__ = ["interface", "share"]

_TYPES = {
    "|b1": "bool",
    "|u1": "uint8",
    "|i1": "int8",
    "<u2": "uint16",
    "<i2": "int16",
    "<u4": "uint32",
    "<i4": "int32",
    "<u8": "uint64",
    "<i8": "int64",
    "<f2": "float16",
    "<f4": "float32",
    "<f8": "float64",
    "<c8": "complex64",
    "<c16": "complex128",
}


def interface(tensor: Any) -> dict[str, Any]:
    """What other libraries need to use a tensor's memory; readers wait for its ``stream``.

    Raises:
        AttributeError: the tensor is not a strided one on a CUDA device.
        RuntimeError: it requires a gradient.
        TypeError: there is no code for its dtype.
    """
    if tensor.device.type != "cuda" or tensor.layout is not taeda.strided:
        raise AttributeError(
            f"__cuda_array_interface__ is for strided tensors on cuda devices, not for "
            f"{tensor.layout} on {tensor.device}"
        )
    if tensor.requires_grad:
        raise RuntimeError(
            "__cuda_array_interface__: the tensor requires a gradient; use tensor.detach()"
        )
    codes = [code for code, name in _TYPES.items() if getattr(taeda, name) is tensor.dtype]
    if not codes:
        raise TypeError(f"__cuda_array_interface__ has no code for {tensor.dtype}")
    size = tensor.element_size()
    return {
        "typestr": codes[0],
        "shape": tuple(tensor.shape),
        "strides": None
        if tensor.is_contiguous()
        else tuple(step * size for step in tensor.stride()),
        "data": (tensor.data_ptr() if tensor.numel() else 0, False),
        "stream": taeda.cuda.current_stream(tensor.device).cuda_stream or 1,
        "version": 3,
    }


def share(array: Any) -> _C.Tensor:
    """A tensor that shares the memory of an object with ``__cuda_array_interface__``.

    Raises:
        ValueError, TypeError: tensors cannot have such memory.
        RuntimeError: there is no CUDA device.
    """
    from taeda.cuda import _interop

    given = array.__cuda_array_interface__
    shape, code = tuple(given["shape"]), given["typestr"]
    if given.get("mask") is not None:
        raise ValueError("__cuda_array_interface__: arrays with a mask are not supported")
    name = _TYPES.get(code.replace("=", "<"))
    if name is None:
        raise TypeError(f"__cuda_array_interface__: there is no dtype for {code!r}")
    dtype = getattr(taeda, name)
    strides = given.get("strides")
    if strides is None:
        elements = list(taeda.empty(shape, device="meta").stride())
    elif any(step % dtype.itemsize for step in strides):
        raise ValueError(f"__cuda_array_interface__: strides {strides} are not of whole elements")
    else:
        elements = [step // dtype.itemsize for step in strides]
    address, _read_only = given["data"]
    address = address or 0
    index = _interop.device_of(address) if address else _interop.current()
    if given.get("stream") is not None:
        _interop.follow(index, given["stream"])
    return _C._share_address(
        array, address, dtype, list(shape), elements, taeda.device("cuda", index)
    )
