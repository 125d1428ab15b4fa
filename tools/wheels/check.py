"""Checking wheels: what they ask of a system, how they install, and taeda's tests on them."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

from tools.wheels import archive, build, glibc
from tools.wheels.elf import dynamic_symbols, needed
from tools.wheels.pythons import Python

MEGABYTES = 10  # a wheel's size, at most
# The libraries that every system of the platform tag has.
SYSTEM = re.compile(r"lib(c|m|pthread|dl|rt|gcc_s)\.so\.\d+|ld-linux-.*")
OPENBLAS = "libscipy_openblas.so"


_VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(wrong) if wrong else 0)
"""


class Failed(Exception):
    """A wheel is not fit to be released."""


def tag_of(wheel: Path) -> tuple[str, str]:
    """The Python's part of a wheel's tag, and the machine."""
    _, _, python, abi, platform = wheel.stem.split("-")
    machine = re.fullmatch(r"manylinux_\d+_\d+_(\w+)", platform)
    if machine is None:
        raise Failed(f"{wheel.name} is for {platform}")
    return f"{python}-{abi}", machine[1]


def module_of(wheel: Path) -> bytes:
    """The extension module in a wheel."""
    with zipfile.ZipFile(wheel) as files:
        (name,) = (n for n in files.namelist() if n.endswith(".so"))
        return files.read(name)


def unmet(module: bytes, provided: set[str]) -> list[str]:
    """Symbols that nothing on an old system has: too new, or not from a known library."""
    bad = []
    limit = tuple(map(int, glibc.VERSION.split(".")))
    for name, version in dynamic_symbols(module):
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version or "")
        if number and (int(number[1]), int(number[2])) > limit:
            bad.append(f"{name}@{version}")
        elif version is None and not re.match(r"_?Py", name) and name not in provided:
            bad.append(name)
    return bad


def audit(wheel: Path, work: Path) -> str:
    """What auditwheel says, its own table of symbols and ours; raises Failed."""
    tools = build.environment(work / "first")
    _, machine = tag_of(wheel)
    module = module_of(wheel)
    foreign = [n for n in needed(module) if not SYSTEM.fullmatch(n) and n != OPENBLAS]
    if foreign:
        raise Failed(f"needs {', '.join(foreign)}")
    blas = build.openblas(machine, work / "first", tools) / "lib" / OPENBLAS
    from_blas = {name for name, _ in dynamic_symbols(blas.read_bytes(), undefined=False)}
    bad = unmet(module, from_blas)
    if bad:
        raise Failed(f"asks for {', '.join(bad)}")
    agreed = auditwheel(wheel, work, tools) if machine == os.uname().machine else machine
    listed = archive.read(wheel)
    bill = listed[f"{archive.dist_info(listed)}/sboms/taeda.cdx.json"]
    subprocess.run([tools, "-c", _VALIDATE], input=bill, check=True)
    megabytes = wheel.stat().st_size / 1e6
    if megabytes > MEGABYTES:
        raise Failed(f"{megabytes:.1f} MB")
    return f"{megabytes:.2f} MB, {agreed}"


def auditwheel(wheel: Path, work: Path, tools: Path) -> str:
    """The platforms that auditwheel finds; it knows this machine's alone."""
    # Repairing is how auditwheel checks against a given tag; nothing may be left to repair.
    fixed = work / "audit"
    shutil.rmtree(fixed, ignore_errors=True)
    command: list[str | Path] = [
        tools,
        "-m",
        "auditwheel",
        "repair",
        "--plat",
        build.platform_tag(os.uname().machine),
    ]
    asked = subprocess.run(
        [*command, "--exclude", OPENBLAS, "-w", fixed, wheel],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tools.parent}{os.pathsep}{os.environ['PATH']}"},
    )
    if asked.returncode:
        raise Failed(asked.stderr.strip())
    (repaired,) = fixed.glob("*.whl")
    added = {n for n in archive.read(repaired) if ".libs/" in n}
    if added:
        raise Failed(f"auditwheel adds {', '.join(sorted(added))}")
    return repaired.name.split("-")[-1].removesuffix(".whl")


def clean(folder: Path) -> dict[str, str]:
    """The environment of somebody without a compiler, whose programs are in `folder`."""
    kept = ("HOME", "LANG", "TMPDIR", "OMP_NUM_THREADS")
    variables = {k: v for k, v in os.environ.items() if k in kept or k.startswith("PIP_")}
    return {**variables, "PATH": str(folder), "CC": "false", "CXX": "false"}


def listing(site: Path) -> set[str]:
    """Every file and folder below `site`."""
    return {str(p.relative_to(site)) for p in site.rglob("*")}


