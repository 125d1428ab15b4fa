#include "kernels/cpu/index/simd/sparse.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kAhead = 8;  // elements between a row's prefetch and its use

// The elements of one row of the matrix, all ones where `values` is null; rows of x are prefetched
// for elements before `known`.
template <class T> struct Elements {
  const int64_t* column;
  const T* values;
  int64_t begin, end, known;
};

// N registers of the result stay in registers while the rows of x go by. The last of them is at
// `last`, so that it can end where the row does. Few registers would wait for the addition before,
// so several rows of x are added up apart.
template <int N, bool kOnes, class T>
FN void sum_block(const Elements<T>& e, const T* x, int64_t width, int64_t last, T* y) {
  constexpr int64_t lanes = kLanes<T>, bytes = N * kRegisterBytes;
  constexpr int kApart = N <= 2 ? 4 : N <= 4 ? 2 : 1;
  Vec<T> sum[kApart][N] = {};
  const auto add = [&](int64_t k, Vec<T>* to) {
    if (k + kAhead < e.known) prefetch<3>(x + e.column[k + kAhead] * width, bytes);
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
}
template <bool kOnes, class T>
FN void sum_tail(const Elements<T>& e, const T* x, int64_t width, const FirstLanes<T>& tail, T* y) {
  Vec<T> sum{};
  for (int64_t k = e.begin; k < e.end; ++k) {
    const auto taken = tail.load(x + e.column[k] * width);
    if constexpr (kOnes) sum += taken;
    else sum += broadcast_to<T>(e.values[k]) * taken;
  }
  tail.store(y, sum);
}

// A row of at least one register: blocks of eight, and the rest in one that may overlap them.
template <bool kOnes, class T>
FN void sum_row(const Elements<T>& e, const T* x, int64_t width, T* y) {
  constexpr int64_t lanes = kLanes<T>, wide = 8 * lanes;
  int64_t j = 0;
  for (; j + wide <= width; j += wide) sum_block<8, kOnes>(e, x + j, width, wide - lanes, y + j);
  const int64_t last = width - lanes - j;  // where the last register begins
  const auto rest = [&]<int N>() { sum_block<N, kOnes>(e, x + j, width, last, y + j); };
  switch ((width - j + lanes - 1) / lanes) {
    case 1: return rest.template operator()<1>();
    case 2: return rest.template operator()<2>();
    case 3: return rest.template operator()<3>();
    case 4: return rest.template operator()<4>();
    case 5: return rest.template operator()<5>();
    case 6: return rest.template operator()<6>();
    case 7: return rest.template operator()<7>();
    case 8: return rest.template operator()<8>();
    default: return;
  }
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
void product_of(const int64_t* start, int64_t rows, const int64_t* column, const T* values,
                const T* x, int64_t width, bool fetch, T* y) {
  const FirstLanes<T> tail(width);
  for (int64_t i = 0; i < rows; ++i, y += width) {
    const Elements<T> e{column, values, start[i], start[i + 1], fetch ? start[rows] : 0};
    if (width >= kLanes<T>) sum_row<kOnes>(e, x, width, y);
    else sum_tail<kOnes>(e, x, width, tail, y);
  }
}
template <class T>
void product(const int64_t* start, int64_t rows, const int64_t* column, const T* values, const T* x,
             int64_t width, bool fetch, T* y) {
  if (values) product_of<false>(start, rows, column, values, x, width, fetch, y);
  else product_of<true>(start, rows, column, values, x, width, fetch, y);
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
