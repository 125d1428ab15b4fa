// NVIDIA's libraries, loaded when they are first used.
#pragma once

#include <string>

namespace taeda::cuda {

// Folders that are searched where the dynamic linker finds nothing, separated by colons.
void set_library_folders(const char* folders);

// dlopen() of a library such as libcublasLt.so.13; null where it is not installed.
void* open_library(const char* name);

}  // namespace taeda::cuda
