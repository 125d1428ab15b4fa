"""What notebooks show of tensors, modules and recordings: small tables, images and curves.

Loaded when a notebook asks for the first one. What is shown is bounded, whatever the size of the
object: of a tensor, `EDGE` rows and columns from either end; of images, `IMAGES` of them; of a
model, `MODULES`; of a recording, `CURVES`. The text of ``repr`` stays what it is.
"""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda._tensor.printing import _Complexes, _Floats, _Integers, _read

if TYPE_CHECKING:
    from taeda import Tensor
    from taeda.insight import record
    from taeda.nn import Module

__all__ = ["module_html", "record_html", "sparkline", "tensor_html"]

EDGE = 9
IMAGES, PIXELS = 8, 96
MODULES = 200
CURVES = 12

_STYLE = """<style>
.taeda-box{font-size:90%;overflow-x:auto;max-width:100%}
.taeda-box table{border-collapse:collapse;width:auto}
.taeda-box td,.taeda-box th{padding:1px 8px;text-align:right;font-variant-numeric:tabular-nums;
font-weight:400;border:1px solid rgba(128,128,128,.35)}
.taeda-box th{opacity:.75}
.taeda-box img{image-rendering:pixelated;margin:2px}
.taeda-box details,.taeda-box .leaf{margin-left:1.1em}
.taeda-box svg polyline{fill:none;stroke:currentColor;stroke-width:1.5}
</style>"""


def _boxed(text: str) -> str:
    return f'{_STYLE}<div class="taeda-box" tabindex="0">{text}</div>'


# ---- tensors ------------------------------------------------------------------------------------


def tensor_html(tensor: Tensor) -> str | None:
    """A tensor's values as a table, or as pictures; None where its text says more.

    The last two dimensions become rows and columns; of the dimensions before them the first index
    is shown. What looks like images (see `_as_images`) is shown as such. Tensors of other classes,
    sparse ones and those without values have their text alone.
    """
    if type(tensor).__name__ not in ("Tensor", "Parameter", "Buffer") or tensor.is_meta:
        return None
    if tensor.layout != _C.strided or tensor.numel() == 0 or tensor.dim() == 0:
        return None
    values = tensor.detach()
    head = html.escape(_line(tensor))
    if (images := _as_images(values)) is not None:
        return _boxed(f"<div>{head}</div>{_thumbnails(images)}")
    place = ""
    if values.dim() > 2:
        place = f"<div>at [{'0, ' * (values.dim() - 2)}:, :]</div>"
        while values.dim() > 2:
            values = values[0]
    return _boxed(f"<div>{head}</div>{place}{_cells(values)}")


def _line(tensor: Tensor) -> str:
    """What a tensor is, without its values."""
    name = type(tensor).__name__
    dtype = str(tensor.dtype).removeprefix("taeda.")
    text = f"{name} of shape {tuple(tensor.shape)}, {dtype}"
    if tensor.device.type != "cpu":
        text += f", on {tensor.device}"
    if tensor.grad_fn is not None:
        return f"{text}, from {tensor.grad_fn.name()}"
    return f"{text}, requires grad" if tensor.requires_grad else text


def _ends(size: int) -> list[int | None]:
    """The indices that are shown of a dimension, None for a gap."""
    if size <= 2 * EDGE + 2:
        return list(range(size))
    return [*range(EDGE), None, *range(size - EDGE, size)]


def _cells(values: Tensor) -> str:
    """A table of a vector or a matrix, with the indices before."""
    if values.dim() == 1:
        values = values[None]
        rows: list[int | None] = [0]
    else:
        rows = _ends(values.shape[0])
    columns = _ends(values.shape[1])
    read: list[list[Any]] = []
    for row in rows:
        read.append([] if row is None else _read(values[row], EDGE + 1))
    # `_read` leaves out what is further from an end; these are the columns of `_ends`.
    if None in columns:
        read = [line and [*line[:EDGE], None, *line[-EDGE:]] for line in read]
    shown = [x for line in read for x in line if x is not None]
    kind = _Integers
    if values.dtype.is_complex:
        kind = _Complexes  # type: ignore[assignment]
    elif values.dtype.is_floating_point:
        kind = _Floats  # type: ignore[assignment]
    form: Any = kind(shown)
    heads = "".join(f'<th scope="col">{"⋯" if c is None else c}</th>' for c in columns)
    text = f"<tr><td></td>{heads}</tr>"
    for row, line in zip(rows, read, strict=True):
        if row is None:
            text += f'<tr><th scope="row">⋮</th>{"<td>⋮</td>" * len(columns)}</tr>'
            continue
        cells = "".join(f"<td>{'⋯' if x is None else form(x).strip()}</td>" for x in line)
        text += f'<tr><th scope="row">{row}</th>{cells}</tr>'
    return f"<table>{text}</table>"


# ---- images -------------------------------------------------------------------------------------


