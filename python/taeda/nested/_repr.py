"""How nested tensors print."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taeda.nested._tensor import NestedTensor


def text(x: NestedTensor) -> str:
    """Of layout jagged the sizes and offsets; of strided layout each component."""
    return _components(x) if x._strided_ else _summary(x)


def _summary(x: NestedTensor) -> str:
    parts = [f"size={tuple(x.shape)}", f"offsets={x.offsets()}"]
    if x.grad_fn is not None:
        parts.append(f"grad_fn={x.grad_fn}")
    elif x.requires_grad:
        parts.append("requires_grad=True")
    parts.append(f"contiguous={x.is_contiguous()}")
    return f"NestedTensor({', '.join(parts)})"


def _components(x: NestedTensor) -> str:
    ending = ""
    if x.grad_fn is not None:
        ending = f", grad_fn=<{x.grad_fn.name()}>"
    elif x.requires_grad:
        ending = ", requires_grad=True"
    components = [t.requires_grad_(x.requires_grad) for t in x.detach().unbind()]
    parts = [textwrap.indent(str(t), "  ", lambda line: True) for t in components]
    return "nested_tensor([\n" + ",\n".join(parts) + "\n]" + ending + ")"
