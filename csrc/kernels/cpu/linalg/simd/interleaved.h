// Batch-interleaved matrices: lane l of a vector holds an element of matrix l.
//
// Only for files that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// An element of `count` matrices that are `step` elements apart. Lanes beyond them repeat the last.
template <class T> FN Vec<T> load_interleaved(const T* from, int64_t step, int64_t count) {
  constexpr int64_t lanes = kLanes<T>;
  alignas(kRegisterBytes) T lane[lanes];
  if (count >= lanes) {
    for (int64_t l = 0; l < lanes; ++l) lane[l] = from[l * step];
  } else {
    for (int64_t l = 0; l < lanes; ++l) lane[l] = from[(l < count ? l : count - 1) * step];
  }
  return load(lane);
}

template <class T> FN void store_interleaved(Vec<T> x, T* to, int64_t step, int64_t count) {
  constexpr int64_t lanes = kLanes<T>;
  alignas(kRegisterBytes) T lane[lanes];
  store(lane, x);
  if (count >= lanes) {
    for (int64_t l = 0; l < lanes; ++l) to[l * step] = lane[l];
  } else {
    for (int64_t l = 0; l < count; ++l) to[l * step] = lane[l];
  }
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
