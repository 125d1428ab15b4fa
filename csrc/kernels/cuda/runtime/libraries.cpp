#include "kernels/cuda/runtime/libraries.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>

namespace taeda::cuda {
namespace {

std::mutex mutex;
std::string& folders() {
  static std::string& all = *new std::string;
  return all;
}

}  // namespace

void set_library_folders(const char* given) {
  const std::lock_guard lock(mutex);
  folders() = given;
}

void* open_library(const char* name) {
  if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  if (reports_libraries()) report_library(dlerror());
  const std::lock_guard lock(mutex);
  std::istringstream all(folders());
  for (std::string folder; std::getline(all, folder, ':');) {
    if (void* found = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    if (reports_libraries()) report_library(dlerror());
  }
  return nullptr;
}

bool reports_libraries() {
  static const bool wanted = std::getenv("TAEDA_CUDA_DEBUG_LIBRARIES");
  return wanted;
}
void report_library(const std::string& line) {
  if (reports_libraries()) std::fprintf(stderr, "taeda: %s\n", line.c_str());
}

}  // namespace taeda::cuda
