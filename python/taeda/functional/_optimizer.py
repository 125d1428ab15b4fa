"""Optimizers as functions from parameters, a gradient and a state to new ones."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from taeda import _C
from taeda._C import Tensor
from taeda.functional._parameters import Parameters
from taeda.functional._state import (
    OptimizerState,
    Store,
    attributes_of,
    copied,
    groups_of,
    values_of,
)
from taeda.optim._base import FusedOptimizer
from taeda.optim.optimizer import Optimizer

__all__ = ["OptimizerState", "PureOptimizer", "optimizer"]


class PureOptimizer:
    """An optimizer without hidden state: ``step`` takes everything and returns everything.

    It runs the step of the class that it is made of, on tensors that belong to nobody else.
    See ``optimizer``.
    """

    def __init__(
        self,
        kind: type[Optimizer],
        groups: Mapping[str, Mapping[str, Any]],
        donate: bool,
        options: dict[str, Any],
    ) -> None:
        if not (isinstance(kind, type) and issubclass(kind, Optimizer)):
            raise TypeError(
                f"optimizer: expected a class such as taeda.optim.Adam, got {kind!r}; its options "
                "follow as keyword arguments, and parameters are given to init() and step()"
            )
        self.kind = kind
        self.options = options
        self._patterns = dict(groups)
        self._donate = donate
        self._who = f"{kind.__name__}.step"
        self._to = f"{self._who}()"  # what tensors are donated to

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.kind.__name__}({options})"

    # ---- states ---------------------------------------------------------------------------------

    def init(self, parameters: Parameters) -> OptimizerState:
        """The state before the first step.

        Raises:
            ValueError: a pattern of ``groups`` matches no parameter, or an option is not valid.
        """
        return self._state_of(self._constructed(parameters), parameters._all)

    def load_state_dict(self, state_dict: dict[str, Any], parameters: Parameters) -> OptimizerState:
        """The state that a ``state_dict()`` has saved, of this or of an ordinary optimizer.

        Raises:
            ValueError: it does not fit the parameters.
        """
        made = self._constructed(parameters)
        made.load_state_dict(copied(state_dict))
        return self._state_of(made, parameters._all)

    def _constructed(self, parameters: Parameters) -> Optimizer:
        groups: list[dict[str, Any]] = [{"params": []}]
        groups += [{"params": [], **options} for options in self._patterns.values()]
        for pair in parameters._all.items():
            place = 0
            for i, pattern in enumerate(self._patterns):
                if fnmatch.fnmatchcase(pair[0], pattern):
                    place = i + 1
                    break
            groups[place]["params"].append(pair)
        for pattern, group in zip(self._patterns, groups[1:], strict=True):
            if not group["params"]:
                raise ValueError(
                    f"optimizer: the group {pattern!r} matches none of the parameters "
                    f"{list(parameters)}, or earlier groups have them all"
                )
        make: Any = self.kind
        return make([g for g in groups if g["params"]], **self.options)

    def _state_of(self, made: Optimizer, tensors: dict[str, Tensor]) -> OptimizerState:
        store = Store(values_of(made, tensors))
        return OptimizerState(store, groups_of(made, tensors), attributes_of(made))

    def _bound(
        self, tensors: Mapping[str, Tensor], values: Mapping[Any, Any], state: OptimizerState
    ) -> Optimizer:
        """An optimizer that has these tensors and values, and the options of ``state``."""
        bound = object.__new__(self.kind)  # which no registry of optimizers knows of
        bound._prepare_hooks()
        bound.__dict__.update(copied(state._attributes))
        bound.defaults = {k: v for k, v in state._groups[0].items() if k != "params"}
        bound.param_groups = []
        for group in state._groups:
            options = {k: copied(v) for k, v in group.items() if k != "params"}
            params = [tensors[name] for name in group["params"]]
            bound.param_groups.append(
                {"params": params, "param_names": list(group["params"]), **options}
            )
        bound.state = defaultdict(dict)
        for name, value in values.items():
            # A step that fails leaves the dicts of the old state as they are.
            bound.state[tensors.get(name, name)] = dict(value) if type(value) is dict else value
        if _says_before_change(self.kind):
            bound._before_change = _Snapshot()
        return bound

    # ---- steps ----------------------------------------------------------------------------------

    def step(
        self,
        parameters: Parameters,
        gradient: Mapping[str, Tensor] | Callable[[Parameters], tuple[Parameters, Tensor]],
        state: OptimizerState,
        *,
        donate: bool | None = None,
    ) -> tuple[Parameters, OptimizerState]:
        """One step.

        Args:
            parameters: where to step from.
            gradient: the gradient there; parameters that it has no entry for stay as they are. For
                LBFGS, which asks for several, a function that returns gradient and loss at the
                parameters it is given, such as ``taeda.func.grad_and_value`` makes.
            state: what ``init`` or the last step gave.
            donate: whether the memory of ``parameters`` and ``state`` is reused for those that are
                returned, and that of ``gradient`` as soon as a model runs with these; the old ones
                can then not be read any more. None stands for what the optimizer was
                made with. Tensors that somebody has read from them, or that a transform is looking
                at, are copied all the same.

        Returns:
            The new parameters, and the new state.

        Raises:
            ValueError: the gradient or the state has names that the parameters lack.
            TypeError: an argument is not of its kind.
            RuntimeError: a gradient does not fit its parameter, or an argument was donated or
                changed.
        """
        if not isinstance(parameters, Parameters) or not isinstance(state, OptimizerState):
            raise TypeError(
                f"{self._who}: expected Parameters, a gradient and an OptimizerState, got "
                f"{type(parameters).__name__}, {type(gradient).__name__}, {type(state).__name__}"
            )
        parameters._unchanged(self._who)
        given = gradient
        store, wanted = state._store, self._donate if donate is None else donate
        if (
            wanted
            and store.tensors is parameters._tensors
            and not callable(gradient)
            and self._is_bound(store, parameters)
        ):
            return self._step_again(parameters, gradient, state)
        if not callable(gradient):
            gradient = _as_gradient(self._who, gradient, parameters)
            _check_names(self._who, gradient, parameters)
        for group in state._groups:
            _check_names(f"{self._who}: the state", group["params"], parameters)
        recorded = any(group.get("differentiable") for group in state._groups)
        donate = wanted and not recorded
        tensors = _own(parameters, donate, recorded, self._who)
        values = state._values
        if not donate or store.exported:
            values = copied(values, Tensor.clone) if recorded else copied(values)
        bound = self._bound(tensors, values, state)
        try:
            if callable(gradient):
                bound.step(lambda: _evaluated(gradient, tensors))
            else:
                _assign(self._who, tensors, gradient)
                bound.step()
        finally:
            _C._set_gradients(tensors, None)
        if recorded:
            kept = Store(values_of(bound, tensors), exported=True)
            new = OptimizerState(kept, groups_of(bound, tensors), attributes_of(bound))
        else:
            new = OptimizerState(Store(None, bound=bound, tensors=tensors))
        made = Parameters._of(tensors, exported=recorded)
        if donate:
            self._take(parameters, given, store, made)
        return made, new

    def _is_bound(self, store: Store, parameters: Parameters) -> bool:
        """Whether the last step's optimizer has these very tensors, which nobody else holds."""
        return (
            store.bound is not None
            and store.tensors is parameters._tensors
            and not store.exported
            and not parameters._exported
            and type(store.bound) is self.kind
        )

    def _step_again(
        self, parameters: Parameters, gradient: Any, state: OptimizerState
    ) -> tuple[Parameters, OptimizerState]:
        """A step of the optimizer that made the last one, in place."""
        store, who = state._store, self._who
        bound, tensors, given = store.bound, store.tensors, gradient
        assert bound is not None
        if type(gradient) is not Parameters or gradient is parameters:
            gradient = _as_gradient(who, gradient, parameters)
        elif gradient._versions is not None or gradient._donated_to:
            gradient._unchanged(who)
        if not gradient._tensors.keys() <= tensors.keys():
            _check_names(who, gradient, parameters)
        if state._own_groups is not None:
            for own, given in zip(bound.param_groups, state._own_groups, strict=True):
                own.update({k: copied(v) for k, v in given.items() if k != "params"})
        before = bound._before_change
        if before is None:
            before = _Snapshot()
            before(bound)
        try:
            _assign(who, tensors, gradient)
            bound.step()
        except BaseException:
            before.restore(bound)
            raise
        finally:
            before.values = None
            _C._set_gradients(tensors, None)
        new = Parameters._made(tensors, parameters._plain, parameters._fits)
        self._take(parameters, given, store, new)
        return new, OptimizerState(Store(None, False, bound, tensors))

    def _take(self, parameters: Parameters, gradient: Any, store: Store, made: Parameters) -> None:
        parameters._donate_to(self._to)
        store.donate_to(self._to)
        if type(gradient) is Parameters:
            made._spend(gradient, self._to)


