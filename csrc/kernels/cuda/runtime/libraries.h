// NVIDIA's libraries, loaded when they are first used.
#pragma once

#include <string>

namespace taeda::cuda {

// Folders that are searched where the dynamic linker finds nothing, separated by colons.
void set_library_folders(const char* folders);

// dlopen() of a library such as libcublasLt.so.13; null where it is not installed.
void* open_library(const char* name);

// A line on stderr of what a library was asked for and did, where TAEDA_CUDA_DEBUG_LIBRARIES is in
// the environment.
bool reports_libraries();
void report_library(const std::string& line);

}  // namespace taeda::cuda
