"""An optimizer whose state is divided among processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.distributed import _collectives as plain
from taeda.distributed._group import _known
from taeda.distributed._objects import gather_object
from taeda.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is divided among processes (Rajbhandari et al. 2020, ZeRO-1).

    Each process has the state of some parameters, and makes their steps; then it sends them to the
    others. Gradients are the same in all, as after `DistributedDataParallel`.

    Args:
        params: what to optimize.
        optimizer_class: the class of the optimizer that does it.
        process_group: the processes; all by default.
        parameters_as_bucket_view: False; parameters keep their memory.
        defaults: the optimizer's arguments.

    Attributes:
        optim: the optimizer of this process's parameters.

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
        self._sizes = [0] * self.process_group.size()
        self._owner: dict[int, int] = {}
        self._all_states: list[Any] | None = None
        whole = optimizer_class(list(params), **defaults)
        for group in whole.param_groups:
            self._share_out(group["params"])
        self.optim = whole
        if self.process_group.size() > 1:
            mine = [self._own(group) for group in whole.param_groups]
            self.optim = optimizer_class(mine, **defaults)
        super().__init__(whole.param_groups, whole.defaults)
        if self.process_group.size() == 1:
            self.param_groups = self.optim.param_groups
        self.state = self.optim.state
        self._made = True

    def _share_out(self, parameters: list[Tensor]) -> None:
        """Give each parameter, the largest first, to the process that has least."""
        for p in sorted(parameters, key=lambda p: -p.numel()):
            owner = self._sizes.index(min(self._sizes))
            self._owner[id(p)] = owner
            self._sizes[owner] += p.numel()

    def _own(self, group: dict[str, Any]) -> dict[str, Any]:
        rank = self.process_group.rank()
        return {**group, "params": [p for p in group["params"] if self._owner[id(p)] == rank]}

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        for mine, group in zip(self.optim.param_groups, self.param_groups, strict=True):
            # Learning rates and the like are changed in the groups of all parameters.
            mine.update({key: value for key, value in group.items() if key != "params"})
        loss = self.optim.step(**({} if closure is None else {"closure": closure}), **kwargs)
        if self.process_group.size() > 1:
            with taeda.no_grad():
                for owner in range(self.process_group.size()):
                    self._send(owner)
        return loss

    def _send(self, owner: int) -> None:
        """Give all processes the parameters of one."""
        owned = [
            p.detach()
            for group in self.param_groups
            for p in group["params"]
            if self._owner[id(p)] == owner
        ]
        for dtype in dict.fromkeys(p.dtype for p in owned):
            chosen = [p for p in owned if p.dtype == dtype]
            flat = taeda.cat([p.reshape(-1) for p in chosen])
            plain.broadcast(flat, group=self.process_group, group_src=owner)
            if owner != self.process_group.rank():
                for p, part in zip(chosen, flat.split([p.numel() for p in chosen]), strict=True):
                    p.copy_(part.view(p.shape))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters to the optimizer."""
        if "_made" not in self.__dict__:
            super().add_param_group(param_group)
        elif self.process_group.size() == 1:
            self.optim.add_param_group(param_group)
        else:
            super().add_param_group(param_group)
            self._share_out(self.param_groups[-1]["params"])
            self.optim.add_param_group(self._own(self.param_groups[-1]))

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the state of all processes in one of them, whose `state_dict` then has it.

        Args:
            to: the process, among all. All must call this.
        """
        size = self.process_group.size()
        if size == 1:
            return
        here = self.process_group._ranks[self.process_group.rank()] == to
        found: list[Any] | None = [None] * size if here else None
        gather_object(self.optim.state_dict(), found, to, self.process_group)
        self._all_states = found

    def state_dict(self) -> dict[str, Any]:
        """The state of the optimizer, as of one that has all parameters.

        Raises:
            RuntimeError: it has not been gathered here by `consolidate_state_dict`.
        """
        if self.process_group.size() == 1:
            return self.optim.state_dict()
        if self._all_states is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                "`consolidate_state_dict(to={rank})` on all ranks beforehand if you meant to save "
                "the global state."
            )
        state: dict[int, Any] = {}
        groups = []
        number = 0
        taken = [0] * self.process_group.size()
        for group in self.param_groups:
            numbers = []
            for p in group["params"]:
                owner = self._owner[id(p)]
                theirs = self._all_states[owner]["state"]
                if taken[owner] in theirs:
                    state[number] = theirs[taken[owner]]
                taken[owner] += 1
                numbers.append(number)
                number += 1
            groups.append({**group, "params": numbers})
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the state of an optimizer of the class that has all parameters."""
        if self.process_group.size() == 1:
            self.optim.load_state_dict(state_dict)
            self.state, self.param_groups = self.optim.state, self.optim.param_groups
            return
        rank = self.process_group.rank()
        state: dict[int, Any] = {}
        groups = []
        for group, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            numbers = []
            for p, number in zip(group["params"], given["params"], strict=True):
                if self._owner[id(p)] == rank:
                    numbers.append(number)
                    if number in state_dict["state"]:
                        state[number] = state_dict["state"][number]
            options = {key: value for key, value in given.items() if key != "params"}
            group.update(options)
            groups.append({**options, "params": numbers})
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        self.state = self.optim.state