class _Snapshot:
    """What an optimizer's ``state`` was, so that a step that fails leaves its dicts as they were.

    Attributes:
        values: the dicts; None while none have been taken.
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[Any, Any] | None = None

    def __call__(self, bound: Optimizer) -> None:
        if self.values is None:
            self.values = {k: dict(v) if type(v) is dict else v for k, v in bound.state.items()}

    def restore(self, bound: Optimizer) -> None:
        if self.values is not None:
            bound.state.clear()
            bound.state.update(self.values)


def _says_before_change(kind: Any) -> bool:
    """Whether an optimizer calls ``_before_change`` before it changes the dicts in its state."""
    step, of_group = getattr(kind, "step", None), getattr(kind, "_step_group", None)
    return step is FusedOptimizer.step and of_group is FusedOptimizer._step_group


def _as_gradient(who: str, gradient: Any, parameters: Parameters) -> Parameters:
    """A gradient that may be read while the parameters are written to."""
    if isinstance(gradient, Parameters):
        gradient._unchanged(who)
        return gradient.clone() if gradient is parameters else gradient
    if not isinstance(gradient, Mapping):
        raise TypeError(
            f"{who}: the gradient must be Parameters or a function that returns them, got "
            f"{type(gradient).__name__}"
        )
    return Parameters(gradient)


def _assign(who: str, tensors: dict[str, Tensor], gradient: Parameters) -> None:
    """Put a gradient where steps look for it."""
    try:
        _C._set_gradients(tensors, gradient._all)
    except RuntimeError as error:
        for name, tensor in gradient._all.items():
            if tensor.shape != tensors[name].shape:
                raise RuntimeError(
                    f"{who}: parameter {name!r} has shape {tuple(tensors[name].shape)}, but its "
                    f"gradient has shape {tuple(tensor.shape)}"
                ) from error
        raise


def _check_names(who: str, given: Any, parameters: Parameters) -> None:
    unknown = [name for name in given if name not in parameters._tensors]
    if unknown:
        raise ValueError(f"{who}: no parameters are named {unknown}, only {list(parameters)}")


def _own(parameters: Parameters, donate: bool, recorded: bool, who: str) -> dict[str, Tensor]:
    """Tensors to step in place: those of the parameters where they are donated, else copies."""
    tensors = {}
    for name, tensor in parameters._all.items():
        if type(tensor) is not Tensor:
            raise RuntimeError(
                f"{who}: {name!r} is a {type(tensor).__name__}; inside of vmap, compute gradients "
                "and return them, and step the stacked parameters outside"
            )
        if recorded:
            tensors[name] = tensor.clone()
        elif donate and name not in parameters._exported and not tensor.requires_grad:
            tensors[name] = tensor
        else:
            tensors[name] = tensor.detach().clone()
    return tensors


def _evaluated(function: Any, tensors: dict[str, Tensor]) -> Tensor:
    """What a closure gives: the loss, and in ``.grad`` the gradient, at these values."""
    now = Parameters._of(dict(tensors), exported=True)
    gradient, loss = function(now)
    for name, tensor in tensors.items():
        tensor.grad = gradient.get(name)
    return loss


def optimizer(
    kind: type[Optimizer],
    *,
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    donate: bool = True,
    **options: Any,
) -> PureOptimizer:
    """The form without hidden state of an optimizer.

    Args:
        kind: a class of ``taeda.optim``, or any other subclass of ``taeda.optim.Optimizer`` that
            keeps its state in ``state``, ``param_groups`` and attributes.
        groups: options that differ for some parameters, by a pattern of their names; the first that
            matches holds. Parameters that none matches are the first group, in which the options
            are those below.
        donate: whether steps reuse the memory of the parameters and the state that they are given,
            which then cannot be read any more; a gradient can, until a model runs with the new
            parameters. False keeps them all, and a step copies them.
        options: the class's own, such as ``lr``.

    >>> import taeda
    >>> sgd = taeda.functional.optimizer(taeda.optim.SGD, lr=0.5, momentum=0.9, donate=False)
    >>> parameters = taeda.functional.Parameters({"w": taeda.tensor([1.0, -2.0])})
    >>> state = sgd.init(parameters)
    >>> gradient = 2 * parameters
    >>> after, state = sgd.step(parameters, gradient, state)
    >>> parameters["w"], after["w"], state.values["w"]["momentum_buffer"]
    (tensor([ 1., -2.]), tensor([0., 0.]), tensor([ 2., -4.]))
    """
    return PureOptimizer(kind, groups or {}, donate, options)
