"""How files hold nested tensors: in PyTorch's form, with its names."""

from __future__ import annotations

from pickle import UnpicklingError
from typing import Any

import taeda
from taeda.serialization import _rebuild


def reduce_nested(tensor: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function that rebuilds a nested tensor, and its arguments."""
    from taeda.nested._strided import IrregularTensor

    values = tensor._values_.detach()
    if isinstance(tensor, IrregularTensor):
        values.requires_grad_(tensor.requires_grad)
        return rebuild_strided, _strided_parts(values, tensor._sizes_)
    if tensor._strided_:
        packed = tensor.detach().contiguous()
        parts = [part.contiguous() for part in packed.unbind()]
        flat = taeda.cat([part.reshape(-1) for part in parts]) if parts else values.reshape(-1)
        flat.requires_grad_(tensor.requires_grad)
        return rebuild_strided, _strided_parts(flat, [tuple(part.shape) for part in parts])
    state = {
        "values": values,
        "offsets": tensor._ragged_.offsets,
        "lengths": tensor._ragged_.lengths,
        "_ragged_idx": tensor._dim_,
        "_metadata_cache": {
            "min_seqlen": taeda.empty(tensor._ragged_.shortest, 0),
            "max_seqlen": taeda.empty(tensor._ragged_.longest, 0),
        },
        "requires_grad": tensor.requires_grad,
    }
    kind = _rebuild.TorchName("torch.nested._internal.nested_tensor", "NestedTensor")
    return _rebuild.rebuild_from_type_v2, (rebuild_jagged, kind, (state,), {})


def _strided_parts(flat: Any, sizes: list[tuple[int, ...]]) -> tuple[Any, ...]:
    """The values, and a row of sizes and strides and a place for each component."""
    strides, places, place = [], [], 0
    for size in sizes:
        steps, count = [], 1
        for n in reversed(size):
            steps.append(count)
            count *= n
        strides.append(steps[::-1])
        places.append(place)
        place += count
    table = [list(size) for size in sizes]
    return flat, *(taeda.tensor(x, dtype=taeda.int64) for x in (table, strides, places))


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise UnpicklingError(f"a nested tensor is badly made: {text}")


def _is_tensor(x: Any) -> bool:
    return type(x) is taeda.Tensor


def rebuild_jagged(state: Any) -> Any:
    """A nested tensor of layout jagged of its parts, which are checked."""
    from taeda.nested import nested_tensor_from_jagged

    _check(isinstance(state, dict), "its parts are not in a dict")
    values, offsets, lengths = (state.get(k) for k in ("values", "offsets", "lengths"))
    dim, grad = state.get("_ragged_idx"), state.get("requires_grad", False)
    _check(_is_tensor(values) and _is_tensor(offsets), "it has no values or offsets")
    _check(lengths is None or _is_tensor(lengths), "its lengths are no tensor")
    _check(type(dim) is int and type(grad) is bool, "its ragged dimension is no number")
    try:
        result = nested_tensor_from_jagged(values.detach(), offsets, lengths, dim)
        return result.requires_grad_(grad)
    except (RuntimeError, ValueError) as error:
        raise UnpicklingError(f"a nested tensor is badly made: {error}") from error


def rebuild_strided(values: Any, sizes: Any, strides: Any, places: Any) -> Any:
    """A nested tensor of strided layout of its parts, which are checked."""
    from taeda.nested._make import nested_tensor_of

    parts = (values, sizes, strides, places)
    _check(all(map(_is_tensor, parts)), "a part is no tensor")
    _check(values.dim() == places.dim() == 1, "its values or places are not 1-D")
    _check(
        places.numel() == 0 or sizes.shape == strides.shape == (places.size(0), sizes.size(-1)),
        "its sizes do not go together",
    )
    components = []
    try:
        for size, stride, place in zip(
            sizes.tolist(), strides.tolist(), places.tolist(), strict=True
        ):
            components.append(values.detach().as_strided(size, stride, place))
        result = nested_tensor_of(components, True)
    except (RuntimeError, ValueError) as error:
        raise UnpicklingError(f"a nested tensor is badly made: {error}") from error
    return result.requires_grad_(values.requires_grad)
