"""What an optimizer's next step would do, found by stepping copies."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda.random import fork_rng

from ._table import Table, number, percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda.optim import Optimizer

__all__ = ["Preview", "Update"]


@dataclass(frozen=True)
class Update:
    """What a step would do to one parameter.

    Attributes:
        parameter: the parameter, as it is.
        after: its values after the step, of the same shape.
    """

    parameter: Tensor
    after: Tensor

    @property
    def change(self) -> Tensor:
        """What the step would add to the parameter."""
        return self.after - self.parameter.detach()

    @property
    def norm(self) -> float:
        """The change's Euclidean norm."""
        return _norm(self.change)

    @property
    def ratio(self) -> float:
        """The change's norm, relative to the parameter's; infinite where that is zero."""
        size = _norm(self.parameter.detach())
        norm = self.norm
        return norm / size if size else (float("inf") if norm else 0.0)


class Preview(Mapping[str, Update]):
    """The update that each parameter of an optimizer would get, by name.

    A mapping from names to `Update`s; where the optimizer was made without names they are
    ``"group 0, number 3"``. Parameters without a gradient are not in it. It prints as a table.
    """

    def __init__(self, title: str, updates: dict[str, Update]) -> None:
        self.title = title
        self._updates = updates

    def __getitem__(self, name: str) -> Update:
        return self._updates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._updates)

    def __len__(self) -> int:
        return len(self._updates)

    def of(self, parameter: Tensor) -> Update | None:
        """The update of a parameter, or None if it gets none."""
        found = (u for u in self._updates.values() if u.parameter is parameter)
        return next(found, None)

    def table(self) -> Table:
        """The norms of the parameters and of their updates."""
        table = Table(self.title, ["parameter", "shape", "norm", "update", "relative"])
        for name, update in self.items():
            shape = tuple(update.parameter.shape)
            size = _norm(update.parameter.detach())
            table.add(name, shape, number(size), number(update.norm), percent(update.ratio))
        if not self._updates:
            table.notes.append("No parameter has a gradient: step() would change nothing.")
        return table

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def _norm(tensor: Tensor) -> float:
    return float(tensor.norm()) if tensor.numel() else 0.0


def preview(
    optimizer: Optimizer,
    closure: Callable[[], Any] | None = None,
    grads: dict[int, Tensor | None] | None = None,
) -> Preview:
    """What ``optimizer.step(closure)`` would do.

    Args:
        optimizer: any optimizer.
        closure: as for ``step``. It runs, on the parameters themselves.
        grads: gradients to step with in place of the parameters' own, by the parameters' ids.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    with fork_rng():
        if closure is None:
            after = _step_copies(optimizer, parameters, grads)
        else:
            after = _step_in_place(optimizer, parameters, closure)
    names = _names(optimizer)
    changed = {
        names[id(p)]: Update(p, after[id(p)]) for p in parameters if after.get(id(p)) is not None
    }
    return Preview(f"{type(optimizer).__name__}: the next step()", changed)


def _names(optimizer: Optimizer) -> dict[int, str]:
    names: dict[int, str] = {}
    for i, group in enumerate(optimizer.param_groups):
        given = group.get("param_names")
        for j, parameter in enumerate(group["params"]):
            name = given[j] if given else f"group {i}, number {j}"
            names.setdefault(id(parameter), name)
    return names


def _copied(optimizer: Optimizer, memo: dict[int, Any]) -> Any:
    """A copy of an optimizer without its hooks, with tensors replaced as `memo` says."""
    kind: Any = type(optimizer)
    other = kind.__new__(kind)
    attributes = {
        name: value
        for name, value in optimizer.__dict__.items()
        if not name.endswith("_hooks") and name not in ("_watch", "step", "_around_step")
    }
    for tensor in _tensors_in(attributes):
        if id(tensor) not in memo:  # deepcopy refuses those with a graph
            memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
    other.__dict__.update(copy.deepcopy(attributes, memo))
    other._in_step = True  # so that step() runs no hooks
    other.__dict__["_met_gradient"] = True  # nor warns
    return other


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if not value.is_leaf:
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors_in(key)
            yield from _tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)


def _step_copies(
    optimizer: Optimizer, parameters: list[Tensor], grads: dict[int, Tensor | None] | None
) -> dict[int, Tensor]:
    memo: dict[int, Any] = {}
    for parameter in parameters:
        twin = parameter.detach().clone(memory_format=taeda.preserve_format)
        twin.requires_grad_(parameter.requires_grad)
        grad = parameter.grad if grads is None else grads.get(id(parameter))
        if grad is not None:
            twin.grad = grad.detach().clone()
        memo[id(parameter)] = twin
    twins = {key: memo[key] for key in memo}
    other = _copied(optimizer, memo)
    other.step()
    return {key: twin.detach() for key, twin in twins.items() if twin.grad is not None}


def _step_in_place(
    optimizer: Optimizer, parameters: list[Tensor], closure: Callable[[], Any]
) -> dict[int, Tensor]:
    """Step the parameters themselves, as the closure computes with them, and put all back."""
    memo: dict[int, Any] = {id(p): p for p in parameters}
    values = [p.data for p in parameters]
    grads = [p.grad for p in parameters]
    kept = [None if g is None else g.detach().clone() for g in grads]
    for parameter in parameters:
        parameter.data = parameter.data.clone(memory_format=taeda.preserve_format)
        if parameter.grad is not None:
            parameter.grad = parameter.grad.detach().clone()
    try:
        _copied(optimizer, memo).step(closure)
        stepped = {id(p): p.data for p in parameters if p.grad is not None}
    finally:
        for parameter, value, grad, copied in zip(parameters, values, grads, kept, strict=True):
            parameter.data = value
            parameter.grad = grad
            if grad is not None and copied is not None and not taeda.equal(grad, copied):
                grad.data.copy_(copied)
    return stepped
