// NVIDIA's libraries, loaded when they are first used.
#pragma once

#include <dlfcn.h>

#include <optional>
#include <string>

namespace taeda::cuda {

// Folders that are searched where the dynamic linker finds nothing, separated by colons.
void set_library_folders(const char* folders);

// dlopen() of a library such as libcublasLt.so.13; null where it is not installed.
void* open_library(const char* name);

// A struct L of pointers to functions of a library: list(l, find) calls find(l.pointer, "name") for
// each of them. Nothing where the library is not installed, or lacks one.
template <class L, class List> std::optional<L> bind_library(const char* name, List&& list) {
  void* opened = open_library(name);
  if (!opened) return std::nullopt;
  L library{};
  bool all = true;
  list(library, [&]<class F>(F& to, const char* function) {
    to = reinterpret_cast<F>(dlsym(opened, function));
    all &= to != nullptr;
  });
  return all ? std::optional(library) : std::nullopt;
}

// A line on stderr of what a library was asked for and did, where TAEDA_CUDA_DEBUG_LIBRARIES is in
// the environment.
bool reports_libraries();
void report_library(const std::string& line);

}  // namespace taeda::cuda
