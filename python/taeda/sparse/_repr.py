"""How sparse tensors print."""

from __future__ import annotations

from typing import TYPE_CHECKING

import taeda
from taeda._C import Tensor
from taeda._tensor.printing import _body, with_suffixes
from taeda.sparse._structure import FORMS

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
    if x.is_sparse:
        parts = [_part("indices", x._indices_)]
    else:
        form = FORMS[x.layout]
        parts = [_part(form.starts, x._starts), _part(form.places, x._places)]
    parts.append(_part("values", values))
    suffixes = [f"size={tuple(x.shape)}", f"nnz={x._nnz()}"]
    plain = (taeda.get_default_dtype(), taeda.int64, taeda.bool)
    if x.dtype not in plain:
        suffixes.append(f"dtype={x.dtype}")
    suffixes.append(f"layout={x.layout}")
    if x.grad_fn is not None:
        suffixes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        suffixes.append("requires_grad=True")
    indent = len("tensor(")
    if x.is_sparse:
        parts.append(suffixes.pop(0))
    text = "tensor(" + (",\n" + " " * indent).join(parts)
    return with_suffixes(text, suffixes, indent) + ")"
