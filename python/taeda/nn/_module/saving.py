"""The part of Module that saves and loads its state."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import taeda
from taeda._C import Tensor
from taeda.nn._module import hooks as _hooks
from taeda.nn._module.converting import _switches
from taeda.nn.parameter import Parameter, is_lazy
from taeda.utils._swapping import swap_tensors
from taeda.utils.hooks import RemovableHandle

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The result of `load_state_dict`: missing and unexpected keys.

    Its repr names, for each unused key, a missing key that looks like it.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        text = (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )
        return "\n  ".join([text, *self.hints()])

    def hints(self) -> list[str]:
        """One line for each unexpected key that is nearly a missing one, ten at most."""
        missing = list(self.missing_keys)
        if not missing or not self.unexpected_keys:
            return []
        shift = _common_shift(missing, self.unexpected_keys)
        if shift is not None:
            return [shift]
        import difflib

        lines = []
        for key in self.unexpected_keys[:10]:
            near = difflib.get_close_matches(key, missing[:200], n=1, cutoff=0.75)
            if near:
                lines.append(f'"{key}" is near "{near[0]}"')
        return lines


Snapshot: TypeAlias = "list[tuple[Any, str, Tensor, Tensor]]"


def _own_state(module: Any) -> Iterator[tuple[str, Tensor]]:
    """A module's own parameters and persistent buffers, by name."""
    for name, value in module._parameters.items():
        if value is not None:
            yield name, value
    for name, value in module._buffers.items():
        if value is not None and name not in module._non_persistent_buffers_set:
            yield name, value


def _fits(model: Any, state: Mapping[str, Any], strict: bool) -> bool:
    """Whether loading will not fail: there are no hooks, and keys and shapes match."""
    used = 0
    for path, module in model.named_modules(remove_duplicate=False):
        if module._state_hooks is not None:
            return False
        for name, value in _own_state(module):
            key = f"{path}.{name}" if path else name
            given = state.get(key)
            if given is None and strict:
                return False
            if given is not None:
                used += 1
                lazy = is_lazy(value) or is_lazy(given)
                if not isinstance(given, Tensor) or lazy or given.shape != value.shape:
                    return False
    return not strict or used == len(state)


def _snapshot(model: Any) -> Snapshot:
    """Every tensor with a copy of its values, for `_restore` to undo a failed load."""
    return [
        (module, name, value, value.detach().clone())
        for module in model.modules()
        for name, value in _own_state(module)
        if not is_lazy(value)
    ]


def _restore(before: Snapshot | None) -> None:
    with taeda.no_grad():
        for module, name, value, values in before or ():
            if getattr(module, name, None) is not value:
                setattr(module, name, value)
            value.copy_(values)


def _loading_error(model: Any, errors: list[str], report: IncompatibleKeys) -> RuntimeError:
    error = RuntimeError(
        f"Error(s) in loading state_dict for {type(model).__name__}:\n\t" + "\n\t".join(errors)
    )
    hints = report.hints()
    if hints and hasattr(error, "add_note"):
        error.add_note("\n".join(hints))
    return error


def _common_shift(missing: list[str], unexpected: list[str]) -> str | None:
    """A hint when most keys of one kind are keys of the other with a prefix before them."""
    for longer, shorter, hint in (
        (unexpected, set(missing), '{} unexpected keys have "{}" before the expected name'),
        (missing, set(unexpected), '{} missing keys have "{}" before the given name'),
    ):
        end = longer[0].find(".") + 1
        while end:
            prefix = longer[0][:end]
            count = sum(key.startswith(prefix) and key[end:] in shorter for key in longer)
            if 2 * count > len(longer):
                return hint.format(count, prefix)
            end = longer[0].find(".", end) + 1
    return None


