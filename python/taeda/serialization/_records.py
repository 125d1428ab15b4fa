"""The records of a checkpoint, read one by one."""

from __future__ import annotations

import os
from typing import Any

import taeda

from ._files import FileSource, is_path
from ._zip import ArchiveReader

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """The records that a checkpoint holds: its pickle stream and the bytes of its storages.

    PyTorch keeps the class private, but packages load large checkpoints tensor by tensor with it.

    Args:
        file: a path, or a file that is open for reading bytes.

    Raises:
        RuntimeError: the file cannot be opened, or is none that ``save`` writes.

    >>> import io
    >>> file = io.BytesIO()
    >>> taeda.save({"x": taeda.ones(2)}, file)
    >>> file.seek(0)
    0
    >>> PyTorchFileReader(file).get_storage_from_record("data/0", 2, taeda.float32)
    tensor([1., 1.])
    """

    def __init__(self, file: Any) -> None:
        label = repr(os.fspath(file)) if is_path(file) else "the file object"
        try:
            # Open as long as the reader, which reads records on request.
            self._file = open(file, "rb") if is_path(file) else file  # noqa: SIM115
            self._owned = is_path(file)
            self._archive = ArchiveReader(FileSource(self._file), label)
        except OSError as error:
            raise RuntimeError(f"PyTorchFileReader: cannot read {label}: {error}") from error
        if not self._archive.entries:
            raise RuntimeError(f"PyTorchFileReader: {label} holds no records")

    def __del__(self) -> None:
        if getattr(self, "_owned", False):
            self._file.close()

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return list(self._archive.entries)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return name in self._archive.entries

    def get_record(self, name: str) -> bytes:
        """The bytes of a record.

        Raises:
            RuntimeError: there is none of this name.
        """
        return bytes(self._bytes(name))

    def _bytes(self, name: str) -> bytearray:
        self.get_record_size(name)
        # A program may read a record more than once: only the largest counts.
        self._archive.budget.used = 0
        data = self._archive.read(name)
        return data

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has; RuntimeError where there is none of this name."""
        if not self.has_record(name):
            raise RuntimeError(f"PyTorchFileReader: failed locating file {name}: file not found")
        return self._archive.entries[name].size

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A one-dimensional tensor over the first elements of a record.

        Args:
            name: of the record.
            numel: how many elements; bytes where ``dtype`` is ``UntypedStorage``.
            dtype: of the elements, or ``UntypedStorage``.

        Raises:
            RuntimeError: there is no such record, or it is too short.
        """
        dtype = taeda.uint8 if dtype is taeda.UntypedStorage else dtype
        data = self._bytes(name)
        if numel < 0:
            raise RuntimeError(f"PyTorchFileReader: a tensor cannot have {numel} elements")
        if numel * dtype.itemsize > len(data):
            raise RuntimeError(
                f"PyTorchFileReader: record {name} has {len(data)} bytes, but {numel} elements of "
                f"{dtype} need {numel * dtype.itemsize}"
            )
        if numel == 0:
            return taeda.empty(0, dtype=dtype)
        return taeda.frombuffer(data, dtype=dtype, count=numel)

    def serialization_id(self) -> str:
        """The text that tells checkpoints apart; empty where the file has none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""
