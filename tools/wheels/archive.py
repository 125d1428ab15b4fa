"""Wheels as dictionaries of files, written so that the same files give the same bytes."""

from __future__ import annotations

import base64
import hashlib
import re
import time
import zipfile
from pathlib import Path

Files = dict[str, bytes]  # by the path in the archive

# A ZIP archive's dates begin in 1980.
_FIRST_DATE = 315532800


def read(wheel: Path) -> Files:
    """The files of a wheel, without RECORD, which `write` makes anew."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if not n.endswith(("/", ".dist-info/RECORD"))]
        return {name: archive.read(name) for name in names}


def dist_info(files: Files) -> str:
    """The folder that describes the distribution: ``taeda-1.2.dist-info``."""
    (folder,) = {m[1] for name in files if (m := re.match(r"([^/]+\.dist-info)/", name))}
    return folder


def record(files: Files, folder: str) -> bytes:
    """RECORD: the path, hash and size of every file."""
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        quoted = f'"{name}"' if "," in name else name
        lines.append(f"{quoted},sha256={digest},{len(data)}\n")
    return "".join([*lines, f"{folder}/RECORD,,\n"]).encode()


def write(path: Path, files: Files, epoch: int) -> None:
    """Write a wheel: sorted, dist-info last as its specification asks, every date `epoch`."""
    folder = dist_info(files)
    ordered = {n: files[n] for n in sorted(files, key=lambda n: (n.startswith(folder), n))}
    ordered[f"{folder}/RECORD"] = record(ordered, folder)
    date = time.gmtime(max(epoch, _FIRST_DATE))[:6]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in ordered.items():
            info = zipfile.ZipInfo(name, date)
            info.create_system = 3  # Unix: whoever unpacks it takes the permissions
            info.external_attr = (0o100755 if ".so" in Path(name).suffixes else 0o100644) << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)


def retag(files: Files, tag: str) -> None:
    """Set the one tag in the file WHEEL."""
    name = f"{dist_info(files)}/WHEEL"
    text = re.sub(r"(?m)^Tag: .*\n", "", files[name].decode()).rstrip("\n")
    files[name] = f"{text}\nTag: {tag}\n".encode()


def file_name(files: Files, tag: str) -> str:
    """The wheel's name."""
    return f"{dist_info(files).removesuffix('.dist-info')}-{tag}.whl"
