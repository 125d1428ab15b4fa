"""The recorded graph behind a loss: its operations, in which modules they are, and their shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor

from ._module_index import ModuleIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taeda.nn import Module

Shape = tuple[int, ...]

LOSS = "loss"  # the place of operations after the model's last one

# Names of the public function, where the recorded operation is a part of it.
_PUBLIC = {
    "rnn_sequence": "rnn",
    "reshape_copy": "reshape",
    "attention": "scaled_dot_product_attention",
    "embedding_bag_forward_only": "embedding_bag",
}
_PART = re.compile("^native_|_with_indices$")


def op_name(node: Any) -> str:
    """The function that a node of the graph is the derivative of.

    >>> x = taeda.ones(2, requires_grad=True)
    >>> op_name((x @ x).exp().grad_fn)
    'exp'
    """
    name = re.sub(r"Backward\d*$", "", str(node.name()))
    if not re.search(r"Backward\d+$", str(node.name())):
        return name  # a Function written in Python
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
    return _PUBLIC.get(name) or _PART.sub("", name)


@dataclass
class Op:
    """One recorded operation, or a leaf.

    Attributes:
        key: its number in the order of recording.
        name: the function's name; ``"leaf"`` for a leaf.
        node: the object of the graph.
        inputs: the keys of what made its inputs; None where no gradient flows.
        leaf: the leaf's tensor.
        module: the path of the module that it ran in, as far as can be told.
        out_shapes: shapes of its results, by their number, where they are known.
        in_shapes: shapes of the gradients that it passes on, one for each input.
        spoils: not empty if its derivative made values that are not finite of ones that are.
    """

    key: int
    name: str
    node: Any
    inputs: list[int | None] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    leaf: Any = None
    module: str | None = None
    out_shapes: dict[int, Shape] = field(default_factory=dict)
    in_shapes: list[Shape | None] = field(default_factory=list)
    spoils: list[bool] = field(default_factory=list)

    @property
    def shape(self) -> Shape | None:
        """The shape of its first known result."""
        return next(iter(self.out_shapes.values()), None)

    def saved(self, name: str) -> Any:
        """A tensor that the operation keeps for its derivative, or None if it does not."""
        try:
            return getattr(self.node, f"_saved_{name}", None)
        except RuntimeError:  # changed in place since, or freed
            return None


class Graph:
    """What was recorded on the way to a loss.

    Args:
        loss: a tensor.
        model: the module whose parts operations are looked up in.
    """

    def __init__(self, loss: Tensor, model: Module | None = None) -> None:
        self.loss = loss
        self.ops: dict[int, Op] = {}
        self.next_to: dict[int, int] = {}  # the way from each operation to the loss
        self.users: dict[int, list[int]] = {}
        self.traced = False
        self.spent = [0]  # nanoseconds in the hooks of `watch`
        self.failure: str | None = None  # why shapes are not known
        self.root: int | None = None
        if loss.grad_fn is not None:
            self._walk(loss.grad_fn)
        # Edges lead to smaller numbers, except where views are changed in place.
        self.order = sorted(self.ops, reverse=True)
        self.leaves = {id(op.leaf): op for op in self.ops.values() if op.leaf is not None}
        if loss.grad_fn is None and loss.requires_grad:
            self.leaves[id(loss)] = Op(0, "leaf", None, leaf=loss)
        self.module_index = ModuleIndex(model)
        self.module_index.assign(self)

    def _walk(self, start: Any) -> None:
        self.root = start._sequence_nr()
        pending = [start]
        while pending:
            later: list[Any] = []
            for node in pending:
                key = node._sequence_nr()
                if key in self.ops:
                    continue
                leaf = getattr(node, "variable", None) if node.name() == "AccumulateGrad" else None
                op = Op(key, op_name(node) if leaf is None else "leaf", node, leaf=leaf)
                self.ops[key] = op
                for after, number in node.next_functions:
                    op.numbers.append(number)
                    if after is None:
                        op.inputs.append(None)
                        continue
                    other = after._sequence_nr()
                    op.inputs.append(other)
                    self.users.setdefault(other, []).append(key)
                    self.next_to.setdefault(other, key)
                    later.append(after)
            pending = later

    def reaches(self, parameter: Tensor) -> bool:
        """Whether the loss depends on a leaf."""
        return id(parameter) in self.leaves

    def path(self, parameter: Tensor) -> list[Op]:
        """The operations from a leaf to the loss, by a shortest way; empty if there is none."""
        leaf = self.leaves.get(id(parameter))
        if leaf is None or leaf.key not in self.ops:
            return []
        found, key = [], leaf.key
        while key != self.root:
            key = self.next_to[key]
            found.append(self.ops[key])
        return found

    def running(self) -> Iterator[Op]:
        """The operations that are no leaves, from the loss backwards."""
        for key in self.order:
            if self.ops[key].leaf is None:
                yield self.ops[key]

    def source(self, op: Op, number: int = 0, through: frozenset[str] = frozenset()) -> Op | None:
        """What made an operation's input, seen through operations of some names."""
        while number < len(op.inputs) and (key := op.inputs[number]) is not None:
            op = self.ops[key]
            if op.name not in through:
                return op
            number = 0
        return None

    # ---- running the derivatives ----------------------------------------------------------------

    def watch(self, finite: bool = True) -> Callable[[], None]:
        """Have the next backward pass note shapes and, with `finite`, where values are not finite.

        Returns:
            what ends it.
        """
        handles = [
            op.node.register_hook(_noting(op, finite, self.spent))
            for op in self.ops.values()
            if op.leaf is None
        ]

        def end() -> None:
            for handle in handles:
                handle.remove()

        return end

    def trace(self) -> dict[int, Tensor]:
        """Run the derivatives once, changing no ``.grad``; returns the leaves' gradients by id.

        Hooks on tensors of the graph run. Where the graph has been run and freed, or what it saved
        was changed, nothing is known afterwards but `failure`.
        """
        leaves = [op.leaf for op in self.leaves.values() if op.key in self.ops]
        if not leaves or self.loss.numel() != 1:
            self.failure = "the loss is not a single number" if leaves else "there is no graph"
            return {}
        end = self.watch()
        try:
            found = taeda.autograd.grad(self.loss, leaves, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            self.failure = str(error).splitlines()[0]
            return {}
        finally:
            end()
        self.traced = True
        for leaf in leaves:
            self.leaves[id(leaf)].out_shapes[0] = tuple(leaf.shape)
        pairs = zip(leaves, found, strict=True)
        return {id(leaf): grad for leaf, grad in pairs if grad is not None}


def _noting(op: Op, finite: bool, spent: list[int]) -> Callable[[Any, Any], None]:
    # The hook must not hold the operation, which holds the node, which holds the hook.
    shapes, in_shapes, spoils = op.out_shapes, op.in_shapes, op.spoils

    def hook(grad_inputs: Any, grad_outputs: Any) -> None:
        start = perf_counter_ns()
        in_shapes[:] = [None if g is None else tuple(g.shape) for g in grad_inputs]
        for number, grad in enumerate(grad_outputs):
            if grad is not None:
                shapes[number] = tuple(grad.shape)
        if finite and not _finite(grad_inputs) and _finite(grad_outputs):
            spoils.append(True)
        spent[0] += perf_counter_ns() - start

    return hook


def _finite(grads: Any) -> bool:
    return all(g is None or g.is_sparse or bool(g.isfinite().all()) for g in grads)
