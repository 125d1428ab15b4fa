#include "kernels/cpu/gemm/simd/gemm_small.h"

#include "kernels/cpu/common/simd/lane_mask.h"
#include "kernels/cpu/linalg/simd/abreast.h"
#include "kernels/cpu/pointwise/simd/transpose.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kTinySide = 4;  // of matrices that a register is too wide for
constexpr int64_t kLongSum = 8;   // that is worth cutting into parts

// M rows of neighbouring results, as many as `lanes` says; their sums stay in registers.
template <class T, int M, class L>
FN void block(const SmallProduct<T>& x, L lanes, const T* a, const T* b, const T* start, T* c) {
  typename L::Row sum[M] = {};
  if (start) {
    for (int r = 0; r < M; ++r) sum[r] = lanes.load(start);
  } else if (x.add) {
    for (int r = 0; r < M; ++r) sum[r] = lanes.load(c + r * x.ldc);
  }
  for (int64_t p = 0; p < x.k; ++p, a += x.a.col, b += x.b.row) {
    const typename L::Row row = lanes.load(b);
    for (int r = 0; r < M; ++r) sum[r] += a[r * x.a.row] * row;
  }
  for (int r = 0; r < M; ++r) lanes.store(c + r * x.ldc, sum[r]);
}

// Columns from j on.
template <class T, class L> void columns(const SmallProduct<T>& x, L lanes, int64_t j) {
  const T* const start = x.start ? x.start + j : nullptr;
  int64_t i = 0;
  auto rows = [&]<int M>() {
    for (; i + M <= x.m; i += M)
      block<T, M>(x, lanes, x.a.data + i * x.a.row, x.b.data + j, start, x.c + i * x.ldc + j);
  };
  rows.template operator()<kRows>();
  if constexpr (kRows > 4) rows.template operator()<4>();
  if constexpr (kRows > 2) rows.template operator()<2>();
  rows.template operator()<1>();
}

// Column j, where the sums run along rows of a: many rows at once would have to be gathered.
template <class T> void column(const SmallProduct<T>& x, const T* b, int64_t j) {
  for (int64_t i = 0; i < x.m; ++i) {
    const T* row = x.a.data + i * x.a.row;
    T sums[4] = {};
    int64_t p = 0;
    for (; p + 4 <= x.k; p += 4) {
      for (int l = 0; l < 4; ++l) sums[l] += row[p + l] * b[p + l];
    }
    T sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (; p < x.k; ++p) sum += row[p] * b[p];
    T& to = x.c[i * x.ldc + j];
    to = x.start ? x.start[j] + sum : x.add ? to + sum : sum;
  }
}

template <class T> void product(const SmallProduct<T>& given) {
  T turned[kSmallTurned];
  SmallProduct<T> x = given;
  if (x.b.col != 1 && x.n > 1) {  // then b.row is 1
    constexpr auto bytes = static_cast<int64_t>(sizeof(T));
    const Transpose transpose = bytes == 4 ? transpose_kernels.bytes4 : transpose_kernels.bytes8;
    transpose(reinterpret_cast<char*>(turned), x.n * bytes, reinterpret_cast<const char*>(x.b.data),
              x.b.col * bytes, x.n, x.k);
    x.b = {turned, x.n, 1, 0};
  }
  int64_t j = 0;
  auto run = [&]<int W>() {
    for (; j + W <= x.n; j += W) columns(x, AllLanes<T, W>(), j);
  };
  run.template operator()<kLanes<T>>();
  if constexpr (kHasMasks) {
    const int64_t left = x.n - j;
    if (left & (left - 1)) return columns(x, LaneMask<T>(left), j);
  }
  if constexpr (kLanes<T> > 8) run.template operator()<8>();
  if constexpr (kLanes<T> > 4) run.template operator()<4>();
  if constexpr (kLanes<T> > 2) run.template operator()<2>();
  if (j < x.n && x.a.col == 1 && given.b.row == 1 && x.k >= kLongSum)
    return column(x, given.b.data + j * given.b.col, j);
  run.template operator()<1>();
}

// Tiny matrices, as many as a register has lanes, side by side.
template <class T> void abreast(int64_t count, const SmallProduct<T>& x) {
  typename Vector<T>::type left[kTinySide * kTinySide], right[kTinySide * kTinySide];
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t p = 0; p < x.k; ++p)
      gather(left[i * x.k + p], x.a.data + i * x.a.row + p * x.a.col, x.a.next, count);
  }
  for (int64_t p = 0; p < x.k; ++p) {
    for (int64_t j = 0; j < x.n; ++j)
      gather(right[p * x.n + j], x.b.data + p * x.b.row + j * x.b.col, x.b.next, count);
  }
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      T* to = x.c + i * x.ldc + j;
      typename Vector<T>::type sum = {};
      if (x.add) gather(sum, to, x.c_next, count);
      for (int64_t p = 0; p < x.k; ++p) sum += left[i * x.k + p] * right[p * x.n + j];
      scatter(sum, to, x.c_next, count);
    }
  }
}

template <class T> void products(int64_t count, const SmallProduct<T>& first) {
  if (count == 1) return product(first);
  SmallProduct<T> x = first;
  const bool tiny = x.m <= kTinySide && x.n <= kTinySide && x.k <= kTinySide && !x.start;
  const int64_t together = tiny ? kLanes<T> : 1;
  for (int64_t i = 0; i < count; i += together) {
    if (tiny) abreast(count - i, x);
    else product(x);
    x.a.data += together * x.a.next;
    x.b.data += together * x.b.next;
    x.c += together * x.c_next;
  }
}

}  // namespace

extern constinit const SmallGemmKernels small_gemm_kernels = {products<float>, products<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
