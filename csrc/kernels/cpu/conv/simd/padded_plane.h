// A plane with zeros around it, as the loops over planes read it: windows never leave it.
#pragma once

#include "kernels/cpu/conv/simd/conv.h"
#include "kernels/cpu/conv/simd/strided_load.h"
#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

FN int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
FN int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// to[j] = from[j] for j < n. The last vector overlaps the one before.
template <class T, int64_t N = kLanes<T>> FN void copy_row(const T* from, int64_t n, T* to) {
  if (n >= N) {
    for (int64_t j = 0; j + N <= n; j += N) store(to + j, load<N>(from + j));
    store(to + n - N, load<N>(from + n - N));
  } else if constexpr (N * sizeof(T) > 16) {
    copy_row<T, N / 2>(from, n, to);
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = from[j];
  }
}

// The columns of a row are sorted by their remainder modulo the horizontal stride, one remainder
// after another, `part` columns each: then neighbouring outputs read neighbouring elements, for
// every tap. Memory that is not fresh has zeros in the right places already.
template <class T> struct Padded {
  const T* data;
  int64_t size[3];  // size[2]: of a row in memory
  int64_t part, step;

  // What may be read beyond the last row.
  static constexpr int64_t kBeyond = 2 * kLanes<T>;

  FN static int64_t extent(const Window& w, int d) {
    return (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
  }
  FN static int64_t elements(const Window& w) {
    return extent(w, 0) * extent(w, 1) * ceil_div(extent(w, 2), w.stride[2]) * w.stride[2] +
           kBeyond;
  }

  FN Padded(const Window& w, const T* x, T* memory, bool fresh) : data(memory) {
    const int64_t columns = extent(w, 2);
    for (int d = 0; d < 2; ++d) size[d] = extent(w, d);
    step = w.stride[2];
    part = ceil_div(columns, step);
    size[2] = part * step;
    const int64_t total = elements(w);
    for (int64_t i = 0; fresh && i < total; ++i) memory[i] = 0;
    // The columns [left, end) hold those of x from `first` on.
    const int64_t left = least(most(w.padding[2], 0), columns), first = left - w.padding[2];
    const int64_t end = most(left, least(columns, w.padding[2] + w.in[2]));
    for (int64_t d = 0; d < size[0]; ++d) {
      for (int64_t h = 0; h < size[1]; ++h, memory += size[2]) {
        const int64_t id = d - w.padding[0], ih = h - w.padding[1];
        if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1] || left == end) continue;
        copy(x + (id * w.in[1] + ih) * w.in[2] + first, left, end - left, memory);
      }
    }
  }
  // Where the column that output 0 reads for a distance lies.
  FN int64_t at(int64_t distance) const { return distance % step * part + distance / step; }

 private:
  // n columns of a row, from column `left` of it on.
  FN void copy(const T* from, int64_t left, int64_t n, T* to) const {
    if (step == 1) {
      copy_row(from, n, to + left);
    } else if (step == 2) {
      deinterleave(from, n, to + at(left), to + at(left + 1));
    } else {
      for (int64_t r = 0; r < least(step, n); ++r)
        load_strided(from + r, step, ceil_div(n - r, step), to + at(left + r));
    }
  }
};

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
