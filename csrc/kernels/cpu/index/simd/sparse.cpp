#include "kernels/cpu/index/simd/sparse.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kAhead = 8;  // elements between a row's prefetch and its use

// The elements of one row of the matrix; `end` is where those of the last row end.
template <class T> struct Elements {
  const int64_t* column;
  const T* values;
  int64_t begin, count, end;
};

// N registers of the result stay in registers while the rows of x go by.
template <int N, class T> FN void sum_block(const Elements<T>& e, const T* x, int64_t width, T* y) {
  constexpr int64_t lanes = kLanes<T>, bytes = N * kRegisterBytes;
  constexpr int cache = bytes > 256 ? 2 : 3;  // few lines can be under way to the first one
  Vec<T> sum[N] = {};
  for (int64_t k = e.begin; k < e.begin + e.count; ++k) {
    if (k + kAhead < e.end) prefetch<cache>(x + e.column[k + kAhead] * width, bytes);
    const T* row = x + e.column[k] * width;
    const auto value = broadcast_to<T>(e.values[k]);
    for (int i = 0; i < N; ++i) sum[i] += value * load(row + i * lanes);
  }
  for (int i = 0; i < N; ++i) store(y + i * lanes, sum[i]);
}
template <class T>
FN void sum_tail(const Elements<T>& e, const T* x, int64_t width, const FirstLanes<T>& tail, T* y) {
  Vec<T> sum{};
  for (int64_t k = e.begin; k < e.begin + e.count; ++k)
    sum += broadcast_to<T>(e.values[k]) * tail.load(x + e.column[k] * width);
  tail.store(y, sum);
}

// Four sums, as each addition waits for the one before.
template <class T> FN T sum_elements(const Elements<T>& e, const T* x) {
  T a = 0, b = 0, c = 0, d = 0;
  const int64_t* column = e.column + e.begin;
  const T* values = e.values + e.begin;
  int64_t k = 0;
  for (; k + 4 <= e.count; k += 4) {
    a += values[k] * x[column[k]];
    b += values[k + 1] * x[column[k + 1]];
    c += values[k + 2] * x[column[k + 2]];
    d += values[k + 3] * x[column[k + 3]];
  }
  if (k + 2 <= e.count) {
    a += values[k] * x[column[k]];
    b += values[k + 1] * x[column[k + 1]];
    k += 2;
  }
  if (k < e.count) c += values[k] * x[column[k]];
  return (a + b) + (c + d);
}

template <class T>
void product(const int64_t* start, int64_t rows, const int64_t* column, const T* values, const T* x,
             int64_t width, T* y) {
  constexpr int64_t lanes = kLanes<T>;
  const FirstLanes<T> tail(width % lanes);
  for (int64_t i = 0; i < rows; ++i, y += width) {
    const Elements<T> e{column, values, start[i], start[i + 1] - start[i], start[rows]};
    if (width == 1) {
      *y = sum_elements(e, x);
      continue;
    }
    int64_t j = 0;
    for (; j + 8 * lanes <= width; j += 8 * lanes) sum_block<8>(e, x + j, width, y + j);
    for (; j + 4 * lanes <= width; j += 4 * lanes) sum_block<4>(e, x + j, width, y + j);
    for (; j + lanes <= width; j += lanes) sum_block<1>(e, x + j, width, y + j);
    if (j < width) sum_tail(e, x + j, width, tail, y + j);
  }
}

template <class T>
void inner(const int64_t* start, int64_t rows, const int64_t* column, const T* a, const T* b,
           int64_t width, T* out) {
  constexpr int64_t lanes = kLanes<T>;
  const FirstLanes<T> tail(width % lanes);
  for (int64_t i = 0; i < rows; ++i, a += width) {
    for (int64_t k = start[i]; k < start[i + 1]; ++k) {
      if (k + kAhead < start[rows]) prefetch(b + column[k + kAhead] * width);
      const T* row = b + column[k] * width;
      Vec<T> sum{};
      int64_t j = 0;
      for (; j + lanes <= width; j += lanes) sum += load(a + j) * load(row + j);
      if (j < width) sum += tail.load(a + j) * tail.load(row + j);
      out[k] = reduce_add(sum);
    }
  }
}

}  // namespace

extern constinit const ForFloats<SparseLoops> sparse_kernels = {{product<float>, inner<float>},
                                                                {product<double>, inner<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
