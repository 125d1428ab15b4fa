// The inner loops of convolution by im2col: copying windows to columns and back.
#pragma once

#include "kernels/conv.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// Of `images` images whose elements lie side by side: what follows counts positions.
template <class T> struct ConvLoops {
  // Columns [begin, end) of the matrix (channels * kernel volume) x (out volume) whose column is
  // what the kernel sees at one output position; its rows lie `ld` elements apart in `col`.
  void (*im2col)(const ConvWindow& w, int64_t channels, int64_t images, const T* x, int64_t begin,
                 int64_t end, T* col, int64_t ld);
  // The transpose: adds every column to the elements of x that it came from.
  void (*col2im)(const ConvWindow& w, int64_t channels, int64_t images, const T* col, int64_t ld,
                 int64_t begin, int64_t end, T* x);
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
