"""L-BFGS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import run_closure
from ._checks import check_gradients, check_lr
from ._line_search import Point, StrongWolfe
from .optimizer import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """The quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno, with limited memory.

    Each step makes up to ``max_iter`` iterations on the same data, for which it calls a closure
    again and again. It remembers ``history_size`` pairs of vectors as large as all parameters
    together. There is one group of parameters.

    Liu, Nocedal: On the limited memory BFGS method for large scale optimization, Mathematical
    Programming, 1989.

    Args:
        params: parameters, or ``(name, parameter)`` pairs.
        lr: the size of a step where there is no line search, and the first that one tries; a
            number or a tensor of one element.
        max_iter: iterations of a step.
        max_eval: after how many calls of the closure a step ends; ``max_iter * 5 // 4`` if None.
        tolerance_grad: a step ends when no element of the gradient is larger.
        tolerance_change: a step ends when neither a parameter nor the loss changes by more.
        history_size: how many changes of the gradient are remembered, at least 1.
        line_search_fn: ``"strong_wolfe"``, or None for none.

    Raises:
        ValueError: an option is out of its range, or there are several groups.

    >>> w = taeda.nn.Parameter(taeda.tensor([1.0, -2.0]))
    >>> optimizer = taeda.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - taeda.tensor([3.0, 4.0])) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     loss = optimizer.step(closure)
    >>> loss.item() < 1e-6
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr("LBFGS", lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS: there is one parameter group, without options of its own, got "
                f"{len(self.param_groups)}"
            )

    @property
    def _params(self) -> list[Any]:
        params: list[Any] = self.param_groups[0]["params"]
        return params

    def _flat_gradient(self) -> Tensor:
        """All gradients in one vector; complex ones as pairs."""
        check_gradients("LBFGS", self.named_params(self.param_groups[0]))
        parts = []
        for param in self._params:
            grad = taeda.zeros_like(param) if param.grad is None else param.grad
            parts.append((taeda.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return taeda.cat(parts)

    def _move(self, direction: Tensor, t: float) -> None:
        """Add ``t * direction`` to the parameters."""
        offset = 0
        for param in self._params:
            target = taeda.view_as_real(param) if param.is_complex() else param
            part = direction[offset : offset + target.numel()]
            target.add_(part.reshape(target.shape), alpha=t)
            offset += target.numel()

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Make up to ``max_iter`` iterations.

        Args:
            closure: recomputes the loss and the gradients and returns the loss.

        Returns:
            What the first call of ``closure`` returned: the loss before the step.

        Raises:
            RuntimeError: a gradient is not of its parameter's shape, dtype or device, or
                ``line_search_fn`` is not known.
        """
        group, state = self.param_groups[0], self.state[self._params[0]]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(
                "LBFGS.step: line_search_fn must be 'strong_wolfe' or None, got "
                f"{group['line_search_fn']!r}"
            )
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> tuple[Any, Tensor]:
            loss = run_closure("LBFGS", closure)
            state["func_evals"] += 1
            return loss, self._flat_gradient()

        with taeda.no_grad():
            first_loss, gradient = evaluate()
            if gradient.abs().max().item() > group["tolerance_grad"]:
                self._iterate(evaluate, float(first_loss), gradient, group, state)
        return first_loss

    def _iterate(
        self,
        evaluate: Callable[[], tuple[Any, Tensor]],
        loss: float,
        gradient: Tensor,
        group: dict[str, Any],
        state: dict[str, Any],
    ) -> None:
        last_evaluation = state["func_evals"] - 1 + group["max_eval"]
        for left in range(group["max_iter"], 0, -1):
            state["n_iter"] += 1
            direction = self._direction(gradient, group, state)
            is_first = state["n_iter"] == 1
            t = float(group["lr"])
            if is_first:
                t *= min(1.0, 1.0 / gradient.abs().sum().item())
            state.update(d=direction, t=t, prev_flat_grad=gradient.clone(), prev_loss=loss)
            slope = gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            before = loss
            if group["line_search_fn"]:
                start = Point(0.0, loss, gradient, slope)
                t, loss, gradient = self._search(evaluate, direction, start, t, group)
                state["t"] = t
            self._move(direction, t)
            if left > 1 and not group["line_search_fn"]:
                new_loss, gradient = evaluate()
                loss = float(new_loss)
            if (
                state["func_evals"] >= last_evaluation
                or gradient.abs().max().item() <= group["tolerance_grad"]
                or (direction * t).abs().max().item() <= group["tolerance_change"]
                or abs(loss - before) < group["tolerance_change"]
            ):
                break

    def _direction(self, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> Tensor:
        """The descent direction, after taking note of how the gradient changed."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature.item() > 1e-10:
            if len(changes) == group["history_size"]:
                for memory in (changes, steps, ro):
                    memory.pop(0)
            changes.append(change)
            steps.append(step)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        # The two loops that multiply by the inverse Hessian's approximation.
        direction = -gradient
        al = state.setdefault("al", [None] * group["history_size"])
        for i in range(len(changes) - 1, -1, -1):
            al[i] = steps[i].dot(direction) * ro[i]
            direction = direction - changes[i] * al[i]
        direction = direction * state["H_diag"]
        for i, change in enumerate(changes):
            direction = direction + steps[i] * (al[i] - change.dot(direction) * ro[i])
        return direction

    def _search(
        self,
        evaluate: Callable[[], tuple[Any, Tensor]],
        direction: Tensor,
        start: Point,
        t: float,
        group: dict[str, Any],
    ) -> tuple[float, float, Tensor]:
        """The step along ``direction`` that the line search finds, its loss and its gradient."""
        params = self._params
        origin = [param.clone() for param in params]

        def at(t: float) -> tuple[float, Tensor]:
            self._move(direction, t)
            try:
                loss, gradient = evaluate()
            finally:
                for param, value in zip(params, origin, strict=True):
                    param.copy_(value)
            return float(loss), gradient

        found = StrongWolfe(at, direction, start).search(t)
        return found.t, found.value, found.gradient
