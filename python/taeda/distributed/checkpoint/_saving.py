"""`save` and `load`: states of all processes, in files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

import taeda
from taeda import Tensor
from taeda.distributed._group import _known, is_initialized
from taeda.distributed._process_group import ProcessGroup

from ._folders import FileSystemReader, FileSystemWriter, _Failed, flattened
from .stateful import Stateful

__all__ = ["CheckpointException", "load", "save"]


class CheckpointException(BaseException):
    """A checkpoint could not be saved or loaded; ``failures`` has the errors by process.

    Like PyTorch's, it is no ``Exception``.
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self.failures = failures


class _Writer(Protocol):
    def _at(self, path: str | os.PathLike[str]) -> _Writer: ...

    def _save(self, state: dict[str, Any], group: ProcessGroup | None) -> None: ...


class _Reader(Protocol):
    def _at(self, path: str | os.PathLike[str]) -> _Reader: ...

    def _load(self, state: dict[str, Any]) -> dict[str, Any]: ...


def _group(given: Any, no_dist: bool) -> ProcessGroup | None:
    """The processes, None where this one is alone."""
    if no_dist or (given is None and not is_initialized()):
        return None
    group = _known(given)
    return group if group.size() > 1 else None


def _leaves(state_dict: Mapping[str, Any]) -> dict[str, tuple[tuple[Any, ...], Any]]:
    """The values of nested dicts by names, each with the keys that lead to it."""
    plain = {
        key: value.state_dict() if _is_stateful(value) else value
        for key, value in state_dict.items()
    }
    return {".".join(map(str, path)): (path, value) for path, value in flattened(plain) if path}


def _is_stateful(value: Any) -> bool:
    return not isinstance(value, Tensor) and isinstance(value, Stateful)


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: _Writer | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Save a state of all processes, all of which call this.

    Each process writes its parts of DTensors; the first one writes what all have.

    Args:
        state_dict: tensors and other values by name, also in nested dicts, or objects that have a
            ``state_dict``, such as modules and optimizers.
        checkpoint_id: the folder.
        storage_writer: where to, and how; `FileSystemWriter` by default.
        process_group: the processes; all by default.
        no_dist: whether this process saves alone.

    Raises:
        CheckpointException: a process could not write; a checkpoint that was there before is left
            as it is.

    >>> import tempfile, taeda.distributed.checkpoint as dcp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dcp.save({"w": taeda.ones(2), "step": 7}, checkpoint_id=folder)
    ...     state = {"w": taeda.zeros(2), "step": 0}
    ...     dcp.load(state, checkpoint_id=folder)
    >>> state
    {'w': tensor([1., 1.]), 'step': 7}
    """
    writer: _Writer
    if storage_writer is None:
        if checkpoint_id is None:
            raise ValueError("save: checkpoint_id or storage_writer must be given")
        writer = FileSystemWriter(checkpoint_id)
    else:
        writer = storage_writer if checkpoint_id is None else storage_writer._at(checkpoint_id)
    state = {name: value for name, (_, value) in _leaves(state_dict).items()}
    try:
        with taeda.no_grad():
            writer._save(state, _group(process_group, no_dist))
    except _Failed as error:
        raise CheckpointException(f"save: {error}", dict(error.failures)) from error
    except Exception as error:
        raise CheckpointException(f"save: {error}", {0: error}) from error


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: _Reader | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load a state, in place. There may be more or fewer processes than when it was saved.

    Args:
        state_dict: tensors by name, which get the values of those that are saved; DTensors their
            parts of them. Other values are replaced; objects that have a ``load_state_dict`` get
            theirs by it.
        checkpoint_id: the folder.
        storage_reader: where from, and how; `FileSystemReader` by default.
        process_group: the processes; each reads what it needs, and waits for none.
        no_dist: whether this process loads alone, as each does.

    Raises:
        CheckpointException: a value is missing, or a tensor differs in shape, or a file cannot be
            read.
    """
    reader: _Reader
    if storage_reader is None:
        if checkpoint_id is None:
            raise ValueError("load: checkpoint_id or storage_reader must be given")
        reader = FileSystemReader(checkpoint_id)
    else:
        reader = storage_reader if checkpoint_id is None else storage_reader._at(checkpoint_id)
    try:
        found = _leaves(state_dict)
        with taeda.no_grad():
            values = reader._load({name: value for name, (_, value) in found.items()})
        loaded = _with_values(state_dict, found, values)
    except Exception as error:
        raise CheckpointException(f"load: {error}", {0: error}) from error
    for key, value in list(state_dict.items()):
        if _is_stateful(value):
            value.load_state_dict(loaded[key])
        else:
            state_dict[key] = loaded[key]


def _with_values(
    state_dict: dict[str, Any],
    found: dict[str, tuple[tuple[Any, ...], Any]],
    values: dict[str, Any],
) -> dict[str, Any]:
    """A copy of the containers of a state, whose values other than tensors are those saved."""
    plain = {k: v.state_dict() if _is_stateful(v) else v for k, v in state_dict.items()}
    made: dict[str, Any] = _copied(plain)
    for name, (path, value) in found.items():
        inner: Any = made
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value if isinstance(value, Tensor) else values[name]
    return made


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(each) for each in value]
    return value
