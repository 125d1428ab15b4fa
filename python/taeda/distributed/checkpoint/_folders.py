"""Checkpoints of several processes: a folder to which each writes its parts of tensors.

``metadata.json`` says what is where. It is put in place, in one step, when all parts are on the
disk, so that a checkpoint is there as a whole or not at all, also while a newer one replaces it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import taeda
from taeda import Tensor, safetensors
from taeda.distributed import _objects
from taeda.distributed._process_group import ProcessGroup
from taeda.distributed.tensor import DTensor, Replicate
from taeda.distributed.tensor._redistribute import local_shape

__all__ = ["FileSystemReader", "FileSystemWriter"]

_METADATA = "metadata.json"


class FileSystemWriter:
    """Writes a checkpoint to a folder that all processes reach.

    Args:
        path: the folder, made where there is none. A checkpoint that is there is replaced.
        sync_files: whether to wait until files are on the disk.
    """

    def __init__(self, path: str | os.PathLike[str], sync_files: bool = True) -> None:
        self.path = Path(path)
        self.sync_files = sync_files

    def _at(self, path: str | os.PathLike[str]) -> FileSystemWriter:
        return FileSystemWriter(path, self.sync_files)

    def _save(self, state: dict[str, Any], group: ProcessGroup | None) -> None:
        """Write the parts of this process; the first one then says what is where."""
        rank = 0 if group is None else group.rank()
        name: list[Any] = [f"data-{uuid.uuid4().hex}"]
        if group is not None:
            _objects.broadcast_object_list(name, group=group, group_src=0)
        data = self.path / name[0]
        problem: Exception | None = None
        mine: list[Any] = []
        try:
            data.mkdir(parents=True, exist_ok=True)
            mine = self._write_parts(state, data, rank)
        except Exception as error:
            problem = error
        found: list[Any] = [(mine, None if problem is None else str(problem))]
        if group is not None:
            found = [None] * group.size()
            _objects.all_gather_object(found, (mine, problem and str(problem)), group)
        failures: dict[int, Exception] = {
            i: RuntimeError(why) for i, (_, why) in enumerate(found) if why
        }
        if not failures and rank == 0:
            try:
                self._finish(data, [parts for parts, _ in found])
            except Exception as error:
                problem = error
        said: list[Any] = [None if problem is None else str(problem)]
        if group is not None:
            _objects.broadcast_object_list(said, group=group, group_src=0)
        if said[0] and not failures:
            failures = {0: RuntimeError(said[0])}
        if failures:
            if rank == 0:
                shutil.rmtree(data, ignore_errors=True)
            raise _Failed(failures)

    def _write_parts(self, state: dict[str, Any], data: Path, rank: int) -> list[Any]:
        tensors: dict[str, Tensor] = {}
        values: dict[str, Any] = {}
        said: list[Any] = []
        for name, value in state.items():
            if isinstance(value, DTensor):
                if not _is_first(value):
                    continue
                local = value.detach().as_subclass(Tensor).contiguous()
                _, starts = local_shape(value.shape, value.device_mesh, value.placements)
                shape = list(value.shape)
            elif isinstance(value, Tensor):
                if rank != 0:
                    continue
                local, starts, shape = value.detach().contiguous(), (0,) * value.dim(), None
                shape = list(value.shape)
            else:
                if rank == 0:
                    values[name] = value
                continue
            tensors[name] = local
            said.append([name, shape, str(value.dtype), list(starts), list(local.shape)])
        file = data / f"rank{rank}.safetensors"
        safetensors.save_file(tensors, file)
        self._sync(file)
        if rank == 0:
            taeda.save(values, data / "values.pt")
            self._sync(data / "values.pt")
        self._sync(data)
        return said

    def _finish(self, data: Path, parts: list[list[Any]]) -> None:
        """Put the new checkpoint in the place of the old one."""
        tensors: dict[str, Any] = {}
        for rank, entries in enumerate(parts):
            for name, shape, dtype, starts, sizes in entries:
                entry = tensors.setdefault(name, {"shape": shape, "dtype": dtype, "parts": []})
                entry["parts"].append([f"rank{rank}.safetensors", starts, sizes])
        temporary = self.path / f"{_METADATA}.{data.name}"
        temporary.write_text(json.dumps({"version": 1, "data": data.name, "tensors": tensors}))
        self._sync(temporary)
        os.replace(temporary, self.path / _METADATA)
        self._sync(self.path)
        for old in self.path.glob("data-*"):
            if old != data:
                shutil.rmtree(old, ignore_errors=True)
        for old in self.path.glob(f"{_METADATA}.data-*"):
            with contextlib.suppress(OSError):
                old.unlink()

    def _sync(self, path: Path) -> None:
        if self.sync_files:
            number = os.open(path, os.O_RDONLY)
            try:
                os.fsync(number)
            finally:
                os.close(number)


class _Failed(Exception):
    """Some processes could not write; ``failures`` has the errors by rank."""

    def __init__(self, failures: dict[int, Exception]) -> None:
        super().__init__("; ".join(f"rank {r}: {error}" for r, error in failures.items()))
        self.failures = failures


class FileSystemReader:
    """Reads a checkpoint from a folder, for as many processes as there are now.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def _at(self, path: str | os.PathLike[str]) -> FileSystemReader:
        return FileSystemReader(path)

    def _load(self, state: dict[str, Any]) -> dict[str, Any]:
        """Write to the tensors of a state, and return all other values."""
        said = json.loads((self.path / _METADATA).read_text())
        data = self.path / said["data"]
        files: dict[str, dict[str, Tensor]] = {}
        values: dict[str, Any] = taeda.load(data / "values.pt")
        missing = sorted(
            name
            for name, value in state.items()
            if name not in (said["tensors"] if isinstance(value, Tensor) else values)
        )
        if missing:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}")
        for name, target in state.items():
            if not isinstance(target, Tensor):
                continue
            entry = said["tensors"][name]
            if list(target.shape) != entry["shape"]:
                raise ValueError(
                    f"Size mismatch between saved {entry['shape']} and current: "
                    f"{list(target.shape)} for {name}"
                )
            for file, starts, sizes in entry["parts"]:
                for here, there in _overlap(target, starts, sizes):
                    if file not in files:
                        files[file] = safetensors.load_file(data / file)
                    local = target.detach().as_subclass(Tensor)
                    local[here].copy_(files[file][name][there])
        return values