class Saving:
    """`state_dict` and `load_state_dict`, with what they call and the hooks around them."""

    _version: int = 1

    # Typed here for this part of Module; set up in Module.__new__.
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_hooks: _hooks.StateHooks | None = None
    _state_dict_pre_hooks = _hooks.Table("_own_state_hooks", "save_pre")
    _state_dict_hooks = _hooks.Table("_own_state_hooks", "save")
    _load_state_dict_pre_hooks = _hooks.Table("_own_state_hooks", "load_pre")
    _load_state_dict_post_hooks = _hooks.Table("_own_state_hooks", "load_post")

    def _own_state_hooks(self) -> _hooks.StateHooks:
        hooks = self.__dict__.get("_state_hooks")
        if hooks is None:
            hooks = self.__dict__["_state_hooks"] = _hooks.StateHooks()
        return hooks

    def get_extra_state(self) -> Any:
        """Return whatever else belongs in the `state_dict`; it is saved under `_extra_state`.

        Define it together with `set_extra_state` in a subclass. What it returns should pickle.
        """
        raise RuntimeError(f"{type(self).__name__} does not define get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned. Called by `load_state_dict`."""
        raise RuntimeError(f"{type(self).__name__} does not define set_extra_state")

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return the parameters and persistent buffers of this module and of those below it.

        Args:
            destination: the dictionary to fill; by default a new OrderedDict.
            prefix: put before each name.
            keep_vars: keep the parameters themselves; by default the tensors are detached from
                the graph. Either way they share memory with the module's.

        >>> layer = taeda.nn.Linear(2, 3)
        >>> {name: tuple(value.shape) for name, value in layer.state_dict().items()}
        {'weight': (3, 2), 'bias': (3,)}
        """
        if args:
            warnings.warn(
                "state_dict: positional arguments are deprecated; name destination, prefix and "
                "keep_vars",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata: dict[str, Any] = {"version": self._version}
        if "_init_scheme" in self.__dict__:
            local_metadata["init"] = self.__dict__["_init_scheme"]
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        hooks = self._state_hooks
        if hooks is not None:
            for hook in tuple(hooks.save_pre.values()):
                hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        if hooks is not None:
            for key, hook in tuple(hooks.save.items()):
                result = hook(self, destination, prefix, local_metadata)
                if key in hooks.save_must_return_none:
                    if result is not None:
                        raise RuntimeError(
                            f"{type(self).__name__}.state_dict: state_dict post-hook must return "
                            "None"
                        )
                elif result is not None:
                    destination = result
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own state, without that of its submodules, into `destination`."""
        for name, parameter in self._parameters.items():
            if parameter is not None:
                keep = keep_vars or is_lazy(parameter)
                destination[prefix + name] = parameter if keep else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                keep = keep_vars or is_lazy(buffer)
                destination[prefix + name] = buffer if keep else buffer.detach()
        if type(self).get_extra_state is not Saving.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a `state_dict` into this module and those below it.

        Args:
            state_dict: names to tensors, as `state_dict()` returns them.
            strict: raise when the names are not exactly this module's.
            assign: put the tensors themselves in place of the module's, with their dtype and
                device, instead of copying their values. `requires_grad` stays the module's.

        Returns:
            the missing and the unexpected keys; printing it shows likely mix-ups.

        Raises:
            RuntimeError: listing every size that differs and, when `strict`, every wrong key. The
                parameters and buffers are then what they were before.
            TypeError: `state_dict` is not a mapping.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"{type(self).__name__}.load_state_dict: Expected state_dict to be dict-like, got "
                f"{type(state_dict)}."
            )
        for key in state_dict:
            if not isinstance(key, str):
                raise AttributeError(
                    f"{type(self).__name__}.load_state_dict: a key of state_dict must be a string, "
                    f"got {key!r}"
                )
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata  # type: ignore[attr-defined]
        report = IncompatibleKeys([], [])
        errors: list[str] = []

        def load(module: Any, local_state: Any, prefix: str) -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(local_state, prefix, local_metadata, True, *report, errors)
            for name, child in module._modules.items():
                if child is not None:
                    inner = f"{prefix}{name}."
                    load(
                        child, {k: v for k, v in local_state.items() if k.startswith(inner)}, inner
                    )
            if module._state_hooks is not None:
                for hook in tuple(module._state_hooks.load_post.values()):
                    if hook(module, report) is not None:
                        raise AssertionError(
                            "load_state_dict: a post hook must return None; to change the report, "
                            "edit its lists"
                        )

        before = None if _fits(self, state, strict) else _snapshot(self)
        try:
            load(self, state, "")
            if strict:
                if report.unexpected_keys:
                    errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(report[1])}. ")
                if report.missing_keys:
                    errors.insert(0, f"Missing key(s) in state_dict: {_quoted(report[0])}. ")
            if errors:
                raise _loading_error(self, errors, report)
        except BaseException:
            _restore(before)
            raise
        return report

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state, without that of its submodules.

        A subclass may override it to load what older versions of it had saved:
        `local_metadata.get("version")` tells the version. Problems are appended to the lists.
        """
        hooks = self._state_hooks
        if hooks is not None:
            arguments = (
                state_dict, prefix, local_metadata, strict,
                missing_keys, unexpected_keys, error_msgs,
            )  # fmt: skip
            for number, hook in tuple(hooks.load_pre.items()):
                if number in hooks.load_pre_with_module:
                    hook(self, *arguments)
                else:
                    hook(*arguments)
        own = dict(_own_state(self))
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_one(name, value, key, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not Saving.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if first not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, own: Any, key: str, given: Any, assign: bool) -> str | None:
        """Load one tensor; return an error message if it does not fit."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected a Tensor from checkpoint '
                f"but received {type(given)}"
            )
        lazy = is_lazy(own)
        if not lazy and not is_lazy(given):
            if own.dim() == 0 and given.dim() == 1 and given.numel() == 1:
                given = given[0]  # how very old checkpoints hold a scalar
            if given.shape != own.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {given.shape} from "
                    f"checkpoint, the shape in current model is {own.shape}."
                )
        if own.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True` to assign items in the state dictionary to their corresponding "
                "key in the module instead of copying them in place?)",
                stacklevel=4,
            )
        try:
            with taeda.no_grad():
                if assign:
                    if isinstance(own, Parameter):
                        if isinstance(given, Parameter):
                            given.requires_grad_(own.requires_grad)
                        else:
                            given = Parameter(given, requires_grad=own.requires_grad)
                    setattr(self, name, given)
                elif _switches()[1]:
                    loaded = own.module_load(given)
                    if isinstance(own, Parameter) and not isinstance(loaded, Parameter):
                        loaded = Parameter(loaded, requires_grad=own.requires_grad)
                    swap_tensors(own, loaded)
                else:
                    own.copy_(given)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{own.size()} and whose dimensions in the checkpoint are {given.size()}, an "
                f"exception occurred : {error.args}."
            )
        return None

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before this module's state is collected."""
        return _hooks.add(self._own_state_hooks().save_pre, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the state is collected.

        The hook may change `state_dict` in place; it must return None.
        """
        hooks = self._own_state_hooks()
        return _hooks.add(hooks.save, hook, flags=(hooks.save_must_return_none,))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """As `register_state_dict_post_hook`, but a dictionary that it returns is used instead."""
        return _hooks.add(self._own_state_hooks().save, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook` before this module's state is loaded.

        It is called as `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)` and may change any of them in place.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """As `register_load_state_dict_pre_hook`, without the module unless `with_module`."""
        hooks = self._own_state_hooks()
        flags = (hooks.load_pre_with_module,) if with_module else ()
        return _hooks.add(hooks.load_pre, hook, flags=flags)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after this module's state is loaded.

        Emptying the lists of `incompatible_keys` makes a strict load succeed.
        """
        return _hooks.add(self._own_state_hooks().load_post, hook)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
