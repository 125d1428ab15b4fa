"""Which modules are being called, or computed backward."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from taeda import _C
from taeda._C import Tensor
from taeda.autograd.graph import register_multi_grad_hook
from taeda.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from taeda.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from taeda.nn.module import Module

__all__ = ["ModuleTracker"]


class _Backward:
    """Lives as long as a backward pass, which holds it as a callback, however it ends."""

    def __init__(self) -> None:
        _C._queue_callback(self)

    def __call__(self) -> None:
        pass


class ModuleTracker:
    """Inside ``with ModuleTracker() as tracker:``, ``tracker.parents`` names the modules at work.

    Attributes:
        parents: the names of the modules that are being called, or whose backward is being
            computed, such as ``"Net.layer.0"``; and ``"Global"``.

    >>> import taeda
    >>> from taeda.utils.module_tracker import ModuleTracker
    >>> net = taeda.nn.Sequential(taeda.nn.ReLU())
    >>> with ModuleTracker() as tracker:
    ...     handle = net[0].register_forward_pre_hook(lambda *a: print(sorted(tracker.parents)))
    ...     y = net(taeda.ones(1))
    ['Global', 'Sequential', 'Sequential.0']
    """

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._hooks: list[Any] = []
        self._backward: weakref.ref[_Backward] | None = None

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass is running that has reached a module."""
        return self._backward is not None

    def __enter__(self) -> ModuleTracker:
        self._hooks = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, *exc_info: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def _name(self, module: Module) -> str:
        if module not in self._names:
            root = type(module).__name__
            for name, child in module.named_modules():
                self._names[child] = f"{root}.{name}" if name else root
        return self._names[module]

    def _begin(self, module: Module, inputs: Any) -> None:
        name = self._name(module)
        self.parents.add(name)
        self._on_gradients(inputs, name, begins=False)

    def _end(self, module: Module, inputs: Any, outputs: Any) -> None:
        name = self._name(module)
        self.parents.discard(name)
        self._on_gradients(outputs, name, begins=True)

    def _on_gradients(self, values: Any, name: str, begins: bool) -> None:
        """When the gradients of values are there, the backward of a module begins, or has ended."""
        tensors = [v for v in tree_leaves(values) if isinstance(v, Tensor) and v.requires_grad]
        if not tensors or not _C.is_grad_enabled():
            return

        def hook(grads: Any) -> None:
            if self._backward is None:
                self._backward = weakref.ref(_Backward(), self._end_of_backward)
            if begins:
                self.parents.add(name)
            else:
                self.parents.discard(name)

        register_multi_grad_hook(tensors, hook)

    def _end_of_backward(self, ended: Any) -> None:
        self._backward = None
        self.parents = {"Global"}