def _is_first(tensor: DTensor) -> bool:
    """Whether this process is the one that writes its part: the first of those that have it."""
    place = tensor.device_mesh.get_coordinate()
    return place is not None and all(
        at == 0
        for at, placed in zip(place, tensor.placements, strict=True)
        if isinstance(placed, Replicate)
    )


def _overlap(
    target: Tensor, starts: list[int], sizes: list[int]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Where a saved part and this process's part of a tensor have the same elements, in each."""
    mine: tuple[tuple[int, ...], tuple[int, ...]] = tuple(target.shape), (0,) * target.dim()
    if isinstance(target, DTensor):
        mine = local_shape(target.shape, target.device_mesh, target.placements)
    here, there = [], []
    for size, start, other_size, other in zip(*mine, sizes, starts, strict=True):
        first, last = max(start, other), min(start + size, other + other_size)
        if first >= last:
            return
        here.append(slice(first - start, last - start))
        there.append(slice(first - other, last - other))
    yield tuple(here), tuple(there)


def flattened(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of nested dicts and lists, with the keys that lead to them."""
    items: Any = None
    if isinstance(state, dict) and state:
        items = state.items()
    elif isinstance(state, (list, tuple)) and any(map(_holds_tensors, state)):
        items = enumerate(state)
    if items is None:
        yield path, state
        return
    yield from itertools.chain.from_iterable(flattened(v, (*path, k)) for k, v in items)


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, Tensor) or any(
        isinstance(leaf, Tensor) for leaf in taeda.utils._pytree.tree_leaves(value)
    )