def _as_images(values: Tensor) -> Tensor | None:
    """A tensor as (images, channels, rows, columns), if it looks like images.

    It does if it has one or three channels before at least eight rows and columns, and either bytes
    or floats from 0 to 1 of which some lie between.
    """
    if values.dim() not in (3, 4) or values.shape[-3] not in (1, 3) or min(values.shape[-2:]) < 8:
        return None
    images = values[None] if values.dim() == 3 else values[:IMAGES]
    step = [max(1, math.ceil(size / PIXELS)) for size in images.shape[-2:]]
    images = images[:, :, :: step[0], :: step[1]]
    if images.dtype == _C.uint8:
        return images
    if not images.dtype.is_floating_point:
        return None
    low, high = float(images.min()), float(images.max())
    between = bool(((images > 0) & (images < 1)).any())
    return images if low >= 0 and high <= 1 and between else None


def _thumbnails(images: Tensor) -> str:
    if images.dtype != _C.uint8:
        images = (images.float() * 255).round().to(_C.uint8)
    found = ""
    for i, image in enumerate(images.permute(0, 2, 3, 1)):
        rows, columns, channels = image.shape
        data = bytes(image.flatten().tolist())
        code = base64.b64encode(_png(data, rows, columns, channels)).decode()
        scale = max(1, PIXELS // max(rows, columns))
        found += (
            f'<img alt="image {i}" width="{columns * scale}" height="{rows * scale}" '
            f'src="data:image/png;base64,{code}">'
        )
    return f"<div>{found}</div>"


def _png(data: bytes, rows: int, columns: int, channels: int) -> bytes:
    """Pixels of one byte for each channel, one channel or three, as a PNG file."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", crc)

    width = columns * channels
    lines = b"".join(b"\0" + data[row * width : (row + 1) * width] for row in range(rows))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )


# ---- modules ------------------------------------------------------------------------------------


def module_html(module: Module) -> str:
    """A module's tree, which can be folded, with the counts of parameters."""
    left = [MODULES]
    text = _node("", module, 0, left)
    if left[0] < 0:
        text += f"<div>{-left[0]} more modules are not shown</div>"
    return _boxed(text)


def _count(module: Module) -> str:
    """How many elements the parameters have, each counted once."""
    known = [p for p in module.parameters() if hasattr(p, "numel") and not _uninitialized(p)]
    total = sum(p.numel() for p in known)
    frozen = sum(p.numel() for p in known if not p.requires_grad)
    if not total:
        return ""
    return f"{total:,} parameters" + (f", {frozen:,} of them frozen" if frozen else "")


def _uninitialized(parameter: Any) -> bool:
    return type(parameter).__name__.startswith("Uninitialized")


def _node(name: str, module: Module, depth: int, left: list[int]) -> str:
    left[0] -= 1
    if left[0] < 0:
        left[0] -= sum(1 for _ in module.modules()) - 1
        return ""
    extra = module.extra_repr()
    kind = f"{module._get_name()}({extra if len(extra) < 120 else '...'})"
    label = f"{html.escape(name)}: " if name else ""
    label += f"<code>{html.escape(kind)}</code>"
    if count := _count(module):
        label += f" {count}"
    children = [(key, child) for key, child in module.named_children() if child is not None]
    if not children:
        return f'<div class="leaf">{label}</div>'
    inner = "".join(_node(key, child, depth + 1, left) for key, child in children)
    state = " open" if depth < 2 else ""
    return f"<details{state}><summary>{label}</summary>{inner}</details>"


# ---- recordings ---------------------------------------------------------------------------------


def sparkline(values: Iterable[float | None], width: int = 120, height: int = 22) -> str:
    """A curve as small as a word, as SVG; values that are missing or not finite are left out."""
    points = [(i, v) for i, v in enumerate(values) if v is not None and math.isfinite(v)]
    if len(points) < 2:
        return ""
    step = max(1, len(points) // (2 * width))
    points = [*points[::step], points[-1]]
    low, high = min(v for _, v in points), max(v for _, v in points)
    last = points[-1][0] or 1
    scale = (height - 4) / (high - low or 1)
    line = " ".join(f"{i / last * width:.1f},{2 + (high - v) * scale:.1f}" for i, v in points)
    return (
        f'<svg role="img" aria-label="curve from {points[0][1]:.4g} to {points[-1][1]:.4g}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<polyline points="{line}"/></svg>'
    )


def record_html(recording: record) -> str:
    """The curves of a recording: loss, gradient norm, updates and dead units."""
    curves: list[tuple[str, Sequence[float | None]]] = [
        ("loss", recording.losses),
        ("gradient norm", list(recording.grad_norms.values())),
    ]
    for title, series in (("update / weight", recording.ratios), ("dead units", recording.dead)):
        curves += [(f"{title}, {name}", list(found.values())) for name, found in series.items()]
    curves = [(title, values) for title, values in curves if any(v is not None for v in values)]
    rows = ""
    for title, values in curves[:CURVES]:
        known = [v for v in values if v is not None]
        ends = f"<td>{known[0]:.4g}</td><td>{known[-1]:.4g}</td>"
        rows += (
            f'<tr><th scope="row">{html.escape(title)}</th>{ends}<td>{sparkline(values)}</td></tr>'
        )
    more = len(curves) - CURVES
    note = f"<div>{more} more curves are not shown</div>" if more > 0 else ""
    head = '<tr><td></td><th scope="col">first</th><th scope="col">last</th><td></td></tr>'
    table = f"<table>{head}{rows}</table>{note}" if rows else ""
    return _boxed(f"<div>{html.escape(repr(recording))}</div>{table}")
