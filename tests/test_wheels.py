"""What tools/wheels does beside compiling: names, archives, and what a library asks of a system."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from taeda import _C
from tools.wheels import archive, build, check, contents, elf, pythons
from tools.wheels.__main__ import parse

FILES = {
    "taeda/_C.cpython-312-x86_64-linux-gnu.so": b"\x7fELF",
    "taeda/__init__.py": b"",
    "taeda-1.2.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
    "taeda-1.2.dist-info/METADATA": (
        b"Metadata-Version: 2.4\nName: taeda\nVersion: 1.2\nLicense-Expression: Apache-2.0\n"
        b"Requires-Dist: numpy\n\nName: a line of the text\n"
    ),
}
PART = contents.Component("map", "2.0", "MIT", "pkg:generic/map@2.0", "do as you like\n")


def written(folder, files, epoch=1700000000):
    path = Path(folder, "a.whl")
    archive.write(path, dict(files), epoch)
    return path.read_bytes()


def test_the_same_files_give_the_same_bytes(tmp_path):
    first = written(tmp_path, FILES)
    assert first == written(tmp_path, reversed(FILES.items()))
    assert first != written(tmp_path, FILES, epoch=1700000002)
    assert written(tmp_path, FILES, epoch=0)  # before the first date that an archive can have


def test_a_wheel_is_sorted_and_recorded(tmp_path):
    written(tmp_path, FILES)
    with zipfile.ZipFile(tmp_path / "a.whl") as made:
        names = made.namelist()
        rows = list(csv.reader(io.StringIO(made.read(names[-1]).decode())))
        modes = {i.filename: i.external_attr >> 16 & 0o777 for i in made.infolist()}
    assert names[:-1] == sorted(names[:-1], key=lambda n: ("dist-info" in n, n))
    assert names[-1] == "taeda-1.2.dist-info/RECORD"
    assert [row[0] for row in rows] == names
    assert rows[-1][1:] == ["", ""]
    for name, digest, size in rows[:-1]:
        data = FILES[name]
        hashed = urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert (digest, int(size)) == (f"sha256={hashed}", len(data))
    assert modes["taeda/_C.cpython-312-x86_64-linux-gnu.so"] == 0o755
    assert modes["taeda/__init__.py"] == 0o644
    assert archive.read(tmp_path / "a.whl") == FILES


def test_tags():
    files = dict(FILES)
    tag = "cp312-cp312-manylinux_2_28_x86_64"
    archive.retag(files, tag)
    archive.retag(files, tag)
    assert files["taeda-1.2.dist-info/WHEEL"].decode() == f"Wheel-Version: 1.0\nTag: {tag}\n"
    name = archive.file_name(files, tag)
    assert name == f"taeda-1.2-{tag}.whl"
    assert check.tag_of(Path(name)) == ("cp312-cp312", "x86_64")
    with pytest.raises(check.Failed, match="linux_x86_64"):
        check.tag_of(Path("taeda-1.2-cp312-cp312-linux_x86_64.whl"))
    assert build.platform_tag("aarch64") == "manylinux_2_28_aarch64"


def include_folder(folder, minor):
    folder.mkdir(parents=True)
    (folder / "Python.h").write_text("")
    (folder / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n" * 300)
    (folder / "patchlevel.h").write_text(f"#define PY_MINOR_VERSION        {minor}\n")
    return folder


def test_pythons_of_headers(tmp_path):
    plain = pythons.of_headers(include_folder(tmp_path / "python3.14", 14))
    free = pythons.of_headers(include_folder(tmp_path / "python3.14t", 14))
    assert (plain.name, plain.tag) == ("3.14", "cp314-cp314")
    assert (free.name, free.tag) == ("3.14t", "cp314-cp314t")
    assert plain.suffix("aarch64") == ".cpython-314-aarch64-linux-gnu.so"
    assert free.suffix("x86_64") == ".cpython-314t-x86_64-linux-gnu.so"
    assert pythons.find([plain.include, free.include]) == [plain, free]
    assert pythons.headers(plain, tmp_path) == plain.include


def test_headers_that_debian_keeps_in_two_folders(tmp_path):
    include = include_folder(tmp_path / "include/python3.13", 13)
    machine = include.parent / "x86_64-linux-gnu/python3.13"
    machine.mkdir(parents=True)
    (machine / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n")
    (include / "pyconfig.h").write_text("# include <x86_64-linux-gnu/python3.13/pyconfig.h>\n")
    whole = pythons.headers(pythons.of_headers(include), tmp_path / "work")
    assert (whole / "pyconfig.h").read_text() == "#define SIZEOF_LONG 8\n"
    assert (whole / "Python.h").exists()


def test_what_is_no_python(tmp_path):
    with pytest.raises(ValueError, match="no CPython"):
        pythons.find([tmp_path / "python3"])
    (include_folder(tmp_path / "x", 1) / "patchlevel.h").write_text("")
    with pytest.raises(ValueError, match="names no version"):
        pythons.of_headers(tmp_path / "x")


def test_this_python_is_found():
    here = pythons.of_interpreter(Path(sys.executable))
    if here is None:
        pytest.skip("this Python has no headers")
    assert here.minor == sys.version_info.minor
    assert Path(_C.__file__).name.endswith(here.suffix(os.uname().machine))


@pytest.mark.unsanitized("the sanitizer stands in for the C library")
def test_what_the_module_asks_of_others():
    module = Path(_C.__file__).read_bytes()
    symbols = list(elf.dynamic_symbols(module))
    assert ("PyLong_FromLong", None) in symbols
    assert any(name == "malloc" and version.startswith("GLIBC_2.") for name, version in symbols)
    assert "PyInit__C" in {name for name, _ in elf.dynamic_symbols(module, undefined=False)}
    assert {"libc.so.6", check.OPENBLAS} <= set(elf.needed(module))
    with pytest.raises(ValueError, match="ELF"):
        elf.needed(b"MZ" + module[2:])


def test_what_an_old_system_lacks(monkeypatch):
    asked = [
        ("malloc", "GLIBC_2.2.5"),
        ("fcntl64", "GLIBC_2.28"),
        ("pow", "GLIBC_2.29"),
        ("PyLong_FromLong", None),
        ("_Py_Dealloc", None),
        ("cblas_sgemm", None),
        ("__libc_single_threaded", None),
    ]
    monkeypatch.setattr(check, "dynamic_symbols", lambda module: iter(asked))
    assert check.unmet(b"", {"cblas_sgemm"}) == ["pow@GLIBC_2.29", "__libc_single_threaded"]


def test_a_wheel_names_what_is_inside(monkeypatch):
    files = dict(FILES)
    monkeypatch.setattr(contents, "components", lambda tools, compiler: [PART])
    contents.describe(files, Path(), "g++", "x86_64")
    metadata = files["taeda-1.2.dist-info/METADATA"].decode()
    assert "License-Expression: Apache-2.0 AND MIT\n" in metadata
    assert metadata.endswith("License-File: third_party/map.txt\n\nName: a line of the text\n")
    assert files["taeda-1.2.dist-info/licenses/third_party/map.txt"] == b"do as you like\n"
    listed = json.loads(files["taeda-1.2.dist-info/sboms/taeda.cdx.json"])
    assert listed["metadata"]["component"]["purl"] == "pkg:pypi/taeda@1.2"
    assert [(c["name"], c["version"]) for c in listed["components"]] == [("map", "2.0")]
    again = dict(FILES)
    contents.describe(again, Path(), "g++", "x86_64")
    assert again == files


def test_what_builds_is_pinned():
    lines = Path(build.__file__).with_name("requirements.txt").read_text().splitlines()
    assert all("==" in line for line in lines if not line.startswith("#"))


def test_the_command_line():
    asked = parse(["--python", "/usr/bin/python3", "--arch", "aarch64", "--twice"])
    assert (asked.python, asked.arch, asked.twice) == (
        [Path("/usr/bin/python3")],
        ["aarch64"],
        True,
    )
    assert parse(["--check"]).tests is None
    assert parse(["--check", "--tests", "tests/ops", "-x"]).tests == ["tests/ops", "-x"]
    with pytest.raises(SystemExit):
        parse(["--arch", "vax"])
