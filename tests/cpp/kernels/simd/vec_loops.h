// Loops over what simd/vec.h and simd/half.h offer, compiled for each instruction set, to be tested
// from outside.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct LaneLoops {
  T (*sum)(const T* x, int64_t n);      // reduce_add over whole vectors, the tail by FirstLanes
  T (*largest)(const T* x, int64_t n);  // reduce by max, of at least one vector
  void (*copy)(const T* x, int64_t n, T* y);  // FirstLanes alone, one vector at a time
  void (*to_float)(const T* x, int64_t n, float* y);
  void (*to_double)(const T* x, int64_t n, double* y);
  void (*from_float)(const float* x, int64_t n, T* y);
};
struct HalfLoops {
  void (*widen)(const uint16_t* x, int64_t n, float* y);
  void (*widen_double)(const uint16_t* x, int64_t n, double* y);
  void (*narrow)(const float* x, int64_t n, uint16_t* y);
  void (*narrow_each)(const float* x, int64_t n, uint16_t* y);  // one element at a time
};
struct VecLoops {
  LaneLoops<float> f32;
  LaneLoops<double> f64;
  LaneLoops<int32_t> i32;
  LaneLoops<int64_t> i64;
  LaneLoops<int16_t> i16;
  LaneLoops<int8_t> i8;
  HalfLoops f16, bf16;
};

TAEDA_TABLES(VecLoops, vec_loops)

}  // namespace taeda::cpu::simd
