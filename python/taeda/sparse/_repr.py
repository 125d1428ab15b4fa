"""How sparse tensors print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taeda
from taeda._C import Tensor
from taeda._tensor.printing import _body

if TYPE_CHECKING:
    from taeda.sparse._tensor import SparseTensor


def _part(name: str, x: Tensor) -> str:
    """Return the text of a tensor without its dtype, which the whole has or which is int64."""
    head = f"{name}=tensor("
    if x.numel() == 0:
        return f"{head}[], size={tuple(x.shape)})"
    return head + _body(x, len("tensor(") + len(head)) + ")"


def text(x: SparseTensor) -> str:
    """Return ``tensor(indices=..., values=..., size=..., nnz=..., layout=...)``."""
    values = x._values_.detach()
    if x._crow is None:
        parts = [_part("indices", x._indices_)]
    else:
        parts = [_part("crow_indices", x._crow), _part("col_indices", x._col)]
    last = [f"size={tuple(x.shape)}", f"nnz={x._nnz()}"]
    plain = (taeda.get_default_dtype(), taeda.int64, taeda.bool)
    if x.dtype not in plain:
        last.append(f"dtype={x.dtype}")
    last.append(f"layout={x.layout}")
    if x.grad_fn is not None:
        last.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        last.append("requires_grad=True")
    numbers = ", ".join(last)
    shown = _part("values", values)
    parts += [shown, numbers] if x._crow is None else [f"{shown}, {numbers}"]
    return "tensor(" + ",\n       ".join(parts) + ")"
