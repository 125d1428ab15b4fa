// What the functions have in common that Python calls by ctypes.
#pragma once

#include <exception>
#include <string>

#include "base/error.h"
#include "kernels/cuda/runtime/allocator.h"

namespace taeda::cuda {

enum Status : int { kOk, kRuntimeError, kIndexError, kDeviceOutOfMemory };

// Of the last call in this thread that did not return kOk.
std::string& last_error();

template <class F> int guarded(F&& f) {
  try {
    f();
    return kOk;
  } catch (const DeviceOutOfMemory& e) {
    last_error() = e.what();
    return kDeviceOutOfMemory;
  } catch (const IndexError& e) {
    last_error() = e.what();
    return kIndexError;
  } catch (const std::exception& e) {
    last_error() = e.what();
    return kRuntimeError;
  }
}

// The text, cut to `room` bytes; its whole length.
size_t copy_text(const std::string& text, char* to, size_t room);

}  // namespace taeda::cuda
