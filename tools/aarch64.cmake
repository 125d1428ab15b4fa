# Cross-compiles for 64-bit ARM (Linux) on another machine, with Debian's g++-aarch64-linux-gnu.
# TAEDA_SYSROOT names a folder with an arm64 Python, its headers, and the packages that taeda needs
# in site/; tools/aarch64.sh makes one, builds and runs the tests there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
find_program(CMAKE_CXX_COMPILER NAMES aarch64-linux-gnu-g++ aarch64-linux-gnu-g++-12 REQUIRED)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TAEDA_SYSROOT)

if(TAEDA_SYSROOT)
  set(TAEDA_OPENBLAS "${TAEDA_SYSROOT}/site/scipy_openblas32" CACHE PATH "")
  file(GLOB taeda_headers "${TAEDA_SYSROOT}/usr/include/python3.*")
  set(Python_INCLUDE_DIR "${taeda_headers}" CACHE PATH "")
  # What nanobind names the module after.
  string(REGEX REPLACE ".*python3[.]" "cpython-3" taeda_abi "${taeda_headers}")
  set(SKBUILD_SOABI "${taeda_abi}-aarch64-linux-gnu")
  # Debian's Python.h includes a header for each architecture from the folder above its own.
  set(CMAKE_CXX_FLAGS_INIT "-idirafter ${TAEDA_SYSROOT}/usr/include")
endif()
