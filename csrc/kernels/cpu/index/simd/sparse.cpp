#include "kernels/cpu/index/simd/sparse.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kAhead = 16;  // elements between a row's prefetch and its use

// The elements of one row of the matrix, all ones where `values` is null. x has `size` rows, which
// are prefetched for elements before `known`.
template <class T> struct Elements {
  const int64_t* column;
  const T* values;
  int64_t begin, end, known, size;

  FN bool has(int64_t k) const {
    return static_cast<uint64_t>(column[k]) < static_cast<uint64_t>(size);
  }
};

// N registers of the result stay in registers while the rows of x go by. The last of them is at
// `last`, so that it can end where the row does. Few registers would wait for the addition before,
// so several rows of x are added up apart.
template <int N, bool kOnes, class T>
FN bool sum_block(const Elements<T>& e, const T* x, int64_t width, int64_t last, T* y) {
  bool right = true;
  constexpr int64_t lanes = kLanes<T>, bytes = N * kRegisterBytes;
  constexpr int kApart = N <= 2 ? 4 : N <= 4 ? 2 : 1;
  Vec<T> sum[kApart][N] = {};
  const auto add = [&](int64_t k, Vec<T>* to) {
    if (k + kAhead < e.known && e.has(k + kAhead))
      prefetch<3>(x + e.column[k + kAhead] * width, bytes);
    if (!e.has(k)) [[unlikely]]
      return void(right = false);
    const T* row = x + e.column[k] * width;
    for (int i = 0; i < N; ++i) {
      const auto taken = load(row + (i + 1 < N ? i * lanes : last));
      if constexpr (kOnes) to[i] += taken;
      else to[i] += broadcast_to<T>(e.values[k]) * taken;
    }
  };
  int64_t k = e.begin;
  for (; k + kApart <= e.end; k += kApart)
    for (int u = 0; u < kApart; ++u) add(k + u, sum[u]);
  for (; k < e.end; ++k) add(k, sum[0]);
  for (int u = kApart / 2; u > 0; u /= 2)
    for (int v = 0; v < u; ++v)
      for (int i = 0; i < N; ++i) sum[v][i] += sum[v + u][i];
  for (int i = 0; i < N; ++i) store(y + (i + 1 < N ? i * lanes : last), sum[0][i]);
  return right;
}
template <bool kOnes, class T>
FN bool sum_tail(const Elements<T>& e, const T* x, int64_t width, const FirstLanes<T>& tail, T* y) {
  Vec<T> sum{};
  bool right = true;
  for (int64_t k = e.begin; k < e.end; ++k) {
    if (!(right &= e.has(k))) break;
    const auto taken = tail.load(x + e.column[k] * width);
    if constexpr (kOnes) sum += taken;
    else sum += broadcast_to<T>(e.values[k]) * taken;
  }
  tail.store(y, sum);
  return right;
}

// A row of at least one register: blocks of eight, and the rest in one that may overlap them.
template <bool kOnes, class T>
FN bool sum_row(const Elements<T>& e, const T* x, int64_t width, T* y) {
  constexpr int64_t lanes = kLanes<T>, wide = 8 * lanes;
  bool right = true;
  int64_t j = 0;
  for (; j + wide <= width; j += wide)
    right &= sum_block<8, kOnes>(e, x + j, width, wide - lanes, y + j);
  const int64_t rest = (width - j + lanes - 1) / lanes, last = width - lanes - j;
  [&]<int... N>(std::integer_sequence<int, N...>) {
    ((rest == N + 1 && (right &= sum_block<N + 1, kOnes>(e, x + j, width, last, y + j))), ...);
  }(std::make_integer_sequence<int, 8>());
  return right;
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

template <bool kOnes, class T>
bool product_of(const int64_t* start, int64_t rows, const int64_t* column, const T* values,
                const T* x, int64_t size, int64_t width, bool fetch, T* y) {
  const FirstLanes<T> tail(width);
  const int64_t last = start[rows];
  bool right = true;
  for (int64_t i = 0; i < rows; ++i, y += width) {
    if (start[i] > start[i + 1] || start[i + 1] > last) return false;
    const Elements<T> e{column, values, start[i], start[i + 1], fetch ? last : 0, size};
    right &=
        width >= kLanes<T> ? sum_row<kOnes>(e, x, width, y) : sum_tail<kOnes>(e, x, width, tail, y);
  }
  return right;
}
template <class T>
bool product(const int64_t* start, int64_t rows, const int64_t* column, const T* values, const T* x,
             int64_t size, int64_t width, bool fetch, T* y) {
  if (values) return product_of<false>(start, rows, column, values, x, size, width, fetch, y);
  return product_of<true>(start, rows, column, values, x, size, width, fetch, y);
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
