"""`summary`: a model's layers with shapes, parameters, multiply-adds and activation memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda.autograd.graph import saved_tensors_hooks
from taeda.nn._module.hooks import register_module_forward_hook, register_module_forward_pre_hook
from taeda.random import fork_rng
from taeda.utils.flop_counter import FlopCounterMode

from ._table import Table, count, size

if TYPE_CHECKING:
    from taeda.nn import Module


@dataclass
class Layer:
    """One module of a model; all numbers are of everything inside it.

    Attributes:
        path: its name in the model; empty for the model itself.
        kind: its class.
        calls: how often it was called.
        output: what its last call returned: a shape, or a tuple of them; None if there were none.
        parameters: how many numbers its parameters have, shared ones counted once.
        trainable: those that require a gradient.
        macs: multiplications with an addition, of matrix products, convolutions, attention and
            recurrent layers.
        activations: bytes that its forward keeps for the backward pass.
    """

    path: str
    kind: str
    calls: int = 0
    output: Any = None
    parameters: int = 0
    trainable: int = 0
    macs: int = 0
    activations: int = 0

    @property
    def depth(self) -> int:
        """How many modules are around it."""
        return self.path.count(".") + 1 if self.path else 0


class Summary:
    """What `summary` measured: prints as a table, in notebooks as HTML.

    Attributes:
        layers: one `Layer` for each module, the model first.
        parameter_bytes: memory of the parameters.
        buffer_bytes: memory of the buffers.
    """

    def __init__(
        self, layers: list[Layer], parameter_bytes: int, buffer_bytes: int, depth: int | None
    ) -> None:
        self.layers = layers
        self.parameter_bytes = parameter_bytes
        self.buffer_bytes = buffer_bytes
        self._depth = depth

    @property
    def total(self) -> Layer:
        """The model as a whole."""
        return self.layers[0]

    def __getitem__(self, path: str) -> Layer:
        for layer in self.layers:
            if layer.path == path:
                return layer
        raise KeyError(f"summary: the model has no module {path!r}")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, numbers and strings."""
        return {
            "layers": [vars(layer).copy() for layer in self.layers],
            "parameter_bytes": self.parameter_bytes,
            "buffer_bytes": self.buffer_bytes,
        }

    def table(self) -> Table:
        """The layers down to the depth that was asked for."""
        numbers = ["parameters", "multiply-adds", "activations"]
        table = Table("", ["layer", "output", *numbers], right=numbers)
        for layer in self.layers:
            if self._depth is not None and layer.depth > self._depth:
                continue
            name = layer.path.rpartition(".")[2]
            table.add(
                "  " * layer.depth + (f"{name}: {layer.kind}" if name else layer.kind),
                "not called" if not layer.calls else _shapes(layer.output),
                count(layer.parameters),
                count(layer.macs),
                size(layer.activations),
            )
        total = self.total
        frozen = total.parameters - total.trainable
        table.notes.append(
            f"{count(total.parameters)} parameters ({size(self.parameter_bytes)}), {count(frozen)} "
            f"of them frozen; {size(self.buffer_bytes)} of buffers; {count(total.macs)} "
            f"multiply-adds; {size(total.activations)} kept for backward"
        )
        return table

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html().replace("  ", "&nbsp;&nbsp;")


