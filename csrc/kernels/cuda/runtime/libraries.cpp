#include "kernels/cuda/runtime/libraries.h"

#include <dlfcn.h>

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
  const std::lock_guard lock(mutex);
  std::istringstream all(folders());
  for (std::string folder; std::getline(all, folder, ':');) {
    if (void* found = dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  }
  return nullptr;
}

}  // namespace taeda::cuda
