// Sums of shifted rows for some rows of outputs at once, in one strip of columns that fills a
// register. All sums and a column of the kernel stay in registers, so that what is read of the
// input is read once for all the outputs that it reaches.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int kMostRegisters = kBytes == 64 ? 32 : 16;

// What outputs are sums of, the same for all of a plane.
template <class T> struct Taps {
  int64_t height, width;
  int64_t step;                       // rows of x from one output to the next
  int64_t x_row;                      // from one row of x to the next
  const int64_t* at;                  // where each column of taps begins in x
  int64_t weight_column, weight_row;  // from one column of weights, and row, to the next
  T start;                            // what sums begin with
};

// x: what the first output reads; before: sums there are already, a register for each row, or null;
// last: where the last row goes.
template <class T>
using StripLoop = void (*)(const Taps<T>& taps, const T* x, const T* weight, const T* before, T* y,
                           int64_t y_row, T* last);

// Keeps a value in a register, where the compiler would read it from memory for every use.
template <class V> FN void keep([[maybe_unused]] V& v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#endif
}

// Of `Height` rows of taps, with outputs `Step` rows of x after one another.
template <class T, int Height, int Step, int Rows>
void strip(const Taps<T>& taps, const T* x, const T* weight, const T* before, T* y, int64_t y_row,
           T* last) {
  using V = typename Vector<T>::type;
  constexpr int64_t lanes = kLanes<T>;
  const V zero{};
  V sum[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) sum[r] = before ? V(at(before + r * lanes)) : taps.start - zero;
  const int64_t x_row = taps.x_row, weight_row = taps.weight_row;
  for (int64_t k = 0; k < taps.width; ++k, weight += taps.weight_column) {
    V factor[Height];
#pragma GCC unroll 8
    for (int h = 0; h < Height; ++h) {
      factor[h] = weight[h * weight_row] - zero;
      if constexpr (Height + Rows < kMostRegisters) keep(factor[h]);
    }
    const T* from = x + taps.at[k];
#pragma GCC unroll 64
    for (int i = 0; i < (Rows - 1) * Step + Height; ++i, from += x_row) {
      V seen = at(from);
      keep(seen);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const int h = i - r * Step;
        if (h >= 0 && h < Height) sum[r] += factor[h] * seen;
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows - 1; ++r) at(y + r * y_row) = sum[r];
  at(last) = sum[Rows - 1];
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