def summary(model: Module, input: Any, *, depth: int | None = None) -> Summary:
    """Measure a model by calling it once.

    The model is called as it is, in its present mode, with gradients recorded. Its buffers and the
    random stream are put back afterwards.

    Args:
        model: a module.
        input: what to call it with: one argument, a tuple of them, or a dict of keywords.
        depth: down to which level modules are printed; all by default.

    Returns:
        A `Summary`, which prints as a table.

    Raises:
        TypeError: ``model`` is not a Module.
        ValueError: ``depth`` is negative.

    >>> model = taeda.nn.Sequential(taeda.nn.Linear(4, 8), taeda.nn.ReLU(), taeda.nn.Linear(8, 2))
    >>> taeda.summary(model, taeda.ones(5, 4))
    layer        output  parameters  multiply-adds  activations
    -----------  ------  ----------  -------------  -----------
    Sequential   (5, 2)          58            240        160 B
      0: Linear  (5, 8)          40            160          0 B
      1: ReLU    (5, 8)           0              0        160 B
      2: Linear  (5, 2)          18             80          0 B
    58 parameters (232 B), 0 of them frozen; 0 B of buffers; 240 multiply-adds; 160 B kept for backward
    """  # noqa: E501
    if not isinstance(model, taeda.nn.Module):
        raise TypeError(f"summary(): model must be a Module, got {type(model).__name__}")
    if depth is not None and depth < 0:
        raise ValueError(f"summary(): depth must not be negative, got {depth}")
    layers = {
        id(module): Layer(path, type(module).__name__) for path, module in model.named_modules()
    }
    args, kwargs = _arguments(input)
    kept = _Kept(model, [args, kwargs], layers)
    counter = FlopCounterMode(display=False)
    with _unchanged(model), taeda.enable_grad(), kept, counter:
        output = model(*args, **kwargs)
        del output
    _add_counts(layers, counter.get_flop_counts(), type(model).__name__)
    for module in model.modules():
        layer = layers[id(module)]
        unique = list(module.parameters())
        layer.parameters = sum(p.numel() for p in unique)
        layer.trainable = sum(p.numel() for p in unique if p.requires_grad)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    buffers = sum(b.numel() * b.element_size() for b in model.buffers())
    return Summary(list(layers.values()), weights, buffers, depth)


def _arguments(input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(input, Mapping):
        return (), dict(input)
    return (tuple(input) if isinstance(input, (tuple, list)) else (input,)), {}


@contextmanager
def _unchanged(model: Module) -> Iterator[None]:
    """Put buffers, gradients of none, and the random stream back."""
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    try:
        with fork_rng():
            yield
    finally:
        for buffer, before in buffers:
            buffer.data.copy_(before)


def _add_counts(layers: dict[int, Layer], counts: dict[str, dict[str, int]], root: str) -> None:
    for layer in layers.values():
        name = f"{root}.{layer.path}" if layer.path else root
        layer.macs = sum(counts.get(name, {}).values()) // 2


class _Kept:
    """Notes calls and outputs, and which bytes are kept for backward within which modules."""

    def __init__(self, model: Module, given: Any, layers: dict[int, Layer]) -> None:
        self.layers = layers
        own = [*model.parameters(), *model.buffers(), *_tensors(given)]
        self.seen = {t.untyped_storage().data_ptr() for t in own}
        self.open: list[int] = []
        self.hooks: list[Any] = []
        self.saving = saved_tensors_hooks(self._save, lambda tensor: tensor)

    def __enter__(self) -> None:
        self.saving.__enter__()
        self.hooks = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]

    def __exit__(self, *exc_info: object) -> None:
        for hook in self.hooks:
            hook.remove()
        self.saving.__exit__(*exc_info)

    def _begin(self, module: Any, args: Any) -> None:
        self.open.append(id(module))

    def _end(self, module: Any, args: Any, output: Any) -> None:
        self.open.pop()
        if (layer := self.layers.get(id(module))) is not None:
            layer.calls += 1
            shapes = tuple(tuple(t.shape) for t in _tensors(output))
            layer.output = shapes[0] if isinstance(output, Tensor) else shapes

    def _save(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.seen:
            self.seen.add(storage.data_ptr())
            for key in set(self.open):
                if key in self.layers:
                    self.layers[key].activations += storage.nbytes()
        return tensor


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def _shapes(shapes: Any) -> str:
    if not shapes or not isinstance(shapes[0], tuple):
        return str(shapes)
    return ", ".join(map(str, shapes))
