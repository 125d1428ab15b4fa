"""An optimizer whose state is divided among processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda.distributed._group import _known
from taeda.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is divided among processes; a group has one, which has all.

    Args:
        params: what to optimize.
        optimizer_class: the class of the optimizer that does it.
        process_group: the processes; all by default.
        parameters_as_bucket_view: whether parameters would share the memory that is sent.
        defaults: the optimizer's arguments.

    Attributes:
        optim: the optimizer that does it.

    Raises:
        ValueError: there is no group.

    >>> import taeda.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    >>> w = taeda.ones(1, requires_grad=True)
    >>> opt = dist.optim.ZeroRedundancyOptimizer([w], taeda.optim.SGD, lr=0.5)
    >>> w.sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.5000], requires_grad=True)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = _known(process_group)
        params = list(params)
        self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.state = self.optim.state
        self.param_groups = self.optim.param_groups
        self._made = True

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        return self.optim.step(**({} if closure is None else {"closure": closure}), **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters to the optimizer."""
        if "_made" in self.__dict__:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all processes in one of them; it is here."""

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer."""
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of an optimizer of the class."""
        self.optim.load_state_dict(state_dict)
        self.state, self.param_groups = self.optim.state, self.optim.param_groups
