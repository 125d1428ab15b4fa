#include "kernels/cpu/simd/gemm_small.h"

#include "kernels/cpu/simd/abreast.h"
#include "kernels/cpu/simd/transpose.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kTinySide = 4;  // of matrices that a register is too wide for
constexpr int64_t kLongSum = 8;   // that is worth cutting into parts

// M rows of W neighbouring results; their sums stay in registers.
template <class T, int W, int M>
FN void block(int64_t k, Strided<T> a, Strided<T> b, bool add, T* c, int64_t ldc) {
  typedef T Row __attribute__((vector_size(W * sizeof(T))));
  Row sum[M] = {};
  if (add) {
    for (int r = 0; r < M; ++r) __builtin_memcpy(&sum[r], c + r * ldc, sizeof(Row));
  }
  for (int64_t p = 0; p < k; ++p) {
    Row row;
    __builtin_memcpy(&row, b.data + p * b.row, sizeof(Row));
    for (int r = 0; r < M; ++r) sum[r] += a.data[r * a.row + p * a.col] * row;
  }
  for (int r = 0; r < M; ++r) __builtin_memcpy(c + r * ldc, &sum[r], sizeof(Row));
}

template <class T, int W>
void columns(int64_t m, int64_t k, Strided<T> a, Strided<T> b, bool add, T* c, int64_t ldc) {
  auto rows = [&]<int M>(Strided<T> part, T* to) { block<T, W, M>(k, part, b, add, to, ldc); };
  auto at_row = [&](int64_t i) { return Strided<T>{a.data + i * a.row, a.row, a.col, 0}; };
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) rows.template operator()<kRows>(at_row(i), c + i * ldc);
  for (; i + 2 <= m; i += 2) rows.template operator()<2>(at_row(i), c + i * ldc);
  if (i < m) rows.template operator()<1>(at_row(i), c + i * ldc);
}

// A column, where the sums run along rows of a: many rows at once would have to be gathered.
template <class T>
void column(int64_t m, int64_t k, Strided<T> a, const T* b, bool add, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    const T* row = a.data + i * a.row;
    T sums[4] = {};
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      for (int l = 0; l < 4; ++l) sums[l] += row[p + l] * b[p + l];
    }
    T sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
    for (; p < k; ++p) sum += row[p] * b[p];
    c[i * ldc] = add ? c[i * ldc] + sum : sum;
  }
}

template <class T>
void product(int64_t m, int64_t n, int64_t k, const Strided<T>& a, const Strided<T>& given,
             bool add, T* c, int64_t ldc) {
  T turned[kSmallSide * kSmallSide];
  Strided<T> b = given;
  if (b.col != 1 && n > 1) {  // then b.row is 1
    constexpr auto bytes = static_cast<int64_t>(sizeof(T));
    const Transpose transpose = bytes == 4 ? transpose_kernels.bytes4 : transpose_kernels.bytes8;
    transpose(reinterpret_cast<char*>(turned), n * bytes, reinterpret_cast<const char*>(b.data),
              b.col * bytes, n, k);
    b = {turned, n, 1, 0};
  }
  int64_t j = 0;
  auto run = [&]<int W>() {
    for (; j + W <= n; j += W)
      columns<T, W>(m, k, a, {b.data + j, b.row, b.col, 0}, add, c + j, ldc);
  };
  run.template operator()<kLanes<T>>();
  if constexpr (kLanes<T> > 8) run.template operator()<8>();
  if constexpr (kLanes<T> > 4) run.template operator()<4>();
  if constexpr (kLanes<T> > 2) run.template operator()<2>();
  if (j < n && a.col == 1 && given.row == 1 && k >= kLongSum)
    return column(m, k, a, given.data + j * given.col, add, c + j, ldc);
  run.template operator()<1>();
}

// Tiny matrices, as many as a register has lanes, side by side.
template <class T>
void abreast(int64_t count, int64_t m, int64_t n, int64_t k, Strided<T> a, Strided<T> b, bool add,
             T* c, int64_t ldc, int64_t c_step) {
  typename Vector<T>::type left[kTinySide * kTinySide], right[kTinySide * kTinySide];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p)
      gather(left[i * k + p], a.data + i * a.row + p * a.col, a.next, count);
  }
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j)
      gather(right[p * n + j], b.data + p * b.row + j * b.col, b.next, count);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T* to = c + i * ldc + j;
      typename Vector<T>::type sum = {};
      if (add) gather(sum, to, c_step, count);
      for (int64_t p = 0; p < k; ++p) sum += left[i * k + p] * right[p * n + j];
      scatter(sum, to, c_step, count);
    }
  }
}

template <class T>
void products(int64_t count, int64_t m, int64_t n, int64_t k, const Strided<T>& first_a,
              const Strided<T>& first_b, bool add, T* c, int64_t ldc, int64_t c_step) {
  if (count == 1) return product(m, n, k, first_a, first_b, add, c, ldc);
  Strided<T> a = first_a, b = first_b;
  const bool tiny = m <= kTinySide && n <= kTinySide && k <= kTinySide;
  const int64_t together = tiny ? kLanes<T> : 1;
  for (int64_t i = 0; i < count; i += together) {
    if (tiny) abreast(count - i, m, n, k, a, b, add, c, ldc, c_step);
    else product(m, n, k, a, b, add, c, ldc);
    a.data += together * a.next;
    b.data += together * b.next;
    c += together * c_step;
  }
}

}  // namespace

extern constinit const SmallGemmKernels small_gemm_kernels = {products<float>, products<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
