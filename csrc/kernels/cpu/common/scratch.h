// Memory that a kernel needs while it runs, from the caching allocator.
#pragma once

#include <cstdint>

#include "base/allocator.h"

namespace taeda::cpu {

template <class T> class Scratch {
 public:
  explicit Scratch(int64_t count)
      : bytes_(static_cast<size_t>(count) * sizeof(T)),
        data_(static_cast<T*>(allocate(bytes_))) {}
  ~Scratch() { deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }

 private:
  size_t bytes_;
  T* data_;
};

}  // namespace taeda::cpu
