"""The part of Module that calls `forward`, with the hooks around it."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from taeda.nn._module import hooks as _hooks
from taeda.utils.hooks import RemovableHandle

_NOTHING: Any = object()


class Signature:
    """Gives a module the signature of its `forward`, for `inspect.signature` and editors."""

    def __get__(self, module: Any, owner: type | None = None) -> Any:
        if module is None:
            raise AttributeError("__signature__")
        import inspect

        return inspect.signature(module.forward)


class Calling:
    """`__call__`, the registration of call hooks, and the naming of the module in errors."""

    # None while there is no hook to run, so that a call needs a single test. A module with hooks
    # has its own; while there are hooks of every module, Module's is an empty one.
    _call_hooks: _hooks.CallHooks | None = None

    _forward_pre_hooks = _hooks.Table("_own_hooks", "forward_pre")
    _forward_pre_hooks_with_kwargs = _hooks.Table("_own_hooks", "forward_pre_kwargs")
    _forward_hooks = _hooks.Table("_own_hooks", "forward")
    _forward_hooks_with_kwargs = _hooks.Table("_own_hooks", "forward_kwargs")
    _forward_hooks_always_called = _hooks.Table("_own_hooks", "forward_always")
    _backward_hooks = _hooks.Table("_own_hooks", "backward")
    _backward_pre_hooks = _hooks.Table("_own_hooks", "backward_pre")

    def __call__(self, input: Any = _NOTHING, /, *args: Any, **kwargs: Any) -> Any:
        """Run the hooks and `forward`; an exception gets a note that says in which module."""
        if self._call_hooks is None:
            try:
                # Passing one or two arguments explicitly is faster than passing `*args`.
                if not args and not kwargs and input is not _NOTHING:
                    return self.forward(input)
                if len(args) == 1 and not kwargs:
                    return self.forward(input, args[0])
                if input is _NOTHING:
                    return self.forward(**kwargs)
                return self.forward(input, *args, **kwargs)
            except Exception as error:
                name_failure(self, error)
                raise
        return self._call_with_hooks(() if input is _NOTHING else (input, *args), kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output. Every subclass defines it; call the module itself, not this."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """`taeda.compile` for this module: it runs eagerly, and says so the first time."""
        from taeda.compiler import compile

        compile(self, *args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Calling.__call__(self, *args, **kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        every, own = _hooks.for_all, self._call_hooks
        assert own is not None
        output = None
        called: set[int] = set()
        try:
            args, kwargs = self._run_pre_hooks(every, own, args, kwargs)
            full: list[Any] = []
            legacy: list[Any] = []
            for hooks in (every, own):
                (full if hooks.backward_is_full else legacy).extend(hooks.backward.values())
            pre = [*every.backward_pre.values(), *own.backward_pre.values()]
            tap = _hooks.BackwardTap(self, full, pre) if full or pre else None
            if tap is not None:
                args = tap.tap_inputs(args)
            output = self.forward(*args, **kwargs)
            for hooks in (every, own):
                for key, hook in tuple(hooks.forward.items()):
                    called.add(key)
                    result = _run_forward_hook(hooks, key, hook, self, args, kwargs, output)
                    output = output if result is None else result
            if tap is not None:
                output = tap.tap_output(output)
            if legacy:
                _hooks.attach_legacy(self, legacy, output)
            return output
        except Exception as error:
            name_failure(self, error)
            self._run_always_called(every, own, called, args, kwargs, output)
            raise

    def _run_pre_hooks(self, every: Any, own: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        for hooks in (every, own):
            for key, hook in tuple(hooks.forward_pre.items()):
                if key in hooks.forward_pre_kwargs:
                    result = hook(self, args, kwargs)
                    if result is None:
                        continue
                    if not isinstance(result, tuple) or len(result) != 2:
                        raise RuntimeError(
                            f"{type(self).__name__}: forward pre-hook must return None or a tuple "
                            f"of (new_args, new_kwargs), but got {result}."
                        )
                    args, kwargs = result
                else:
                    result = hook(self, args)
                    if result is not None:
                        args = _hooks.as_tuple(result)
        return args, kwargs

    def _run_always_called(
        self, every: Any, own: Any, called: set[int], args: Any, kwargs: Any, output: Any
    ) -> None:
        """After a failure, run those always-called hooks that had not run yet."""
        for hooks in (every, own):
            for key, hook in tuple(hooks.forward.items()):
                if key in called or key not in hooks.forward_always:
                    continue
                try:
                    result = _run_forward_hook(hooks, key, hook, self, args, kwargs, output)
                    output = output if result is None else result
                except Exception as error:
                    warnings.warn(
                        f"forward hook with always_call=True raised an exception, which was "
                        f"silenced because another error was being raised: {error}",
                        stacklevel=4,
                    )

    def _own_hooks(self) -> _hooks.CallHooks:
        hooks = self.__dict__.get("_call_hooks")
        if hooks is None:
            hooks = self.__dict__["_call_hooks"] = _hooks.CallHooks()
        return hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each forward of this module.

        Args:
            hook: what it returns, unless None, replaces the positional arguments; a single value
                stands for one argument.
            prepend: run it before the hooks registered so far.
            with_kwargs: call `hook(module, args, kwargs)`, which returns None or new
                `(args, kwargs)`.

        Returns:
            a handle whose `remove()` takes the hook away.
        """
        hooks = self._own_hooks()
        flags = (hooks.forward_pre_kwargs,) if with_kwargs else ()
        return _hooks.add(hooks.forward_pre, hook, prepend=prepend, flags=flags)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after each forward of this module.

        Args:
            hook: what it returns, unless None, replaces the output.
            prepend: run it before the hooks registered so far.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: call it also when the forward raises, with None as the output.

        Returns:
            a handle whose `remove()` takes the hook away.

        >>> layer = taeda.nn.Linear(2, 3)
        >>> handle = layer.register_forward_hook(lambda m, args, out: print(tuple(out.shape)))
        >>> _ = layer(taeda.zeros(1, 2))
        (1, 3)
        >>> handle.remove()
        """
        hooks = self._own_hooks()
        flags = []
        if with_kwargs:
            flags.append(hooks.forward_kwargs)
        if always_call:
            flags.append(hooks.forward_always)
        return _hooks.add(hooks.forward, hook, prepend=prepend, flags=tuple(flags))

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when this module's gradients are computed.

        Args:
            hook: `grad_input` and `grad_output` are tuples, one entry for each positional
                argument and each output, None where there is no gradient. What it returns, unless
                None, replaces `grad_input`.
            prepend: run it before the hooks registered so far.

        Returns:
            a handle whose `remove()` takes the hook away.
        """
        hooks = self._own_hooks()
        hooks.claim_backward(True)
        return _hooks.add(hooks.backward, hook, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` before this module's gradients are computed.

        Args:
            hook: what it returns, unless None, replaces `grad_output`.
            prepend: run it before the hooks registered so far.

        Returns:
            a handle whose `remove()` takes the hook away.
        """
        return _hooks.add(self._own_hooks().backward_pre, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Deprecated: `register_full_backward_hook` is meant for what this was used for.

        The hook sees the gradients of the last operation of the forward only.
        """
        hooks = self._own_hooks()
        hooks.claim_backward(False)
        return _hooks.add(hooks.backward, hook)


def _run_forward_hook(
    hooks: Any, key: int, hook: Callable[..., Any], module: Any, args: Any, kwargs: Any, output: Any
) -> Any:
    if key in hooks.forward_kwargs:
        return hook(module, args, kwargs, output)
    return hook(module, args, output)


def name_failure(module: Any, error: Exception) -> None:
    """Say in a note of an exception which module it came from, such as `in encoder.2 (Linear)`.

    Each module that the exception leaves extends the path of the one inside it, so the note ends
    as the path from the outermost module. Nothing is raised from here.
    """
    if hasattr(error, "add_note"):
        with contextlib.suppress(Exception):
            _extend_note(module, error)


def _extend_note(module: Any, error: Any) -> None:
    # Ids and strings only: exceptions may be pickled, and should not contain a model.
    where = error.__dict__.get("_taeda_module")
    if where is not None:
        outermost, path, kind, note = where
        if outermost == id(module):
            return
        inner = _path_to(module, outermost)
        if inner is not None:
            path = f"{inner}.{path}" if path else inner
            longer = f"in {path} ({kind})"
            notes = error.__notes__
            notes[notes.index(note)] = longer
            error.__dict__["_taeda_module"] = (id(module), path, kind, longer)
            return
    kind = type(module).__name__
    note = f"in {kind}"
    error.__dict__["_taeda_module"] = (id(module), "", kind, note)
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _path_to(module: Any, wanted: int) -> str | None:
    """The path below `module` of the submodule with the id `wanted`."""
    pending, seen = [("", module)], {id(module)}
    while pending:
        prefix, parent = pending.pop()
        for name, child in parent._modules.items():
            if id(child) == wanted:
                return prefix + name
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                pending.append((f"{prefix}{name}.", child))
    return None
