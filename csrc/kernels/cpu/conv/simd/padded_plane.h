// What the loops over single planes share: where windows fall, and a plane with zeros around it.
#pragma once

#include <cstdint>

#include "kernels/cpu/conv/simd/conv.h"
#include "kernels/cpu/pointwise/simd/strided_load.h"
#include "kernels/cpu/simd/registers.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

FN int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// The outputs [first, last) along dimension d for which tap k falls inside of the input.
struct Range {
  int64_t first, last;
  int64_t start;  // where output 0 falls

  Range(const Window& w, int d, int64_t k) : start(k * w.dilation[d] - w.padding[d]) {
    const int64_t s = w.stride[d];
    first = start >= 0 ? 0 : (-start + s - 1) / s;
    const int64_t room = w.in[d] - 1 - start;
    last = room < 0 ? 0 : least(w.out[d], room / s + 1);
    first = least(first, w.out[d]);
    last = most(last, first);
  }
};

template <class T> constexpr int kLine = 64 / sizeof(T);

// to[j] = from[j] for j < n, in some rows. The last register overlaps the one before.
template <class T, int L = kLine<T>>
FN void copy_rows(const T* from, int64_t from_row, int64_t rows, int64_t n, T* to, int64_t to_row) {
  typedef T V __attribute__((vector_size(L * sizeof(T)), aligned(sizeof(T)), may_alias));
  if (n < L) {
    if constexpr (L * sizeof(T) > 16) {
      copy_rows<T, L / 2>(from, from_row, rows, n, to, to_row);
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < n; ++j) to[r * to_row + j] = from[r * from_row + j];
      }
    }
    return;
  }
  if (n <= 2 * L) {
    const int64_t last = n - L;
    for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row) {
      const V left = *reinterpret_cast<const V*>(from),
              right = *reinterpret_cast<const V*>(from + last);
      *reinterpret_cast<V*>(to) = left;
      *reinterpret_cast<V*>(to + last) = right;
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row) {
    int64_t j = 0;
    for (; j + L <= n; j += L)
      *reinterpret_cast<V*>(to + j) = *reinterpret_cast<const V*>(from + j);
    *reinterpret_cast<V*>(to + n - L) = *reinterpret_cast<const V*>(from + n - L);
  }
}

// The elements of a plane with its padding, where outputs are `step` apart.
FN int64_t padded_size(const Window& w, int d) {
  return (w.out[d] - 1) * w.stride[d] + (w.kernel[d] - 1) * w.dilation[d] + 1;
}

// x as the kernel sees it, with zeros around it: windows never leave what `data` holds, of which
// `more` zeros follow; from `columns` on there are zeros too. Memory that is not fresh holds
// another plane of this window.
template <class T> struct Padded {
  const T* data;
  int64_t size[3];

  FN Padded(const Window& w, const T* x, T* memory, bool fresh, int64_t more = 0) : data(memory) {
    bool same = more == 0;
    for (int d = 0; d < 3; ++d) {
      size[d] = padded_size(w, d);
      same = same && w.padding[d] == 0 && size[d] == w.in[d];
    }
    if (same) {
      data = x;
      return;
    }
    const int64_t total = size[0] * size[1] * size[2] + more;
    for (int64_t i = 0; fresh && i < total; ++i) memory[i] = 0;
    const int64_t left = least(most(w.padding[2], 0), size[2]);
    const int64_t end = most(left, least(size[2], w.padding[2] + w.in[2]));
    const int64_t top = least(most(w.padding[1], 0), size[1]);
    const int64_t bottom = most(top, least(size[1], w.padding[1] + w.in[1]));
    for (int64_t d = 0; d < size[0]; ++d) {
      const int64_t id = d - w.padding[0];
      if (id < 0 || id >= w.in[0]) continue;
      const T* from = x + (id * w.in[1] + top - w.padding[1]) * w.in[2] + left - w.padding[2];
      copy_rows(from, w.in[2], bottom - top, end - left,
                memory + (d * size[1] + top) * size[2] + left, size[2]);
    }
  }
};

// x with its padding for steps of two along a row. Rows are sorted by their columns' remainders,
// one remainder after another: then outputs next to each other read elements next to each other,
// for every tap.
constexpr int64_t kStep = 2;
template <class T> struct Sorted {
  const T* data;
  int64_t size[3];
  int64_t part;  // of a row: each remainder's columns

  FN Sorted(const Window& w, const T* x, T* memory, bool fresh, int64_t more = 0) : data(memory) {
    for (int d = 0; d < 3; ++d) size[d] = padded_size(w, d);
    part = (size[2] + kStep - 1) / kStep;
    const int64_t row = part * kStep, total = size[0] * size[1] * row + more;
    for (int64_t i = 0; fresh && i < total; ++i) memory[i] = 0;
    // Where columns 0 and 1 go.
    const int64_t before = w.padding[2];
    T *even = memory + (before % 2 == 0 ? before / 2 : part + before / 2),
      *odd = memory + (before % 2 == 0 ? part + before / 2 : (before + 1) / 2);
    for (int64_t d = 0; d < size[0]; ++d) {
      for (int64_t h = 0; h < size[1]; ++h, memory += row, even += row, odd += row) {
        const int64_t id = d - w.padding[0], ih = h - w.padding[1];
        if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) continue;
        const T* from = x + (id * w.in[1] + ih) * w.in[2];
        if (before >= 0) halve(from, most(0, least(w.in[2], size[2] - before)), even, odd);
        else lay_row(w, from, memory);
      }
    }
  }

 private:
  // A row whose first elements no window sees.
  FN void lay_row(const Window& w, const T* from, T* to) const {
    for (int64_t r = 0; r < kStep; ++r) {
      const int64_t at = r - w.padding[2];  // what the first place holds
      const int64_t last = least(part, (w.in[2] - at + kStep - 1) / kStep);
      if (last > 0) every(from + at, kStep, last, to + r * part);
    }
  }
};

// The outputs that inputs reach, in steps of one, with zeros where there are none.
FN Window what_inputs_reach(const Window& w) {
  Window read = w;
  for (int d = 0; d < 3; ++d) {
    const int64_t near = w.padding[d] - (w.kernel[d] - 1) * w.dilation[d];
    const int64_t far = w.in[d] - 1 + w.padding[d], step = w.stride[d];
    const int64_t lo = near >= 0 ? near / step : -((-near) / step);
    const int64_t hi = most(lo, far >= 0 ? far / step : -((-far) / step));
    read.in[d] = w.out[d];
    read.out[d] = hi - lo + 1;
    read.padding[d] = -lo;
    read.kernel[d] = read.stride[d] = read.dilation[d] = 1;
  }
  return read;
}

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
