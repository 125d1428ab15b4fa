"""Checkpoints as folders of ``.safetensors`` files, as the Hugging Face hub has them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taeda import Tensor, no_grad, safetensors
from taeda.distributed.tensor import DTensor

__all__ = [
    "CheckpointException",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "load",
    "save",
]

_INDEX = "model.safetensors.index.json"


class CheckpointException(BaseException):
    """A checkpoint could not be saved or loaded; ``failures`` has the errors by process.

    Like PyTorch's, it is no ``Exception``.
    """

    def __init__(self, msg: str, failures: dict[int, Any]) -> None:
        super().__init__(msg, failures)
        self.failures = failures


class HuggingFaceStorageWriter:
    """Writes tensors to the ``.safetensors`` files of a folder, with an index.

    Args:
        path: the folder, made where there is none.
        fqn_to_index_mapping: the number of each name's file, from 1; one file by default.
    """

    def __init__(
        self, path: str | os.PathLike[str], fqn_to_index_mapping: Mapping[str, int] | None = None
    ) -> None:
        self.path = Path(path)
        self.fqn_to_index_mapping = fqn_to_index_mapping

    def _write(self, state: Mapping[str, Any]) -> None:
        places = self.fqn_to_index_mapping or dict.fromkeys(state, 1)
        files: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{name} is a {type(value).__name__}; the format has tensors alone")
            plain = value.to_local() if isinstance(value, DTensor) else value
            files.setdefault(places[name], {})[name] = plain.detach().contiguous()
        self.path.mkdir(parents=True, exist_ok=True)
        count = max(places.values(), default=1)
        index: dict[str, Any] = {"metadata": {"total_size": 0}, "weight_map": {}}
        for number, tensors in sorted(files.items()):
            file = f"model-{number:05}-of-{count:05}.safetensors"
            safetensors.save_file(tensors, self.path / file, {"format": "pt"})
            for name, tensor in tensors.items():
                index["weight_map"][name] = file
                index["metadata"]["total_size"] += tensor.nbytes
        (self.path / _INDEX).write_text(json.dumps(index, indent=2))


class HuggingFaceStorageReader:
    """Reads tensors from the ``.safetensors`` files of a folder.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def _read(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for file in sorted(self.path.glob("*.safetensors")):
            found |= safetensors.load_file(file)
        return found


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: HuggingFaceStorageWriter,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Save a state of one process.

    Args:
        state_dict: tensors by name.
        checkpoint_id: another folder than the writer's.
        storage_writer: where to, and how.
        process_group: the processes.
        no_dist: whether there is one process, as there is.

    Raises:
        CheckpointException: something in the state is no tensor, or a file cannot be written.

    >>> import tempfile, taeda.distributed.checkpoint as dcp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dcp.save({"w": taeda.ones(2)}, storage_writer=dcp.HuggingFaceStorageWriter(folder))
    ...     state = {"w": taeda.zeros(2)}
    ...     dcp.load(state, storage_reader=dcp.HuggingFaceStorageReader(folder))
    >>> state
    {'w': tensor([1., 1.])}
    """
    if checkpoint_id is not None:
        storage_writer = HuggingFaceStorageWriter(
            checkpoint_id, storage_writer.fqn_to_index_mapping
        )
    try:
        storage_writer._write(state_dict)
    except Exception as error:
        raise CheckpointException(f"save: {error}", {0: error}) from error


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: HuggingFaceStorageReader,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load a state, in place.

    Args:
        state_dict: tensors by name, which get the values of those that are saved.
        checkpoint_id: another folder than the reader's.
        storage_reader: where from, and how.
        process_group: the processes.
        no_dist: whether there is one process, as there is.

    Raises:
        CheckpointException: a tensor is missing, or differs in shape, or a file cannot be read.
    """
    reader = storage_reader if checkpoint_id is None else HuggingFaceStorageReader(checkpoint_id)
    try:
        found = reader._read()
        missing = sorted(state_dict.keys() - found.keys())
        if missing:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}")
        for name, tensor in state_dict.items():
            if tensor.shape != found[name].shape:
                raise ValueError(
                    f"Size mismatch between saved {list(found[name].shape)} and current: "
                    f"{list(tensor.shape)} for {name}"
                )
        with no_grad():
            for name, tensor in state_dict.items():
                plain = tensor.to_local() if isinstance(tensor, DTensor) else tensor
                plain.copy_(found[name])
    except Exception as error:
        raise CheckpointException(f"load: {error}", {0: error}) from error
