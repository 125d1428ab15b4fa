#include "kernels/cpu/gemm/simd/gemm_integer.h"

#include "kernels/cpu/reduce/simd/lanes.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int kTall = kRegister == 64 ? 8 : 4;  // rows of sums, two registers each

template <class U> void product(int64_t k, const U* a, const U* b, U* c) {
  constexpr int64_t lanes = kRegister / sizeof(U);
  typedef U V __attribute__((vector_size(kRegister), aligned(sizeof(U)), may_alias));
  V sum[kTall][2] = {};
  for (int64_t p = 0; p < k; ++p, a += kTall, b += 2 * lanes) {
    const V left = *reinterpret_cast<const V*>(b), right = *reinterpret_cast<const V*>(b + lanes);
    for (int r = 0; r < kTall; ++r) {
      sum[r][0] += left * a[r];
      sum[r][1] += right * a[r];
    }
  }
  for (int r = 0; r < kTall; ++r) {
    *reinterpret_cast<V*>(c + 2 * r * lanes) = sum[r][0];
    *reinterpret_cast<V*>(c + (2 * r + 1) * lanes) = sum[r][1];
  }
}
template <class U> constexpr IntegerLoops<U> loops{kTall, 2 * kRegister / sizeof(U), product<U>};

template <class T> Wrapping<T> dot(int64_t k, const T* a, const T* b) {
  using U = Wrapping<T>;
  U sum = 0;
  for (int64_t p = 0; p < k; ++p)
    sum = static_cast<U>(sum + static_cast<uint64_t>(static_cast<U>(a[p])) * static_cast<U>(b[p]));
  return sum;
}

// Some registers of sums at once.
template <class T, int Many>
void row_part(int64_t k, const T* a, int64_t a_step, const T* b, int64_t ldb, T* c) {
  using U = Wrapping<T>;
  constexpr int64_t lanes = kRegister / sizeof(U);
  typedef T Stored __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T)), may_alias));
  typedef U V __attribute__((vector_size(kRegister)));
  V sum[Many] = {};
  for (int64_t p = 0; p < k; ++p, a += a_step, b += ldb) {
    for (int v = 0; v < Many; ++v)
      sum[v] += __builtin_convertvector(*reinterpret_cast<const Stored*>(b + v * lanes), V) *
                static_cast<U>(*a);
  }
  for (int v = 0; v < Many; ++v)
    *reinterpret_cast<Stored*>(c + v * lanes) = __builtin_convertvector(sum[v], Stored);
}
template <class T>
void row(int64_t k, int64_t n, const T* a, int64_t a_step, const T* b, int64_t ldb, T* c) {
  using U = Wrapping<T>;
  constexpr int64_t lanes = kRegister / sizeof(U);
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) row_part<T, 4>(k, a, a_step, b + j, ldb, c + j);
  for (; j + lanes <= n; j += lanes) row_part<T, 1>(k, a, a_step, b + j, ldb, c + j);
  for (; j < n; ++j) {
    U sum = 0;
    for (int64_t p = 0; p < k; ++p)
      sum = static_cast<U>(sum + static_cast<uint64_t>(static_cast<U>(a[p * a_step])) *
                                     static_cast<U>(b[p * ldb + j]));
    c[j] = static_cast<T>(sum);
  }
}

}  // namespace

extern const IntegerKernels integer_kernels{
    loops<uint16_t>, loops<uint32_t>, loops<uint64_t>, dot<int8_t>, dot<uint8_t>,
    dot<int16_t>,    dot<int32_t>,    dot<int64_t>,    row<int8_t>, row<uint8_t>,
    row<int16_t>,    row<int32_t>,    row<int64_t>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
