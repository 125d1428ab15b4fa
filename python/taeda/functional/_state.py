"""What an optimizer without hidden state remembers between steps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import taeda
from taeda._C import Tensor
from taeda.utils._pytree import register_pytree_node, tree_flatten

if TYPE_CHECKING:
    from taeda.optim.optimizer import Optimizer

__all__ = ["OptimizerState", "Store", "attributes_of", "copied", "groups_of", "values_of"]

_IMMUTABLE = (int, float, complex, str, bytes, bool, type(None), taeda.dtype, taeda.device)
# Of an optimizer's attributes, those that are not carried from step to step.
_NOT_KEPT = {"param_groups", "state", "defaults", "_before_change", "_in_step", "_watch"}


def copied(value: Any, tensor: Callable[[Tensor], Tensor] = lambda t: t.detach().clone()) -> Any:
    """A copy of a piece of state, down to its tensors."""
    if isinstance(value, Tensor):
        return tensor(value)
    if type(value) is dict:
        return {key: copied(item, tensor) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(copied(item, tensor) for item in value)
    return value if isinstance(value, _IMMUTABLE) or callable(value) else copy.deepcopy(value)


class Store:
    """What an optimizer keeps for its parameters, shared by states that differ in options alone.

    Attributes:
        kept: the values, by name; None where `bound` has them.
        exported: somebody else may hold the tensors.
        bound: the ordinary optimizer that made the last step, ready for the next one.
        tensors: by name, the tensors that it steps.
    """

    __slots__ = ("bound", "donated_to", "exported", "kept", "tensors")

    def __init__(
        self,
        kept: dict[Any, Any] | None,
        exported: bool = False,
        bound: Optimizer | None = None,
        tensors: dict[str, Tensor] | None = None,
    ) -> None:
        self.kept, self.exported, self.bound = kept, exported, bound
        self.tensors: dict[str, Tensor] = {} if tensors is None else tensors
        self.donated_to = ""

    def donate_to(self, to: str) -> None:
        """From now on nothing of it can be read."""
        self.donated_to = to
        self.kept, self.bound, self.tensors = {}, None, {}

    def read(self) -> Optimizer | None:
        """The bound optimizer, if there is one.

        Raises:
            RuntimeError: the store was donated.
        """
        if self.donated_to:
            raise RuntimeError(
                f"this OptimizerState was donated to {self.donated_to}, which has reused "
                "its memory for the one that it returned; to keep both, pass donate=False to it"
            )
        return self.bound

    def values(self) -> dict[Any, Any]:
        """What is kept for each parameter, by name."""
        bound = self.read()
        if self.kept is not None or bound is None:
            return self.kept or {}
        return values_of(bound, self.tensors)


class OptimizerState:
    """All that an optimizer remembers between steps, and its options; immutable, and a pytree.

    Attributes:
        values: what is kept for each parameter, by the parameter's name.
        groups: the options of each group of parameters, such as ``"lr"``, and under ``"params"``
            the names of its parameters.

    ``PureOptimizer.init`` makes the first one.
    """

    __slots__ = ("__weakref__", "_own_attributes", "_own_groups", "_store")

    def __init__(
        self,
        store: Store,
        groups: list[dict[str, Any]] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self._store = store
        self._own_groups = groups  # None: those of the bound optimizer
        self._own_attributes = attributes

    def __reduce__(self) -> Any:
        return _unpickled, (self._values, self._groups, self._attributes)

    @property
    def _groups(self) -> list[dict[str, Any]]:
        if self._own_groups is None:
            bound = self._store.read()
            assert bound is not None
            self._own_groups = groups_of(bound, self._store.tensors)
        return self._own_groups

    @property
    def _attributes(self) -> dict[str, Any]:
        if self._own_attributes is None:
            bound = self._store.read()
            assert bound is not None
            self._own_attributes = attributes_of(bound)
        return self._own_attributes

    @property
    def _values(self) -> dict[Any, Any]:
        return self._store.values()

    def _export(self) -> dict[Any, Any]:
        """The values, for somebody who may keep them."""
        values = self._values
        self._store.exported = True
        return values

    @property
    def values(self) -> Mapping[Any, Any]:
        """What is kept for each parameter, by name."""
        return MappingProxyType(self._export())

    @property
    def groups(self) -> tuple[Mapping[str, Any], ...]:
        """The options of each group."""
        return tuple(MappingProxyType(group) for group in self._groups)

    def __repr__(self) -> str:
        if self._store.donated_to:
            return f"OptimizerState(donated to {self._store.donated_to})"
        kept = sorted({key for v in self._values.values() if isinstance(v, dict) for key in v})
        rates = [group.get("lr") for group in self._groups]
        return f"OptimizerState({len(self._values)} parameters, each with {kept}; lr {rates})"

    def replace(self, **options: Any) -> OptimizerState:
        """The same state with other options, such as ``lr``, in all groups.

        Raises:
            KeyError: the optimizer has no such option.
        """
        for option in options:
            for group in self._groups:
                if option not in group or option == "params":
                    raise KeyError(f"OptimizerState.replace: there is no option {option!r}")
        groups = [{**group, **options} for group in self._groups]
        return OptimizerState(self._store, groups, self._attributes)

    def state_dict(self) -> dict[str, Any]:
        """The state as ``Optimizer.state_dict()`` gives it, with the parameters' names."""
        numbers: dict[Any, int] = {}
        groups = []
        for group in self._groups:
            for name in group["params"]:
                numbers[name] = len(numbers)
            packed = {option: value for option, value in group.items() if option != "params"}
            packed["param_names"] = list(group["params"])
            packed["params"] = [numbers[name] for name in group["params"]]
            groups.append(packed)
        values = {numbers.get(name, name): value for name, value in self._export().items()}
        return {"state": values, "param_groups": groups}


def _unpickled(values: Any, groups: Any, attributes: Any) -> OptimizerState:
    return OptimizerState(Store(values), groups, attributes)


def _names_of(tensors: Mapping[str, Tensor]) -> dict[int, str]:
    return {id(tensor): name for name, tensor in tensors.items()}


def values_of(made: Optimizer, tensors: Mapping[str, Tensor]) -> dict[Any, Any]:
    """What an optimizer keeps, by the names of its parameters."""
    names = _names_of(tensors)
    return {
        (names[id(key)] if isinstance(key, Tensor) else key): value
        for key, value in made.state.items()
        if value or not isinstance(value, dict)
    }


def groups_of(made: Optimizer, tensors: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    """Its groups, with names for parameters."""
    names, groups = _names_of(tensors), []
    for group in made.param_groups:
        options = {k: v for k, v in group.items() if k not in ("params", "param_names")}
        groups.append({**options, "params": tuple(names[id(t)] for t in group["params"])})
    return groups


def attributes_of(made: Optimizer) -> dict[str, Any]:
    """What else it carries from step to step."""
    return {
        key: value
        for key, value in made.__dict__.items()
        if key not in _NOT_KEPT and not key.startswith("_optimizer_")
    }


def _flatten(state: OptimizerState) -> tuple[list[Any], Any]:
    leaves, tree = tree_flatten(state._export())
    return leaves, (tree, state._groups, state._attributes)


register_pytree_node(
    OptimizerState,
    _flatten,
    lambda leaves, context: OptimizerState(
        Store(context[0].unflatten(leaves), exported=True), *context[1:]
    ),
)
