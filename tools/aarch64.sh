#!/usr/bin/env bash
# Builds taeda for 64-bit ARM on another machine and runs its tests under emulation:
#
#     tools/aarch64.sh [FOLDER [PYTEST ARGUMENTS]]
#
# FOLDER (build/aarch64 by default) keeps the ARM system and the build. Without arguments for pytest
# the tests of operations run, which takes half an hour; name a few files for less. PyTorch, which
# they compare with, is the last release whose ARM wheel on PyPI does without CUDA. Needs Debian's packages
# g++-aarch64-linux-gnu, qemu-user and debootstrap, and a Python of the same version as Debian 12's
# (3.11) with pip, cmake, ninja, nanobind and scipy-openblas32. No root: nothing is mounted, the
# packages are only unpacked.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(realpath -m "${1:-build/aarch64}")
shift || true
python=${PYTHON:-python3}
system=$work/system
mkdir -p "$work"

if [ ! -x "$system/usr/bin/python3" ]; then
  debootstrap --foreign --arch=arm64 --variant=minbase --include=python3-dev bookworm "$system"
  for package in "$system"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$system"; done
fi
if [ ! -d "$system/site/pytest" ]; then
  # PyTorch apart from what it needs, which pip would choose for the machine it runs on.
  download() {
    "$python" -m pip download -q --dest "$work/wheels" --only-binary=:all: --python-version 3.11 \
      --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 "$@"
  }
  download --no-deps torch==2.10.0
  download scipy-openblas32 numpy scipy pytest hypothesis safetensors expecttest \
    filelock fsspec jinja2 networkx sympy typing-extensions
  for wheel in "$work"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$system/site"; done
fi

cmake -S . -B "$work/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/tools/aarch64.cmake" \
  -DTAEDA_SYSROOT="$system" -DTAEDA_TESTS=ON -DPython_EXECUTABLE="$(command -v "$python")"
cmake --build "$work/build" ${JOBS:+-j "$JOBS"}

# The package as it would be installed: Python's part of this tree beside the module just built.
mkdir -p "$work/package"
rm -rf "$work/package/taeda"
cp -r python/taeda "$work/package/taeda"
rm -f "$work"/package/taeda/_C*.so
cp "$work"/build/_C*.so "$work/package/taeda/"

# Tests start Python again: what they start must be the emulator.
emulator="$(command -v qemu-aarch64) -L $system"
printf '#!/bin/sh\nexec %s %s "$@"\n' "$emulator" "$system/usr/bin/python3" >"$work/python"
chmod +x "$work/python"
printf 'import sys\nsys.executable = "%s"\n' "$work/python" >"$system/site/sitecustomize.py"

# A processor with NEON alone, that PyTorch runs on. QEMU's own has SVE registers of lengths that OpenBLAS's small products
# get wrong.
export QEMU_CPU=neoverse-n1
export PYTHONPATH="$work/package:$system/site" OMP_NUM_THREADS=1 TAEDA_NUM_THREADS=2
# QEMU 7.2 aborts where a child, forked by a process with threads, starts a thread of its own.
LD_LIBRARY_PATH="$system/site/scipy_openblas32/lib" $emulator "$work/build/taeda_tests" \
  --skip "forked child"
if [ $# -eq 0 ]; then
  # Without the tests of what PyTorch changed after that release, and without OpenBLAS's threads, which
  # QEMU lets wait for each other for ever.
  newer="composite_operations_in_place or sums_of_products_take_one_dtype or test_fills and float16"
  set -- tests/ops -k "not any_number_of_threads and not ($newer)"
fi
"$work/python" -m pytest -q -p no:cacheprovider "$@"
