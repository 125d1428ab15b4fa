"""How tensors print: ``repr(tensor)`` and the options that shape it.

A tensor prints as ``tensor(VALUES, SUFFIXES)``. The values are read as Python numbers, of large
tensors only the edges that are shown, so printing costs the same for ten thousand elements and
for ten billion. Suffixes name what the values alone do not tell: ``size``, ``dtype``, ``device``
and the tensor's place in the autograd graph.
"""

from __future__ import annotations

import sys
from math import ceil, inf, isfinite, isinf, isnan
from typing import TYPE_CHECKING, Any

from taeda import _C

if TYPE_CHECKING:
    from taeda import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_repr"]

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": inf, "edgeitems": 3, "linewidth": 80},
}
_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}

_GAP = object()  # marks omitted elements in a nested list of values


def get_printoptions() -> dict[str, Any]:
    """Return a copy of the options now in force, keyed as ``set_printoptions`` names them."""
    return dict(_options)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; an option left ``None`` stays as it is.

    Args:
        precision: digits after the decimal point (default 4).
        threshold: tensors with more elements than this are summarised (default 1000).
        edgeitems: elements shown at either end of a summarised dimension (default 3).
        linewidth: characters per line (default 80).
        profile: ``"default"``, ``"short"`` or ``"full"`` (never summarise); it sets the four
            options above first, and those given beside it override it.
        sci_mode: ``True`` or ``False`` force scientific notation on or off. ``None`` lets each
            tensor's values decide; every call sets this one.

    Raises:
        ValueError: ``profile`` is not one of the three.
        TypeError: a numeric option is not a number.
    """
    if profile is not None and profile not in _PROFILES:
        names = ", ".join(repr(name) for name in _PROFILES)
        raise ValueError(f"set_printoptions: profile must be one of {names}, got {profile!r}")
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is None:
            continue
        if not isinstance(value, (int, float)) or (name != "threshold" and value != int(value)):
            raise TypeError(f"set_printoptions: {name} must be a number, got {value!r}")
        if name in ("precision", "edgeitems") and value < 0:
            raise ValueError(f"set_printoptions: {name} must not be negative, got {value}")
    if profile is not None:
        _options.update(_PROFILES[profile])
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


class printoptions:
    """Print with other options for a while; takes what ``set_printoptions`` takes.

    >>> import taeda
    >>> from taeda._tensor.printing import printoptions
    >>> with printoptions(precision=2):
    ...     print(taeda.tensor([1.234]))
    tensor([1.23])
    """

    def __init__(self, **options: Any) -> None:
        self._wanted = options
        self._saved: dict[str, Any] = {}

    def __enter__(self) -> printoptions:
        self._saved = get_printoptions()
        set_printoptions(**self._wanted)
        return self

    def __exit__(self, *exc: object) -> None:
        _options.update(self._saved)


class _Integers:
    """Formats ints and bools, right-aligned to the widest."""

    def __init__(self, values: list[Any]) -> None:
        self.width = max((len(str(v)) for v in values), default=1)

    def __call__(self, value: Any) -> str:
        return str(value).rjust(self.width)


class _Floats:
    """Formats floats alike: as whole numbers, with fixed decimals, or in scientific notation.

    The choice and the common width follow from the values that are finite and not zero.
    """

    def __init__(self, values: list[float]) -> None:
        digits = _options["precision"]
        telling = [v for v in values if v != 0 and isfinite(v)]
        sizes = [abs(v) for v in telling]
        low, high = min(sizes, default=1.0), max(sizes, default=1.0)
        self.whole = all(v == ceil(v) for v in telling)
        scientific = _options["sci_mode"]
        if not telling:
            scientific = False
        elif scientific is None:
            scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
        if scientific:
            self.spec, self.whole = f".{digits}e", False
        else:
            self.spec = ".0f" if self.whole else f".{digits}f"
        self.width = 1
        self.width = max((len(self(v)) for v in telling), default=1)

    def __call__(self, value: float) -> str:
        text = format(value, self.spec)
        if self.whole and not (isinf(value) or isnan(value)):
            text += "."
        return text.rjust(self.width)


class _Complexes:
    """Formats complex numbers; real and imaginary parts are each aligned among themselves."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Floats([v.real for v in values])
        self.imag = _Floats([v.imag for v in values])
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real(value.real) + sign + imag


