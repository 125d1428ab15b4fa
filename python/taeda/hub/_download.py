"""Files from the network, and the folder that they are kept in."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tempfile
from typing import IO, Any
from urllib.parse import urlparse

__all__ = ["HASH_REGEX", "download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

# In "resnet18-f37072fd.pth" the hash is "f37072fd".
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_PIECE = 128 * 1024
_dir: str | None = None


def _get_torch_home() -> str:
    """The folder for downloaded files: ``TORCH_HOME``, else ``torch`` in the user's cache."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder that files are kept in: what ``set_dir`` was given, else ``hub`` in PyTorch's.

    PyTorch's is ``TORCH_HOME``, else ``$XDG_CACHE_HOME/torch``, else ``~/.cache/torch``.
    """
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Keep files in another folder."""
    global _dir
    _dir = os.path.expanduser(os.fspath(d))


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Write what is found at an address to a file, which appears when it is complete.

    Args:
        url: the address.
        dst: the file's path; one that is there is replaced.
        hash_prefix: what the SHA-256 hash of the data must begin with.
        progress: whether to show on stderr how much has come, by tqdm where it is installed.

    Raises:
        RuntimeError: the hash is another one.
        OSError: the address cannot be read, or the file cannot be written.
    """
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(os.fspath(dst))
    request = Request(url, headers={"User-Agent": "torch.hub"})
    sha256 = hashlib.sha256()
    folder = os.path.dirname(os.path.abspath(dst))
    handle, partial = tempfile.mkstemp(
        prefix=os.path.basename(dst) + ".", suffix=".partial", dir=folder
    )
    try:
        with os.fdopen(handle, "wb") as file, urlopen(request) as source:
            size = source.headers.get("Content-Length")
            _copy(source, file, sha256, int(size) if size else None, progress)
        digest = sha256.hexdigest()
        if hash_prefix is not None and not digest.startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, dst)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _copy(source: Any, file: IO[bytes], sha256: Any, size: int | None, progress: bool) -> None:
    """Copy all bytes to a file and a hash; a bar shows how far it is, where tqdm is installed."""
    bar = None
    if progress and importlib.util.find_spec("tqdm") is not None:
        tqdm = importlib.import_module("tqdm").tqdm
        bar = tqdm(total=size, unit="B", unit_scale=True, unit_divisor=1024)
    try:
        while piece := source.read(_PIECE):
            file.write(piece)
            sha256.update(piece)
            if bar is not None:
                bar.update(len(piece))
    finally:
        if bar is not None:
            bar.close()


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """What ``taeda.load`` finds in a file that is downloaded the first time, and then kept.

    Args:
        url: the file's address.
        model_dir: where it is kept; ``checkpoints`` in ``get_dir()`` by default.
        map_location: as for ``taeda.load``.
        progress: whether to show on stderr how much has come, by tqdm where it is installed.
        check_hash: whether the file's name holds the beginning of its hash, which must be true.
        file_name: the name to keep it under; by default the one in the address.
        weights_only: False allows the file to run code, which PyTorch's default does.
    """
    from taeda.serialization import load

    if model_dir is None:
        model_dir = os.path.join(get_dir(), "checkpoints")
    os.makedirs(model_dir, exist_ok=True)
    name = os.path.basename(urlparse(url).path) if file_name is None else file_name
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        print(f'Downloading: "{url}" to {path}', file=sys.stderr)
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    return load(path, map_location=map_location, weights_only=weights_only)
