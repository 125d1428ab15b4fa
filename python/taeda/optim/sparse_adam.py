"""Adam for sparse gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda

from ._base import PerTensorOptimizer, zeros_for
from ._checks import check_betas

if TYPE_CHECKING:
    from taeda import Tensor

    from .optimizer import ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(PerTensorOptimizer):
    """Adam that moves only the elements which the gradient has.

    Of Adam's moving averages (Kingma, Ba: Adam: A method for stochastic optimization, ICLR 2015),
    too, only those elements are updated; the others wait, unlike in Adam, where every gradient of
    zero makes them smaller.

    Args:
        params: dense parameters, ``(name, parameter)`` pairs, or dicts of parameter groups.
        lr: learning rate, a number or a tensor of one element, above 0.
        betas: shares of the moving averages of gradients and squares that are kept.
        eps: added to the root of the average of squares; above 0.
        maximize: climb the objective instead of descending it.

    Raises:
        ValueError: an option is out of its range, or a parameter is sparse.

    >>> table = taeda.nn.Embedding(4, 2, sparse=True)
    >>> optimizer = taeda.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(taeda.tensor([1, 3])).sum().backward()
    >>> optimizer.step()
    """

    _counts = ()

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        for name, value in (("learning rate", lr), ("epsilon value", eps)):
            if not value > 0:
                raise ValueError(f"SparseAdam: Invalid {name}: {float(value)}; it must be above 0")
        check_betas("SparseAdam", betas)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize}
        super().__init__(params, defaults)
        sparse = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if param.layout is not taeda.strided
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _new_state(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_for(param), "exp_avg_sq": zeros_for(param)}

    def _step_group(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        if not all(param.grad.is_sparse for param in params):
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        beta1, beta2 = group["betas"]
        with taeda.no_grad():
            for param in params:
                grad = param.grad.coalesce()
                positions, values = tuple(grad.indices()), grad.values()
                values = -values if group["maximize"] else values
                state = self.state[param]
                if not state:
                    state.update(self._new_state(param, group))
                state["step"] += 1
                means, squares = state["exp_avg"], state["exp_avg_sq"]
                mean = means[positions].lerp(values, 1 - beta1)
                square = squares[positions].lerp(values * values, 1 - beta2)
                means.index_put_(positions, mean)
                squares.index_put_(positions, square)
                correction = (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
                move = mean / square.sqrt().add_(group["eps"]) * (-float(group["lr"]) * correction)
                param.index_put_(positions, move, accumulate=True)
