# Compiles with GCC for a machine that tools/wheels/build.py names, and links against the stub
# libraries of an old glibc in TAEDA_GLIBC (tools/wheels/glibc.py says why).
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TAEDA_GLIBC TAEDA_ARCH TAEDA_COMPILER)
if(NOT TAEDA_ARCH STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${TAEDA_ARCH})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
endif()
set(CMAKE_CXX_COMPILER ${TAEDA_COMPILER})
# libstdc++ comes along: systems with an old glibc have an old one. libgcc_s, which unwinds the
# stack, must be the process's only one.
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-L${TAEDA_GLIBC} -static-libstdc++ -Wl,--exclude-libs,ALL")
# In this glibc threads and dlopen() are in libraries of their own.
set(CMAKE_CXX_STANDARD_LIBRARIES "-lpthread -ldl")
# A path written at installation would leave room in the file for the build folder's.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
