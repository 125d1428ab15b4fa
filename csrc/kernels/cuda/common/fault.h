// Reporting an index that is out of range: to whoever waits for the device next.
#pragma once

#include "kernels/cuda/launch.h"

namespace taeda::cuda {

__device__ inline void report(Fault* fault, int64_t index, int64_t size) {
  if (fault->found) return;
  fault->index = index;
  fault->size = size;
  __threadfence_system();
  fault->found = 1;
}

}  // namespace taeda::cuda