def seconds(command: list[str | Path], env: dict[str, str], cwd: Path) -> float:
    """How long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, env=env, cwd=cwd, check=True)
    return time.perf_counter() - start


def install(wheel: Path, python: Python, work: Path, tests: list[str] | None, limit: float) -> str:
    """Install a wheel into an empty environment, import it, test it, and uninstall it."""
    work = work.resolve()
    folder = work / f"venv-{python.name}"
    assert python.executable
    subprocess.run([python.executable, "-m", "venv", "--clear", folder], check=True)
    program = folder / "bin/python"
    env = clean(program.parent)
    (site,) = folder.glob("lib/python3*/site-packages")
    pip: list[str | Path] = [program, "-m", "pip", "-q", "--disable-pip-version-check"]
    taken = seconds([*pip, "install", "--no-cache-dir", wheel.resolve()], env, work)
    if taken > limit:
        raise Failed(f"took {taken:.1f} s to install, at most {limit:g} s")
    start = min(seconds([program, "-c", "pass"], env, work) for _ in range(5))
    load = min(seconds([program, "-c", "import taeda"], env, work) for _ in range(5)) - start
    said = f"installed in {taken:.1f} s, imported in {load * 1000:.0f} ms"
    if tests is not None:
        # A test may need a compiler: extensions are compiled.
        subprocess.run([*pip, "install", f"{wheel.resolve()}[test]"], env=env, check=True)
        said += f"; {suite(program, work / f'tests-{python.name}', tests)}"
    subprocess.run([*pip, "uninstall", "-y", "taeda"], env=env, check=True)
    left = sorted(name for name in listing(site) if re.match(r"taeda\b", name))
    if left:
        raise Failed(f"uninstalling leaves {', '.join(left[:5])}")
    return said


def suite(program: Path, folder: Path, arguments: list[str]) -> str:
    """Run the tests of a copy of the repository on the installed taeda; pytest's closing line."""
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(build.git("archive", "HEAD"))) as files:
        files.extractall(folder)
    env = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    env.pop("PYTHONPATH", None)
    where: list[str | Path] = [program, "-c", "import taeda; print(taeda.__file__)"]
    found = subprocess.run(where, cwd=folder, env=env, capture_output=True, text=True, check=True)
    if "site-packages" not in found.stdout:
        raise Failed(f"the tests would run on {found.stdout.strip()}")
    done = subprocess.run(
        [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    (folder / "pytest.log").write_text(done.stdout)
    last = done.stdout.strip().splitlines()[-1].strip("= ")
    if done.returncode:
        raise Failed(f"{last} (see {folder}/pytest.log)")
    return last


def emulated(wheel: Path, system: Path, work: Path, tests: list[str] | None) -> str:
    """The same on ARM's emulator, in the Debian that tools/aarch64.sh makes."""
    system, package = system.resolve(), work.resolve() / "package-aarch64"
    shutil.rmtree(package, ignore_errors=True)
    with zipfile.ZipFile(wheel) as files:
        files.extractall(package)
    (package / "scipy_openblas32").symlink_to(system / "site/scipy_openblas32")  # as installed
    emulator = f"{shutil.which('qemu-aarch64')} -L {system}"
    program = work.resolve() / "python-aarch64"
    program.write_text(f'#!/bin/sh\nexec {emulator} {system}/usr/bin/python3 "$@"\n')
    program.chmod(0o755)
    # Tests start Python again: what they start must be the emulator.
    (package / "sitecustomize.py").write_text(f'import sys\nsys.executable = "{program}"\n')
    env = {
        **os.environ,
        "PYTHONPATH": f"{package}{os.pathsep}{system}/site",
        "QEMU_CPU": "neoverse-n1",
        "OMP_NUM_THREADS": "1",
        "TAEDA_NUM_THREADS": "2",
    }
    seconds(
        [program, "-c", "import taeda; assert (taeda.ones(3) * 2).sum().item() == 6"], env, work
    )
    trained = seconds([program, build.ROOT / "docs/examples/digits.py"], env, package)
    said = f"trained the digits in {trained:.0f} s"
    if tests is None:
        return said
    done = subprocess.run(
        [program, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=build.ROOT,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    last = done.stdout.strip().splitlines()[-1].strip("= ")
    if done.returncode:
        raise Failed(done.stdout[-2000:])
    return f"{said}; {last}"


def check(
    out: Path,
    work: Path,
    found: list[Python],
    tests: list[str] | None,
    system: Path | None,
    limit: float,
) -> int:
    """Check every wheel in a folder and say what was found; 1 if any is not fit."""
    status = 0
    runnable = {p.tag: p for p in found if p.executable}
    work.mkdir(parents=True, exist_ok=True)
    for wheel in sorted(out.glob("*.whl")):
        try:
            said = audit(wheel, work)
            tag, machine = tag_of(wheel)
            if machine != os.uname().machine:
                if system and (system / "usr/bin" / f"python3.{tag[3:5]}").exists():
                    said += f"; {emulated(wheel, system, work, tests)}"
                else:
                    said += "; not run: no such system here"
            elif tag in runnable:
                said += f"; {install(wheel, runnable[tag], work, tests, limit)}"
            else:
                said += "; not run: no such Python here"
        except (Failed, subprocess.CalledProcessError) as error:
            said, status = f"FAILED: {error}", 1
        print(f"{wheel.name}: {said}", flush=True)
    return status
