"""The records of a checkpoint, read one by one."""

from __future__ import annotations

import zipfile
from typing import Any

import taeda

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
    >>> PyTorchFileReader(file).get_storage_from_record("data/0", 2, taeda.float32)
    tensor([1., 1.])
    """

    def __init__(self, file: Any) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except (OSError, zipfile.BadZipFile) as error:
            raise RuntimeError(f"PyTorchFileReader: cannot read {file}: {error}") from error
        names = self._archive.namelist()
        if not names or "/" not in names[0]:
            raise RuntimeError(f"PyTorchFileReader: {file} holds no records")
        self._folder = names[0].partition("/")[0] + "/"

    def get_all_records(self) -> list[str]:
        """The names of all records."""
        return [name.removeprefix(self._folder) for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return self._folder + name in self._archive.NameToInfo

    def get_record(self, name: str) -> bytes:
        """The bytes of a record.

        Raises:
            RuntimeError: there is none of this name.
        """
        if not self.has_record(name):
            raise RuntimeError(f"PyTorchFileReader: failed locating file {name}: file not found")
        return self._archive.read(self._folder + name)

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has; RuntimeError where there is none of this name."""
        if not self.has_record(name):
            raise RuntimeError(f"PyTorchFileReader: failed locating file {name}: file not found")
        return self._archive.NameToInfo[self._folder + name].file_size

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
        data = bytearray(self.get_record(name))
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
