"""Helpers of the transforms: arguments as new nodes of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd import _run
from taeda.autograd._run import grad as gradients_of
from taeda.autograd.forward_ad import make_dual, unpack_dual
from taeda.utils._pytree import TreeSpec, tree_flatten

ops = _C.ops


def chosen(argnums: int | tuple[int, ...], count: int) -> tuple[int, ...]:
    """The arguments' positions that `argnums` names, among `count`."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(numbers, tuple) or not all(isinstance(n, int) for n in numbers):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for n in numbers:
        if not -count <= n < count:
            raise RuntimeError(f"Got argnum={n}, but only {count} positional inputs")
    numbers = tuple(n % count for n in numbers)
    if len(set(numbers)) < len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return numbers


def separated(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """Split a function's result into output and aux."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def tensors_only(values: Sequence[Any], message: str) -> list[Tensor]:
    """`values`, which must be tensors."""
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{message}, got unsupported type {type(value)}")
    return list(values)


class Arguments:
    """Some of a function's arguments, flattened, as tensors that require gradients.

    A tensor that requires a gradient stays joined to whatever made it.
    """

    def __init__(self, args: Sequence[Any], numbers: Sequence[int]) -> None:
        self.given: list[Any] = []
        self.trees: list[TreeSpec] = []
        for n in numbers:
            leaves, tree = tree_flatten(args[n])
            self.given += leaves
            self.trees.append(tree)
        for x in self.given:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        self.fresh = [fresh(x) for x in self.given]
        self.args = list(args)
        for n, value in zip(numbers, self.unflatten(self.fresh), strict=True):
            self.args[n] = value

    def unflatten(self, leaves: Iterable[Any]) -> tuple[Any, ...]:
        """One value of each argument's structure."""
        rest = iter(leaves)
        return tuple(tree.unflatten(islice(rest, tree.num_leaves)) for tree in self.trees)

    def joins_others(self, tensors: Sequence[Any]) -> bool:
        """Whether the history of one of the tensors leads to more than these arguments."""
        own = {id(recorded_of(x)) for x in self.fresh if x.is_leaf}
        seen: dict[int, Any] = {}
        nodes = []
        for t in tensors:
            if not isinstance(t, Tensor) or not t.requires_grad:
                continue
            if t.grad_fn is not None:
                nodes.append(t.grad_fn)
            elif id(recorded_of(t)) not in own:
                return True
        while nodes:
            node = nodes.pop()
            if id(node) in seen:
                continue
            seen[id(node)] = node
            variable = getattr(node, "variable", None)
            if variable is not None and id(variable) not in own:
                return True
            nodes += [following for following, _ in node.next_functions if following is not None]
        return False

    def released(self, value: Any) -> Any:
        """`value` without the history that it has from these arguments alone."""
        leaves, tree = tree_flatten(value)
        return tree.unflatten(t if self.joins_others([t]) else plain(t) for t in leaves)

    def gradients(
        self,
        outputs: Sequence[Tensor],
        weights: Sequence[Tensor] | None,
        retain_graph: bool,
        create_graph: bool,
    ) -> list[Tensor]:
        """By each argument, of the outputs with these weights; zeros where there is nothing."""
        kept = [i for i, o in enumerate(outputs) if o.requires_grad]
        found: Sequence[Tensor | None] = [None] * len(self.fresh)
        if kept and self.fresh:
            found = gradients_of(
                [outputs[i] for i in kept],
                self.fresh,
                None if weights is None else [weights[i] for i in kept],
                retain_graph=retain_graph,
                create_graph=create_graph,
                allow_unused=True,
            )
        return [zeros(x) if g is None else g for g, x in zip(found, self.given, strict=True)]


def fresh(x: Tensor) -> Tensor:
    """A view of `x` that requires a gradient."""
    if _run.batching is not None:
        return _run.batching.fresh(x)
    view = x.view_as(x)
    return view if view.requires_grad else view.requires_grad_()


def recorded_of(x: Tensor) -> Tensor:
    """The tensor that has the history of `x`."""
    if _run.nested is not None and isinstance(x, _run.nested):
        return recorded_of(x._values_)
    return x if _run.batching is None else _run.batching.innermost_value(x)


def zeros(like: Tensor) -> Tensor:
    """Zeros of these sizes, without a history."""
    return ops.zeros_like(like).detach()


def plain(t: Any) -> Any:
    """A tensor without its history. It keeps its tangent."""
    if not isinstance(t, Tensor) or not t.requires_grad:
        return t
    tangent = unpack_dual(t).tangent
    return t.detach() if tangent is None else make_dual(t.detach(), plain(tangent))
