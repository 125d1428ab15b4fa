"""Checkpoints as folders of ``.safetensors`` files, as the Hugging Face hub has them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taeda import Tensor, no_grad, safetensors
from taeda.distributed._collectives import barrier
from taeda.distributed._process_group import ProcessGroup
from taeda.distributed.tensor import DTensor
from taeda.distributed.tensor._dtensor import part_like

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

_INDEX = "model.safetensors.index.json"


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

    def _at(self, path: str | os.PathLike[str]) -> HuggingFaceStorageWriter:
        return HuggingFaceStorageWriter(path, self.fqn_to_index_mapping)

    def _save(self, state: Mapping[str, Any], group: ProcessGroup | None) -> None:
        """Write whole tensors in the first process."""
        whole: dict[str, Any] = {}
        for name, value in state.items():
            whole[name] = value.full_tensor() if isinstance(value, DTensor) else value
        if group is None or group.rank() == 0:
            self._write(whole)
        if group is not None:
            barrier(group)

    def _write(self, state: Mapping[str, Any]) -> None:
        places = self.fqn_to_index_mapping or dict.fromkeys(state, 1)
        files: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            if not isinstance(value, Tensor):
                raise TypeError(f"{name} is a {type(value).__name__}; the format has tensors alone")
            files.setdefault(places[name], {})[name] = value.detach().contiguous()
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

    def _at(self, path: str | os.PathLike[str]) -> HuggingFaceStorageReader:
        return HuggingFaceStorageReader(path)

    def _read(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for file in sorted(self.path.glob("*.safetensors")):
            found |= safetensors.load_file(file)
        return found

    def _load(self, state: dict[str, Any]) -> dict[str, Any]:
        """Write to the tensors of a state."""
        found = self._read()
        missing = sorted(state.keys() - found.keys())
        if missing:
            raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}")
        for name, tensor in state.items():
            if tensor.shape != found[name].shape:
                raise ValueError(
                    f"Size mismatch between saved {list(found[name].shape)} and current: "
                    f"{list(tensor.shape)} for {name}"
                )
        with no_grad():
            for name, tensor in state.items():
                tensor.detach().copy_(part_like(found[name], tensor))
        return {}
