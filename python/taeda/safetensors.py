"""The functions of the ``safetensors`` package, without the package.

A ``.safetensors`` file holds named tensors and nothing else, so reading one runs no code; it can be
mapped into memory, and tensors, or parts of them, read one at a time.

>>> import taeda, tempfile, os
>>> from taeda.safetensors import save_file, safe_open
>>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
>>> save_file({"weight": taeda.arange(6.0).reshape(2, 3)}, path, metadata={"step": "10"})
>>> with safe_open(path, framework="taeda") as file:
...     print(file.keys(), file.metadata(), file.get_slice("weight")[0, 1:])
['weight'] {'step': '10'} tensor([1., 2.])
"""

from __future__ import annotations

import io
import itertools
import os
from typing import TYPE_CHECKING, Any

import taeda
from taeda.serialization._files import FileSource, MappedSource, replacing

if TYPE_CHECKING:
    from types import TracebackType

    from taeda import Tensor, device

__all__ = ["SafetensorError", "load", "load_file", "safe_open", "save", "save_file"]


class SafetensorError(Exception):
    """A requested tensor is missing, or the file is closed."""


def save_file(
    tensors: dict[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: dict[str, str] | None = None,
) -> None:
    """Write named tensors to a file, which replaces an old one in one step.

    Args:
        tensors: contiguous tensors that share no memory.
        filename: where to.
        metadata: texts to keep beside them.

    Raises:
        ValueError: ``tensors`` is no dict of tensors, or one is not contiguous or of a dtype that
            the format lacks.
        RuntimeError: two tensors share memory.
        TypeError: a name or something in ``metadata`` is not a string.
    """
    _check(tensors)
    from taeda.serialization._safetensors import write_file

    with replacing(filename) as file:
        write_file(tensors, file.write, metadata)


def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes that ``save_file`` writes."""
    _check(tensors)
    from taeda.serialization._safetensors import write_file

    stream = io.BytesIO()
    write_file(tensors, stream.write, metadata)
    return stream.getvalue()


def load_file(
    filename: str | os.PathLike[str], device: str | int | device = "cpu"
) -> dict[str, Tensor]:
    """Read the named tensors of a file.

    Args:
        filename: the file.
        device: where the tensors go.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: it is damaged, or ``device`` is not available.
    """
    with open(filename, "rb") as file:
        return _read(FileSource(file), repr(str(filename)), device)


def load(data: bytes) -> dict[str, Tensor]:
    """Read the named tensors from the bytes of a file.

    Raises:
        RuntimeError: they are damaged.
    """
    return _read(FileSource(io.BytesIO(data)), "the bytes", "cpu")


def _read(source: Any, label: str, device: Any) -> dict[str, Tensor]:
    from taeda.serialization._reader import Placement
    from taeda.serialization._safetensors import read_file

    return read_file(source, label, Placement(taeda.device(device)))


def _check(tensors: Any) -> None:
    """Raise where the format's rules for tensors are broken."""
    if not isinstance(tensors, dict):
        raise ValueError(f"tensors must be a dict of tensors by name, got {type(tensors).__name__}")
    owners: dict[int, list[tuple[int, int, str]]] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, taeda.Tensor):
            raise ValueError(f"tensors[{name!r}] must be a tensor, got {type(tensor).__name__}")
        if not tensor.is_contiguous():
            raise ValueError(
                f"tensors[{name!r}] is not contiguous; tensor.contiguous() makes a copy that is"
            )
        if tensor.numel() and not tensor.is_meta:
            begin = tensor.data_ptr()
            spans = owners.setdefault(tensor.untyped_storage()._cdata, [])
            spans.append((begin, begin + tensor.nbytes, name))
    for spans in owners.values():
        spans.sort()
        for (_, end, first), (begin, _, second) in itertools.pairwise(spans):
            if begin < end:
                raise RuntimeError(
                    f"{first!r} and {second!r} share memory, which would be written twice and no "
                    "longer shared after loading; save one of them, or a clone()"
                )


class safe_open:
    """An open file whose tensors are read on request.

    The file is mapped into memory. On the CPU the tensors lie over the mapped bytes: changes to
    them are not written back.

    Args:
        filename: the file.
        framework: ``"taeda"``, or ``"pt"`` as in files' metadata.
        device: where tensors go.

    Raises:
        FileNotFoundError: there is no such file.
        SafetensorError: another framework is asked for.
        RuntimeError: the file is damaged.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str,
        device: str | int | device = "cpu",
    ) -> None:
        if framework not in ("taeda", "pt", "torch", "pytorch"):
            raise SafetensorError(f"framework must be 'taeda' or 'pt', got {framework!r}")
        from taeda.serialization._reader import Placement
        from taeda.serialization._safetensors import Contents

        self._placement = Placement(taeda.device(device))
        self._contents: Any = None
        with open(filename, "rb") as file:
            self._contents = Contents(MappedSource(file), repr(str(filename)))

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._contents = None

    def _open(self, name: str | None = None) -> Any:
        if self._contents is None:
            raise SafetensorError("the file is closed")
        if name is not None and name not in self._contents:
            raise SafetensorError(f"the file does not contain a tensor {name!r}")
        return self._contents

    def keys(self) -> list[str]:
        """The tensors' names, sorted."""
        return sorted(self._open().names())

    def offset_keys(self) -> list[str]:
        """The tensors' names, in the order in which they lie in the file."""
        return list(self._open().names())

    def metadata(self) -> dict[str, str] | None:
        """The metadata strings; None if there are none."""
        texts = self._open().metadata
        return None if texts is None else dict(texts)

    def get_tensor(self, name: str) -> Tensor:
        """One tensor."""
        return self._open(name).read(name, self._placement)

    def get_slice(self, name: str) -> Slice:
        """A lazy tensor: indexing reads only the selected part."""
        self._open(name)
        return Slice(self, name)


class Slice:
    """A tensor in a file: ``[...]`` reads a part of it."""

    def __init__(self, file: safe_open, name: str) -> None:
        self._file = file
        self._name = name

    def get_shape(self) -> list[int]:
        """The tensor's sizes."""
        return list(self._file._open().described(self._name)[0])

    def get_dtype(self) -> str:
        """The format's name of the dtype, such as ``"F32"``."""
        return str(self._file._open().code(self._name))

    def __getitem__(self, index: Any) -> Tensor:
        from taeda.serialization._reader import Placement

        contents, placement = self._file._open(), self._file._placement
        # A view of the mapped bytes, for any device: only the selected part is copied.
        cpu = placement if placement.is_meta() else Placement("cpu")
        part = contents.read(self._name, cpu)[index]
        if placement.is_meta():
            return part
        return part.clone() if placement.is_cpu() else placement.move(part)
