// Running sums and extremes.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

constexpr int64_t kScanColumns = 64;  // the most columns that one call works on side by side

// Running extremes and their indices: of equal elements the last, NaN before every number. Of rows
// [first, first + n) of `width` columns, which are `step` elements apart, those of the indices
// `index_step`. Unless first is 0, best and index are those of the rows before, and get the last of
// these.
template <class T>
using ScanExtreme = void (*)(const T* x, int64_t n, int64_t first, int64_t step, int64_t width,
                             T* best, int64_t* index, T* values, int64_t* indices,
                             int64_t index_step);
template <class T> struct ScanExtremes {
  ScanExtreme<T> largest, smallest;
};

template <class T> using LogSums = double (*)(const T* x, int64_t n, double before, T* y);

struct ScanKernels {
  ScanExtremes<uint8_t> u8;
  ScanExtremes<int8_t> i8;
  ScanExtremes<int16_t> i16;
  ScanExtremes<int32_t> i32;
  ScanExtremes<int64_t> i64;
  ScanExtremes<float> f32;
  ScanExtremes<double> f64;
  // y[i] = x[0] + ... + x[i], wrapping around.
  void (*integer_sums)(const int64_t* x, int64_t n, int64_t* y);
  // The same in double, on top of `before`; returns the sum without it, the same bits that `sum`
  // gives.
  double (*sums_from)(const float* x, int64_t n, double before, float* y);
  double (*sum)(const float* x, int64_t n);
  // y[i] = log(exp(before) + exp(x[0]) + ... + exp(x[i])), in double; returns the last.
  ForFloats<LogSums> log_sums;
};

TAEDA_TABLES(ScanKernels, scan_kernels)

}  // namespace taeda::cpu::simd
