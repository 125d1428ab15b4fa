"""Checkpoints that keep the results of some operations instead of computing them again."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import taeda
from taeda._aten import OpOverload, OpOverloadPacket, packet
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from taeda import Tensor

    Policy = Callable[..., Any]
    Storage = dict[Any, list[Any]]

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What a checkpoint does with an operation's results.

    The forms with PREFER leave room to compilers; here they do the same as those with MUST.
    Offloaded results are kept in the CPU's memory.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told about a call.

    Args:
        is_recompute: whether it is the second computation, which asks no policy: False.
        op_output: the operation's result.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def _ignored() -> set[OpOverload]:
    found = packet("detach")
    return set() if found is None else {found.overload("default")}


# Operations that no policy is asked about: they compute nothing.
SAC_IGNORED_OPS = _ignored()


class _Kept:
    """A result that is kept."""

    def __init__(self, tensor: Tensor, offload: bool) -> None:
        self._device = tensor.device
        self._tensor = tensor.detach()
        if offload:
            self._tensor = self._tensor.cpu()
        self._version = self._tensor._version

    def get(self, may_have_changed: bool) -> Tensor:
        """The result, as a tensor without history.

        Raises:
            RuntimeError: it has been changed in place.
        """
        if self._tensor._version != self._version and not may_have_changed:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated"
            )
        return self._tensor.to(self._device).detach()


_USED = "used"  # in place of a result that was kept, once it has been given


class _Keeping(TorchDispatchMode):
    """The first computation: notes for each call of an operation what is kept of it, or None."""

    def __init__(self, policy: Policy, storage: Storage) -> None:
        self._policy = policy
        self._storage = storage

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        policy = self._policy(context, func, *args, **kwargs)
        offload = policy in _OFFLOADED

        def keep(x: Any) -> Any:
            return _Kept(x, offload) if isinstance(x, taeda.Tensor) else x

        kept = policy is True or policy in _SAVED or offload
        self._storage[func].append(tree_map(keep, result) if kept else None)
        return result


class _Replacing(TorchDispatchMode):
    """The second computation: what was kept is not computed again."""

    def __init__(self, storage: Storage, may_change: bool) -> None:
        self._storage = storage
        self._may_change = may_change

    def __enter__(self) -> Self:
        self._calls: Counter[Any] = Counter()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        number, noted = self._calls[func], self._storage.get(func, [])
        self._calls[func] += 1
        if number >= len(noted):
            raise RuntimeError(
                f"{func} encountered during backward but not found in storage: the function "
                "computed something else than at first"
            )
        kept = noted[number]
        if kept is None:
            return func(*args, **(kwargs or {}))
        if kept is _USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any "
                "region computed under selective activation checkpoint."
            )
        noted[number] = _USED
        return tree_map(lambda x: x.get(self._may_change) if isinstance(x, _Kept) else x, kept)


def _policy_of_list(ops: list[Any]) -> Policy:
    """The policy that saves the results of these operations."""
    for op in ops:
        if not isinstance(op, OpOverload):
            hint = ""
            if isinstance(op, OpOverloadPacket):
                hint = (
                    f" `{op}` names several; write `{op}.default`, or the overload that is meant."
                )
            raise ValueError(
                "Expected op in `op_list` to be an OpOverload but got: "
                f"{op} of type {type(op)}.{hint}"
            )
    saved = set(ops)

    def policy(context: SelectiveCheckpointContext, op: Any, *args: Any, **kwargs: Any) -> Any:
        if op in saved:
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """Contexts for ``checkpoint(..., use_reentrant=False, context_fn=...)`` that save some results.

    Args:
        policy_fn_or_list: called with a :class:`SelectiveCheckpointContext`, the operation and its
            arguments, after every operation of the first computation; gives a
            :class:`CheckpointPolicy`. Or a list of the operations whose results are saved, such as
            ``taeda.ops.aten.mm.default``.
        allow_cache_entry_mutation: do not raise where a saved result was changed in place.

    Returns:
        The contexts of the first and of the second computation.

    Raises:
        TypeError: the policy is neither a function nor a list.
        ValueError: an item of the list is no overload of an operation.

    >>> from functools import partial
    >>> from taeda.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = taeda.ones(2, 2, requires_grad=True)
    >>> save = partial(create_selective_checkpoint_contexts, [taeda.ops.aten.mm.default])
    >>> y = checkpoint(lambda x: (x @ x).sin(), x, use_reentrant=False, context_fn=save)
    >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, list):
        policy = _policy_of_list(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(list)
    return _Keeping(policy, storage), _Replacing(storage, allow_cache_entry_mutation)
