"""Building: the committed files become an sdist, and the sdist becomes wheels."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

from tools.wheels import archive, contents, glibc, pythons
from tools.wheels.pythons import Python

ROOT = Path(__file__).resolve().parents[2]
# By machine: GCC, Debian's names. A machine's own compiler serves for it as well.
COMPILERS = {
    "x86_64": ["x86_64-linux-gnu-g++", "g++"],
    "aarch64": ["aarch64-linux-gnu-g++", "aarch64-linux-gnu-g++-12", "g++"],
}
_BUILD_WHEEL = """
import json, sys
from scikit_build_core import build
print(build.build_wheel(sys.argv[1], json.loads(sys.argv[2])))
"""


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compiler(arch: str) -> str:
    """The C++ compiler for a machine; $CXX for this one."""
    if os.uname().machine == arch and os.environ.get("CXX"):
        return os.environ["CXX"]
    for name in COMPILERS[arch]:
        found = shutil.which(name)
        if found and (name != "g++" or os.uname().machine == arch):
            return found
    raise SystemExit(f"no compiler for {arch}: install {' or '.join(COMPILERS[arch])}")


def platform_tag(arch: str) -> str:
    """The platform in a wheel's name: ``manylinux_2_28_x86_64``."""
    return f"manylinux_{glibc.VERSION.replace('.', '_')}_{arch}"


def git(*arguments: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def commit_time() -> int:
    """When the commit was made: the date of everything in the archives."""
    return int(git("log", "-1", "--format=%ct"))


def environment(work: Path) -> Path:
    """The interpreter of a virtual environment with the build's own tools."""
    folder = work.resolve() / "tools"
    python = folder / "bin/python"
    stamp, wanted = folder / "requirements.txt", Path(__file__).parent / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", wanted], check=True)
        shutil.copy(wanted, stamp)
    return python


def run(command: list[str | Path], epoch: int, cwd: Path, **more: str) -> None:
    """Run a build step; its tools are on the path."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), **more}
    env["PATH"] = f"{Path(command[0]).parent}{os.pathsep}{env['PATH']}"
    subprocess.run(command, cwd=cwd, env=env, check=True)


def sdist(work: Path, out: Path, python: Path, epoch: int) -> Path:
    """Build the sdist from what is committed."""
    if git("status", "--porcelain", "--untracked-files=no"):
        print("note: changes that are not committed are left out", file=sys.stderr)
    clone = work / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as files:
        files.extractall(clone)
    code = "import sys; from scikit_build_core import build; build.build_sdist(sys.argv[1])"
    made = work / "sdist"
    shutil.rmtree(made, ignore_errors=True)
    run([python, "-c", code, made.resolve()], epoch, clone)
    (path,) = made.glob("*.tar.gz")
    return Path(shutil.copy(path, out))


def unpack(path: Path, work: Path) -> Path:
    """The sources of an sdist, in a folder whose name is the same for every version."""
    source = work / "source"
    shutil.rmtree(source, ignore_errors=True)
    with tarfile.open(path) as files:
        files.extractall(source)
    (folder,) = source.iterdir()
    return folder


def openblas(arch: str, work: Path, python: Path) -> Path:
    """The folder of the package scipy_openblas32 for a machine."""
    folder = work / f"openblas-{arch}"
    if not folder.exists():
        lines = (Path(__file__).parent / "requirements.txt").read_text().splitlines()
        (pin,) = (line for line in lines if line.startswith("scipy-openblas32"))
        command: list[str | Path] = [
            python,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--only-binary=:all:",
            pin,
        ]
        command += [f"--platform=manylinux2014_{arch}", f"--platform=manylinux_2_28_{arch}"]
        run([*command, "--dest", work / f"openblas-{arch}-wheel"], 0, work)
        (wheel,) = (work / f"openblas-{arch}-wheel").glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            files.extractall(folder)
    return folder / "scipy_openblas32"


def wheel(
    source: Path, work: Path, out: Path, target: Python, arch: str, epoch: int, jobs: int
) -> Path:
    """One wheel. All Pythons share a build folder, in which only csrc/python is compiled anew."""
    tools, gcc = environment(work), compiler(arch)
    folder = source / "build" / arch
    # What was found out about another Python; the objects stay.
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    defines = {
        "CMAKE_TOOLCHAIN_FILE": source / "tools/wheels/toolchain.cmake",
        "TAEDA_GLIBC": glibc.stubs(arch, work, gcc, tools),
        "TAEDA_ARCH": arch,
        "TAEDA_COMPILER": gcc,
        "TAEDA_OPENBLAS": openblas(arch, work, tools),
        "TAEDA_PYTHON_HEADERS": pythons.headers(target, work),
        "TAEDA_WERROR": "ON",
    }
    settings = {
        "build-dir": str(folder),
        "cmake.args": "-GNinja",
        "build.tool-args": f"-j{jobs}",
        **{f"cmake.define.{name}": str(value) for name, value in defines.items()},
    }
    raw = work / f"raw-{arch}"
    shutil.rmtree(raw, ignore_errors=True)
    run(
        [tools, "-c", _BUILD_WHEEL, raw, json.dumps(settings)],
        epoch,
        source,
        SETUPTOOLS_EXT_SUFFIX=target.suffix(arch),
    )
    (made,) = raw.glob("*.whl")
    files = archive.read(made)
    for name, data in files.items():
        if bytes(work) in data:
            raise SystemExit(f"{name} holds the path of the folder that it was built in")
    tag = f"{target.tag}-{platform_tag(arch)}"
    archive.retag(files, tag)
    contents.describe(files, tools, gcc, arch)
    path = out / archive.file_name(files, tag)
    archive.write(path, files, epoch)
    return path


def release(work: Path, out: Path, found: list[Python], arches: list[str], jobs: int) -> list[Path]:
    """Build everything; the files, the sdist first."""
    work, out = work.resolve(), out.resolve()
    for folder in (work, out):
        folder.mkdir(parents=True, exist_ok=True)
    epoch = commit_time()
    tools = environment(work)
    made = [sdist(work, out, tools, epoch)]
    source = unpack(made[0], work)
    for arch in arches:
        for python in found:
            print(f"== {python.name} on {arch}, headers in {python.include}", flush=True)
            made.append(wheel(source, work, out, python, arch, epoch, jobs))
    return made
