// The inner loops of convolution by im2col: copying windows to columns and back.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Always three dimensions; a convolution over fewer has leading sizes of 1. `padding` may be
// negative.
struct Window {
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
};

template <class T> struct ConvLoops {
  // Columns [begin, end) of the matrix (channels * kernel volume) x (out volume) whose column is
  // what the kernel sees at one output position; its rows lie `ld` apart in `col`.
  void (*im2col)(const Window& w, int64_t channels, const T* x, int64_t begin, int64_t end, T* col,
                 int64_t ld);
  // The transpose: adds every column to the elements of x that it came from.
  void (*col2im)(const Window& w, int64_t channels, const T* col, int64_t ld, int64_t begin,
                 int64_t end, T* x);
};

struct ConvKernels {
  ConvLoops<float> f32;
  ConvLoops<double> f64;
  // Integers, of either sign.
  ConvLoops<uint8_t> u8;
  ConvLoops<uint16_t> u16;
  ConvLoops<uint32_t> u32;
  ConvLoops<uint64_t> u64;
};

TAEDA_TABLES(ConvKernels, conv_kernels)

}  // namespace taeda::cpu::simd
