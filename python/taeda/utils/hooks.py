"""Handles that take a registered hook away again."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """The result of registering a hook: `remove()`, or leaving a `with` block, unregisters it.

    Args:
        hooks_dict: the ordered dictionary that holds the hook. Only a weak reference is kept, so
            a handle never keeps a module or a tensor alive.
        extra_dict: one more dictionary, or a list of them, that holds settings under the same id.

    >>> import taeda
    >>> layer = taeda.nn.Identity()
    >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
    >>> layer(taeda.zeros(2))
    tensor([1., 1.])
    >>> handle.remove()
    >>> layer(taeda.zeros(2))
    tensor([0., 0.])
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(extra) for extra in extras if extra is not None)

    def remove(self) -> None:
        """Take the hook away. Removing it twice, or after its owner is gone, does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, extras = state
        # A dictionary that was gone when the handle was saved is replaced by an empty one.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if e is None else e) for e in extras)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)


def unserializable_hook(f: Any) -> Any:
    """Mark a function as a hook that may be left out, with a warning, where tensors are pickled."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the hooks of a tensor that is being pickled without them.

    Those that `unserializable_hook` has marked are not mentioned.
    """
    import warnings

    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )
