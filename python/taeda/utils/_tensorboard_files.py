"""What TensorBoard's projector reads from files of its own, and graphs of models."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import taeda


def write_embedding(
    log_dir: str,
    points: Any,
    labels: Sequence[Any] | None,
    images: Any,
    step: int,
    tag: str,
    header: Sequence[str] | None,
) -> None:
    """Write an embedding's files and add it to the projector's list of them."""
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    if points.ndim != 2:
        raise ValueError(f"add_embedding: mat must have 2 dimensions, got shape {points.shape}")
    folder = os.path.join(f"{step:05}", re.sub(r"[^\w.-]", lambda m: f"%{ord(m[0]):02x}", tag))
    where = os.path.join(log_dir, folder)
    os.makedirs(where, exist_ok=True)
    config = ProjectorConfig()
    listing = os.path.join(log_dir, "projector_config.pbtxt")
    if os.path.exists(listing):
        with open(listing, encoding="utf-8") as file:
            text_format.Parse(file.read(), config)
    name = f"{tag}:{step:05}"
    for entry in [entry for entry in config.embeddings if entry.tensor_name == name]:
        warnings.warn(
            f"add_embedding: the embedding {tag!r} of step {step}, which was in {log_dir} before, "
            "is replaced; does global_step say which step this one is of?",
            stacklevel=3,
        )
        config.embeddings.remove(entry)
    entry = config.embeddings.add(tensor_name=name, tensor_path=os.path.join(folder, "tensors.tsv"))
    _write_rows(os.path.join(where, "tensors.tsv"), points.tolist())
    if labels is not None:
        if len(labels) != len(points):
            raise ValueError(f"add_embedding: {len(labels)} labels for {len(points)} points")
        rows = [row if header else [row] for row in labels]
        _write_rows(os.path.join(where, "metadata.tsv"), [header, *rows] if header else rows)
        entry.metadata_path = os.path.join(folder, "metadata.tsv")
    if images is not None:
        height, width = _write_sprite(os.path.join(where, "sprite.png"), images, len(points))
        entry.sprite.image_path = os.path.join(folder, "sprite.png")
        entry.sprite.single_image_dim.extend([width, height])
    with open(listing, "w", encoding="utf-8") as file:
        file.write(text_format.MessageToString(config))


def _write_rows(path: str, rows: Sequence[Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            cells = (re.sub(r"\s", " ", str(cell)) for cell in row)
            file.write("\t".join(cells) + "\n")


def _write_sprite(path: str, images: Any, count: int) -> tuple[int, int]:
    """All images in one, in as many rows as columns; returns an image's height and width."""
    import numpy

    from taeda.utils._tensorboard_plugins import array_of
    from taeda.utils.tensorboard import _pixels, _png

    parts = [_pixels(image, "CHW") for image in array_of(images)]
    if len(parts) != count:
        raise ValueError(f"add_embedding: {len(parts)} images for {count} points")
    side = int(numpy.ceil(numpy.sqrt(len(parts))))
    parts += [numpy.zeros_like(parts[0])] * (side * side - len(parts))
    rows = [numpy.hstack(parts[i : i + side]) for i in range(0, side * side, side)]
    with open(path, "wb") as file:
        file.write(_png(numpy.vstack(rows)))
    height, width = parts[0].shape[:2]
    return height, width


class _Recorder:
    """The nodes of a graph, as operations run."""

    def __init__(self, model: Any) -> None:
        from tensorboard.compat.proto.graph_pb2 import GraphDef

        self.graph = GraphDef()
        self.scope = [type(model).__name__]
        self._names: dict[int, str] = {}  # of the tensors, which are kept so that ids stay theirs
        self._kept: list[Any] = []
        self._count: dict[str, int] = {}

    def add(self, tensor: Any, path: str, kind: str, inputs: Sequence[str] = ()) -> None:
        """A node that gives ``tensor``."""
        from tensorboard.compat.proto.attr_value_pb2 import AttrValue
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        count = self._count.get(path, 0)
        self._count[path] = count + 1
        name = f"{path}_{count}" if count else path
        node = self.graph.node.add(name=name, op=kind, input=inputs)
        sizes = [TensorShapeProto.Dim(size=n) for n in tensor.shape]
        shapes = AttrValue.ListValue(shape=[TensorShapeProto(dim=sizes)])
        node.attr["_output_shapes"].CopyFrom(AttrValue(list=shapes))
        self._names[id(tensor)] = name
        self._kept.append(tensor)

    def name_of(self, tensor: Any) -> str:
        """The node that gave a tensor; one that no operation gave is a constant."""
        if id(tensor) not in self._names:
            self.add(tensor, "/".join([*self.scope, "constant"]), "Const")
        return self._names[id(tensor)]

    def run(self, name: str, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """An operation that has run."""
        new = [t for t in results if id(t) not in self._names]
        names = [self.name_of(t) for t in inputs] if new else []
        for tensor in new:
            self.add(tensor, "/".join([*self.scope, name]), f"taeda::{name}", names)


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, taeda.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []


def graph_of(model: Any, given: Any) -> Any:
    """The graph of what a module does with its input, as TensorBoard's GraphDef.

    Raises:
        TypeError: there is no tensor among its input.
    """
    recorder = _Recorder(model)

    class Recording(taeda.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = super().__torch_function__(func, types, args, kwargs or {})
            name = getattr(func, "__name__", "op")
            if not name.startswith("__get"):
                recorder.run(name, _tensors([args, kwargs or {}]), _tensors(result))
            return result

    inputs = given if isinstance(given, tuple) else (given,)
    if not _tensors(inputs):
        raise TypeError("add_graph: input_to_model must be a tensor or a tuple with tensors")
    inputs = tuple(
        x.detach().as_subclass(Recording) if isinstance(x, taeda.Tensor) else x for x in inputs
    )
    for x in _tensors(inputs):
        recorder.add(x, "input", "IO Node")
    for name, parameter in [*model.named_parameters(), *model.named_buffers()]:
        recorder.add(parameter, "/".join([type(model).__name__, *name.split(".")]), "Parameter")
    with ExitStack() as stack:
        for name, module in model.named_modules():
            if name:
                leaf = f"{type(module).__name__}[{name.rpartition('.')[2]}]"
                _enter(stack, module, recorder.scope, leaf)
            stack.callback(setattr, module, "training", module.training)
        model.eval()
        with taeda.no_grad():
            result = model(*inputs)
    for x in _tensors(result):
        recorder.add(x, "output", "IO Node", [recorder.name_of(x)])
    return recorder.graph


def _enter(stack: ExitStack, module: Any, scope: list[str], name: str) -> None:
    """Let ``scope`` have ``name`` at its end while a module runs."""
    before = module.register_forward_pre_hook(lambda *_: scope.append(name))
    after = module.register_forward_hook(lambda *_: scope.pop() and None)
    stack.callback(before.remove)
    stack.callback(after.remove)
