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
  Vec<T> sum[N] = {};
  for (int64_t k = e.begin; k < e.begin + e.count; ++k) {
    if (k + kAhead < e.end) prefetch<3>(x + e.column[k + kAhead] * width, bytes);
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

// The sum of one row's elements times those of a vector that their columns name; `right` becomes
// false where one is outside, which is not read.
template <class T>
FN T inner_product(const int64_t* column, const T* values, int64_t count, const T* x, int64_t size,
                   bool& right) {
  int64_t k = 0;
  T a = 0, b = 0;
#if defined(__AVX2__)
  // Four indices at a time are checked and gathered. (Eight are slower: most rows are short.)
  __m256i wrong = _mm256_setzero_si256();
  Vec<T, 4> sum{};
  for (; k + 4 <= count; k += 4) {
    const __m256i at = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(column + k));
    wrong = _mm256_or_si256(at, _mm256_sub_epi64(_mm256_set1_epi64x(size - 1), at));
    if (_mm256_movemask_pd(_mm256_castsi256_pd(wrong)) != 0) return right = false, T(0);
    Vec<T, 4> taken;
    if constexpr (sizeof(T) == 4) {
      taken = (Vec<T, 4>)_mm256_mask_i64gather_epi32(
          _mm_setzero_si128(), reinterpret_cast<const int*>(x), at, _mm_set1_epi32(-1), 4);
    } else {
      taken = (Vec<T, 4>)_mm256_mask_i64gather_epi64(_mm256_setzero_si256(),
                                                     reinterpret_cast<const long long*>(x), at,
                                                     _mm256_set1_epi32(-1), 8);
    }
    sum += load<4>(values + k) * taken;
  }
  b = reduce_add(sum);
#endif
  const auto inside = [&](int64_t i) {
    return static_cast<uint64_t>(column[i]) < static_cast<uint64_t>(size);
  };
  for (; k + 2 <= count; k += 2) {  // two sums, as each addition waits for the one before
    if (!(inside(k) & inside(k + 1))) return right = false, T(0);
    a += values[k] * x[column[k]];
    b += values[k + 1] * x[column[k + 1]];
  }
  if (k < count) {
    if (!inside(k)) return right = false, T(0);
    a += values[k] * x[column[k]];
  }
  return a + b;
}

template <class T>
bool times_vector(const int64_t* start, int64_t rows, const int64_t* column, const T* values,
                  const T* x, int64_t size, T* y) {
  const int64_t last = start[rows];
  bool right = true;
  for (int64_t i = 0; i < rows && right; ++i) {
    const int64_t from = start[i], to = start[i + 1];
    if (from > to || to > last) return false;
    y[i] = inner_product(column + from, values + from, to - from, x, size, right);
  }
  return right;
}

template <class T>
void product(const int64_t* start, int64_t rows, const int64_t* column, const T* values, const T* x,
             int64_t width, T* y) {
  constexpr int64_t lanes = kLanes<T>;
  const FirstLanes<T> tail(width % lanes);
  for (int64_t i = 0; i < rows; ++i, y += width) {
    const Elements<T> e{column, values, start[i], start[i + 1] - start[i], start[rows]};
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

extern constinit const ForFloats<SparseLoops> sparse_kernels = {
    {product<float>, times_vector<float>, inner<float>},
    {product<double>, times_vector<double>, inner<double>}};

}  // namespace taeda::cpu::simd::TAEDA_ISA