def _read(tensor: Tensor, edge: int) -> list[Any]:
    """The values of ``tensor`` as nested lists, long dimensions cut down to their edges."""
    count = tensor.size(0)
    cut = count > 2 * edge
    if tensor.dim() == 1:
        if not cut:
            return list(tensor.tolist())
        return [*tensor[:edge].tolist(), _GAP, *tensor[count - edge :].tolist()]
    if not cut:
        return [_read(tensor[i], edge) for i in range(count)]
    head = [_read(tensor[i], edge) for i in range(edge)]
    tail = [_read(tensor[i], edge) for i in range(count - edge, count)]
    return [*head, _GAP, *tail]


def _leaves(values: Any) -> list[Any]:
    """All numbers in the nested lists ``values``, gaps left out."""
    level = values if isinstance(values, list) else [values]
    while any(isinstance(v, list) for v in level):
        level = [leaf for row in level if row is not _GAP for leaf in row]
    return [v for v in level if v is not _GAP]


def _render(values: Any, dims: int, indent: int, form: Any) -> str:
    """Lay nested lists out as text whose first line starts at column ``indent``."""
    if dims == 0:
        return str(form(values))
    if values and all(v is _GAP for v in values):
        return "[...]"
    if dims > 1:
        rows = [
            "..." if row is _GAP else _render(row, dims - 1, indent + 1, form) for row in values
        ]
        return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(rows) + "]"
    # Count one column more than the separator, so that rows stay under the limit.
    per_line = max(1, (_options["linewidth"] - indent) // (form.width + 2))
    cells = [" ..." if v is _GAP else form(v) for v in values]
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _body(tensor: Tensor, indent: int) -> str:
    """The values of a tensor that has elements, laid out from column ``indent``."""
    tensor = tensor.detach()
    dims = tensor.dim()
    values: Any
    if dims == 0:
        values = tensor.item()
    elif tensor.numel() > _options["threshold"]:
        values = _read(tensor, _options["edgeitems"])
    else:
        values = tensor.tolist()
    kind = (
        _Complexes
        if tensor.dtype.is_complex
        else _Floats
        if tensor.dtype.is_floating_point
        else _Integers
    )
    return _render(values, dims, indent, kind(_leaves(values)))


def _dtype_is_implied(tensor: Tensor, has_values: bool) -> bool:
    """Whether the printed values imply the dtype, so that it need not be printed."""
    taeda = sys.modules["taeda"]
    default = taeda.get_default_dtype()
    if tensor.dtype == default or not has_values:
        return bool(tensor.dtype == default)
    complex_default = taeda.complex128 if default == taeda.float64 else taeda.complex64
    return tensor.dtype in (taeda.int64, taeda.bool, complex_default)


def _graph_suffix(tensor: Tensor) -> str | None:
    """The part of the repr about the autograd graph: requires_grad or grad_fn."""
    try:
        node = tensor.grad_fn
    except RuntimeError:  # a view whose history an in-place operation has made unusable
        return "grad_fn=<Invalid>"
    if node is not None:
        return f"grad_fn=<{node.name()}>"
    return "requires_grad=True" if tensor.requires_grad else None


def tensor_repr(tensor: Tensor) -> str:
    """Return the text that ``repr(tensor)`` gives.

    A subclass of ``Tensor`` prints its own class's name in place of ``tensor``. A tensor on the
    ``meta`` device has no values and prints ``...`` for them, and so does one whose values only
    its class knows.

    >>> import taeda
    >>> taeda.tensor([1.5, 2.0], dtype=taeda.float64)
    tensor([1.5000, 2.0000], dtype=taeda.float64)
    """
    name = type(tensor).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    indent = len(prefix)
    size = f"size={tuple(tensor.shape)}"
    suffixes: list[str] = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    is_meta = tensor.device.type == "meta" or _C._is_placeholder(tensor)
    if is_meta:
        body = "..."
        suffixes.append(size)
    elif tensor.numel() == 0:
        body = "[]"
        if tensor.dim() != 1:
            suffixes.append(size)
    else:
        if _options["edgeitems"] == 0:
            suffixes.append(size)
        body = _body(tensor, indent)
    if is_meta:
        taeda = sys.modules["taeda"]
        if tensor.dtype != taeda.get_default_dtype():
            suffixes.append(f"dtype={tensor.dtype!r}")
    elif not _dtype_is_implied(tensor, tensor.numel() != 0):
        suffixes.append(f"dtype={tensor.dtype!r}")
    graph = _graph_suffix(tensor)
    if graph is not None:
        suffixes.append(graph)
    tangent = _C._unpack_dual(tensor)[1]
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")

    return with_suffixes(prefix + body, suffixes, indent) + ")"


def with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Append what follows the values, on new lines where a line would be too long."""
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if column + len(suffix) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text
