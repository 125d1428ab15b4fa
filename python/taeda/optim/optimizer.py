"""The base of all optimizers: parameter groups, state, hooks, saving and loading."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import taeda
from taeda.utils.hooks import RemovableHandle

from ._checks import GradientWatch
from ._groups import fit, in_order, split_names, state_entry
from ._helpers import (
    _default_to_fused_or_foreach,  # noqa: F401
    _disable_dynamo_if_unsupported,  # noqa: F401
    _get_capturable_supported_devices,  # noqa: F401
    _get_value,  # noqa: F401
    _stack_if_compiling,  # noqa: F401
    _use_grad_for_differentiable,  # noqa: F401
    _view_as_real,  # noqa: F401
    required,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from typing_extensions import Self

    from taeda import Tensor
    from taeda.insight import Preview

__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
]

ParamsT: TypeAlias = "Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[dict[str, Any]]"
StateDict: TypeAlias = "dict[str, Any]"
Hooks: TypeAlias = "OrderedDict[int, Callable[..., Any]]"

# Every optimizer that is in use, and what to call with each new one.
alive: weakref.WeakSet[Optimizer] = weakref.WeakSet()
on_new: list[Callable[[Optimizer], None]] = []

_global_pre_hooks: Hooks = OrderedDict()
_global_post_hooks: Hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer.

    It may return None, or the ``(args, kwargs)`` to step with in place of those it got.
    """
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _register(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a class's ``step`` so that hooks run around it: once, also where it calls super()'s."""

    @functools.wraps(step)
    def hooked_step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        self._step_was_called = True
        pre, post = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
        if self._in_step or not (pre or post or _global_pre_hooks or _global_post_hooks):
            # Passing no arguments is faster than passing empty ones.
            return step(self, *args, **kwargs) if args or kwargs else step(self)
        given: tuple[Any, ...] = (self, *args)
        self._in_step = True
        try:
            for hook in (*_global_pre_hooks.values(), *pre.values()):
                result = hook(self, given, kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"{type(self).__name__}.step: a pre-hook must return None or a tuple "
                        f"(args, kwargs), got {result!r}"
                    )
                given, kwargs = result
            loss = step(*given, **kwargs)
            for hook in (*post.values(), *_global_post_hooks.values()):
                hook(self, given, kwargs)
        finally:
            self._in_step = False
        return loss

    return hooked_step


_HOOK_NAMES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class Optimizer:
    """Base class of optimizers. A subclass gives ``step``, and its options in ``defaults``.

    Args:
        params: what to optimize: tensors; ``(name, tensor)`` pairs as ``named_parameters()`` gives;
            or dicts, one for each parameter group, with ``"params"`` and the options in which
            the group differs from ``defaults``. The order must be the same in every run, so sets
            are refused.
        defaults: the value of every option for groups that do not give it.

    Attributes:
        param_groups: the groups, each a dict of ``"params"`` (a list), the options and, where
            parameters came with names, ``"param_names"``. Schedulers change options in place.
        state: what the optimizer remembers, one dict for each parameter.

    Raises:
        TypeError: ``params`` is a single tensor or a set, or holds something else than tensors.
        ValueError: it is empty, holds results of operations instead of leaves, holds a
            parameter in two groups, or names only some of them.
    """

    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks
    _counts: ClassVar[tuple[str, ...]] = ("step",)  # state that is loaded as it was saved
    _in_step = False
    _watch: GradientWatch | None = None
    # What a FusedOptimizer calls with itself before a step that may change the dicts in its state.
    _before_change: Any = None
    _step_was_called = False  # schedulers warn when they are stepped first

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An optimizer with its hooks: one that wraps another may not call ``__init__``."""
        self = super().__new__(cls)
        self._prepare_hooks()
        alive.add(self)
        for notice in on_new:
            notice(self)
        return self

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        if isinstance(params, taeda.Tensor):
            raise TypeError(
                f"{type(self).__name__}: params must be an iterable of Tensors or dicts, got a "
                "single Tensor; put it in a list"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = in_order(self, params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: params is an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        self._watch_named()

    def _prepare_hooks(self) -> None:
        for name in _HOOK_NAMES:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())

    def _patch_step_function(self) -> None:
        """What wrappers that do not call ``__init__`` call for their hooks, by PyTorch's name."""
        self._prepare_hooks()

    def _watch_named(self) -> None:
        """Look out for stale gradients of parameters that have names to report them by."""
        named = any("param_names" in group for group in self.param_groups)
        if named and self._watch is None:
            self._watch = GradientWatch(stale="warn", finite=False)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare_hooks()
        self._watch_named()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for option in sorted(group.keys() - {"params"}):
                text += f"    {option}: {group[option]}\n"
        return text + ")"

    # Groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, as when layers are unfrozen during training.

        Args:
            param_group: a dict of ``"params"`` (a tensor or an iterable of them, or of
                ``(name, tensor)`` pairs) and of the options in which the group differs from
                the defaults.

        Raises:
            TypeError: it is not a dict, or ``"params"`` is not as said.
            ValueError: a parameter is in another group already, or is not a leaf.
        """
        if not isinstance(param_group, dict):
            raise TypeError(
                f"{type(self).__name__}.add_param_group: param_group must be a dict, got "
                f"{type(param_group).__name__}"
            )
        if "params" not in param_group:
            raise KeyError(
                f"{type(self).__name__}: a parameter group needs 'params', got the keys "
                f"{list(param_group)}"
            )
        given = param_group["params"]
        entries = [given] if isinstance(given, taeda.Tensor) else in_order(self, given)
        params, names = split_names(self, entries)
        for param in params:
            if param.is_nested:
                raise NotImplementedError(
                    f"{type(self).__name__}: nested tensors cannot be optimized; give their "
                    "values(), which are updated in place"
                )
            if not self.defaults.get("differentiable") and not (
                param.is_leaf or param.retains_grad
            ):
                raise ValueError(
                    f"{type(self).__name__}: can't optimize a non-leaf Tensor, one that is itself "
                    "the result of an operation"
                )
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                f"{type(self).__name__}: a parameter group holds a parameter twice, which will "
                "be updated twice in each step",
                stacklevel=3,
            )
        taken = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in taken for p in params):
            raise ValueError(
                f"{type(self).__name__}.add_param_group: some parameters appear in more than one "
                "group"
            )
        if self.param_groups and ("param_names" in self.param_groups[0]) != (names is not None):
            raise ValueError(
                f"{type(self).__name__}.add_param_group: either all parameter groups have "
                "parameters' names, or none has"
            )
        for option, default in self.defaults.items():
            if default is required and option not in param_group:
                raise ValueError(
                    f"{type(self).__name__}.add_param_group: the group lacks the required option "
                    f"{option!r}"
                )
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for option, default in self.defaults.items():
            param_group.setdefault(option, default)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients.

        Args:
            set_to_none: True sets each ``.grad`` to None, which frees memory and lets ``step``
                skip parameters that then get no gradient. False fills the gradients with zeros,
                in place.
        """
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    grad = param.grad
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once, from their gradients.

        Args:
            closure: recomputes the loss and the gradients and returns the loss.

        Returns:
            What ``closure`` returned, or None without one.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step()")

    def preview(self, closure: Callable[[], Any] | None = None) -> Preview:
        """What ``step(closure)`` would do to each parameter; nothing is changed.

        Copies are stepped, so the values are those that the step would give, bit for bit. Hooks
        of the optimizer do not run. A closure runs, and computes with the parameters themselves,
        which are as before afterwards.

        Args:
            closure: as for ``step``; only optimizers that evaluate the loss need it.

        Returns:
            A mapping from names to updates, with their values after the step, which prints as a
            table of norms.

        >>> layer = taeda.nn.Linear(2, 1)
        >>> optimizer = taeda.optim.SGD(layer.named_parameters(), lr=0.5)
        >>> layer(taeda.ones(1, 2)).sum().backward()
        >>> optimizer.preview()["weight"].change
        tensor([[-0.5000, -0.5000]])
        """
        from taeda.insight._preview import preview

        return preview(self, closure)

    def named_params(self, group: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """A group's parameters with words for messages: their names, or else their positions."""
        names = group.get("param_names")
        for i, param in enumerate(group["params"]):
            yield (repr(names[i]) if names else f"number {i}"), param

    def check_gradients(
        self, *, stale: Literal["error", "warn", "ignore"] = "error", finite: bool = True
    ) -> None:
        """Have every step look at its gradients first, beyond their shape, dtype and device.

        A step that finds something wrong changes nothing in its group. Its message has the
        parameters' names where the optimizer was made from ``named_parameters()``; then, too,
        ``stale`` is "warn" from the start.

        Args:
            stale: what to do about a gradient that an earlier step used and that has not changed
                since, as where ``backward()`` or ``zero_grad()`` was forgotten: raise a
                RuntimeError ("error"), warn the first time ("warn"), or nothing ("ignore").
            finite: raise a RuntimeError for gradients that hold an infinity or NaN. It costs a
                pass over all gradients.

        Raises:
            ValueError: ``stale`` is something else.

        >>> layer = taeda.nn.Linear(2, 1)
        >>> optimizer = taeda.optim.SGD(layer.named_parameters(), lr=0.1)
        >>> optimizer.check_gradients()
        >>> (layer(taeda.ones(2)) * float("inf")).sum().backward()
        >>> optimizer.step()
        Traceback (most recent call last):
        RuntimeError: SGD.step: gradients that are not finite, of parameter 'weight', 'bias'; ...
        """
        self._watch = GradientWatch(stale, finite)

    # Saving and loading

    def state_dict(self) -> StateDict:
        """The state for resuming later: a dict of ``"state"`` and ``"param_groups"``.

        ``"state"`` maps each parameter's position, counted over all groups, to its state;
        ``"param_groups"`` lists the groups with those positions for ``"params"``. Tensors are the
        optimizer's own, not copies. The structure is PyTorch's, and passes both ways.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        position: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                position.setdefault(id(param), len(position))
            packed = {option: value for option, value in group.items() if option != "params"}
            packed["params"] = [position[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            (position[id(key)] if isinstance(key, taeda.Tensor) else key): value
            for key, value in self.state.items()
        }
        result: StateDict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over the state and the options that ``state_dict()`` gave.

        State goes to the parameters in the same positions. Where both sides know their
        parameters' names, it goes by name instead, in whatever order the parameters are. Tensors
        are cast to their parameter's dtype and device, and are not copied where they have both;
        counts of steps and the like stay as they were saved.

        Raises:
            ValueError: the numbers or sizes of the groups, or the parameters' names, differ.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"{type(self).__name__}.load_state_dict: state_dict must be a dict, got "
                f"{type(state_dict).__name__}"
            )
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved_groups, saved_state = (
            state_entry(self, state_dict, key) for key in ("param_groups", "state")
        )
        if len(saved_groups) != len(self.param_groups):
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: the loaded state dict has a different "
                f"number of parameter groups: {len(saved_groups)}, the optimizer has "
                f"{len(self.param_groups)}"
            )
        for i, (saved, own) in enumerate(zip(saved_groups, self.param_groups, strict=True)):
            if "params" not in saved:
                raise KeyError(
                    f"{type(self).__name__}.load_state_dict: group {i} of the state dict has no "
                    "'params'"
                )
            if len(saved["params"]) != len(own["params"]):
                raise ValueError(
                    f"{type(self).__name__}.load_state_dict: the loaded state dict contains a "
                    f"parameter group that doesn't match the size of the optimizer's: group {i} "
                    f"has {len(saved['params'])} parameters there and {len(own['params'])} here"
                )
        owner = self._owners_of_saved_state(saved_groups)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in saved_state.items():
            if key in owner:
                param = owner[key]
                state[param] = {
                    k: v if k in self._counts else fit(v, param) for k, v in value.items()
                }
            else:
                state[key] = value
        groups = []
        for saved, own in zip(saved_groups, self.param_groups, strict=True):
            group = {option: value for option, value in saved.items() if option != "params"}
            if "param_names" in own:
                group["param_names"] = own["param_names"]
            group["params"] = own["params"]
            groups.append(group)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _owners_of_saved_state(self, saved_groups: list[dict[str, Any]]) -> dict[Any, Any]:
        """The parameter that the state saved under each position belongs to."""
        positions = [key for group in saved_groups for key in group["params"]]
        params = [p for group in self.param_groups for p in group["params"]]
        groups = (*saved_groups, *self.param_groups)
        if not all("param_names" in group for group in groups):
            return dict(zip(positions, params, strict=True))
        saved_names = [name for group in saved_groups for name in group["param_names"]]
        own_names = [name for group in self.param_groups for name in group["param_names"]]
        by_name = dict(zip(own_names, params, strict=True))
        missing = sorted(set(own_names) - set(saved_names))
        extra = sorted(set(saved_names) - set(own_names))
        if missing or extra:
            raise ValueError(
                f"{type(self).__name__}.load_state_dict: the parameters' names differ: the "
                f"optimizer has {missing}, which the state dict lacks, and the state dict has "
                f"{extra}, which the optimizer lacks. To match by position, delete 'param_names' "
                "from the groups of the state dict"
            )
        return {key: by_name[name] for key, name in zip(positions, saved_names, strict=True)}

    # Hooks

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step.

        It may return None, or the ``(args, kwargs)`` to step with; ``args`` starts with the
        optimizer.
        """
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``; ``prepend`` puts it before the others."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on what ``state_dict`` returns.

        It changes the dict in place, or returns the one to use. ``prepend`` puts it before the
        others.
        """
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[[Optimizer, StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading.

        ``state_dict`` is a shallow copy; the hook changes it in place, or returns the one to
        load. ``prepend`` puts it before the others.
        """
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[[Optimizer], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading; ``prepend`` puts it before the others."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)
