// Conversions between all dtypes, over two strided dimensions.
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/simd/half.h"
#include "kernels/functors/complex.h"

namespace taeda::TAEDA_ISA {
namespace {

namespace simd = cpu::simd::TAEDA_ISA;
using simd::BF16;
using simd::F16;
using simd::is_half;

struct Two64 {
  uint64_t v[2];
};
struct Bool {
  uint8_t byte;  // not 0: true, whatever it is
};

template <class D, class S> FN D cast_one(S s) {
  if constexpr (same_type<D, S>) return s;
  else if constexpr (same_type<S, Bool>) return cast_one<D>(static_cast<uint8_t>(s.byte != 0));
  else if constexpr (is_half<S>) return cast_one<D>(simd::widen(s));
  else if constexpr (is_complex<S>) {
    if constexpr (is_complex<D>)
      return D(static_cast<decltype(D::re)>(s.re), static_cast<decltype(D::re)>(s.im));
    else if constexpr (same_type<D, bool>) return s.re != 0 || s.im != 0;
    else return cast_one<D>(s.re);
  } else if constexpr (is_complex<D>) return D(cast_one<decltype(D::re)>(s));
  else if constexpr (is_half<D>) return simd::narrow<D>(cast_one<float>(s));
  else if constexpr (same_type<D, bool>) return s != S(0);
  else if constexpr (is_float<S> && is_integer<D> && sizeof(D) < 4)
    return static_cast<D>(static_cast<int32_t>(s));
  else return static_cast<D>(s);
}

// Whether there are vectors of D made of vectors of S, of which at least one is a half type. Other
// conversions are vectorised by the compiler.
template <class T> constexpr bool in_vectors = is_half<T> || is_float<T>;
template <class D, class S>
constexpr bool vectorised =
    !same_type<D, S> && in_vectors<D> && in_vectors<S> && (is_half<D> || is_half<S>);

// Copies bytes that lie elsewhere. Where they lie just before the place they go to, as far as the
// low 12 bits of addresses tell, every load seems to wait for a store that was made shortly
// before; from the end to the beginning none does.
FN void copy_line(char* __restrict d, const char* __restrict s, int64_t bytes) {
  const auto ahead = (reinterpret_cast<uintptr_t>(d) - reinterpret_cast<uintptr_t>(s)) & 4095;
  if (ahead != 0 && ahead < 512 && bytes >= 1024) {
    for (; bytes >= 64; bytes -= 64) {
      __builtin_memcpy(d + bytes - 64, s + bytes - 64, 64);
      __asm__ volatile("" ::: "memory");  // keeps the compiler from making one memcpy of all
    }
  }
  __builtin_memcpy(d, s, static_cast<size_t>(bytes));
}

template <class D, class S> FN void contiguous(D* __restrict d, const S* __restrict s, int64_t n) {
  int64_t i = 0;
  if constexpr (same_type<D, S>) {
    return copy_line(reinterpret_cast<char*>(d), reinterpret_cast<const char*>(s),
                     n * int64_t{sizeof(D)});
  } else if constexpr (vectorised<D, S>) {
    constexpr bool wide = same_type<D, double> || same_type<S, double>;
    constexpr int64_t lanes = wide ? simd::kLanes<double> : simd::kLanes<float>;
    for (; i + lanes <= n; i += lanes) simd::store_as(d + i, simd::load_as<float, lanes>(s + i));
  }
  for (; i < n; ++i) d[i] = cast_one<D>(s[i]);
}

template <class D> [[gnu::noinline]] void fill(D* d, D v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) d[i] = v;
}

template <class D, class S>
void cast(char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1, int64_t n0,
          int64_t n1) {
  constexpr int64_t size = sizeof(D);
  for (int64_t j = 0; j < n1; ++j, dst += d1, src += s1) {
    D* __restrict d = reinterpret_cast<D*>(dst);
    const S* __restrict s = reinterpret_cast<const S*>(src);
    if (d0 == size && s0 == int64_t{sizeof(S)}) {
      contiguous(d, s, n0);
      continue;
    }
    if (d0 == size && s0 == 0) {
      fill(d, cast_one<D>(*s), n0);
      continue;
    }
    if constexpr (same_type<D, S>) {
      if (d0 == size && s0 == -size) {
        for (int64_t i = 0; i < n0; ++i) d[i] = s[-i];
        continue;
      }
      if (d0 == size && s0 == 2 * size) {
        for (int64_t i = 0; i < n0; ++i) d[i] = s[2 * i];
        continue;
      }
    }
    for (int64_t i = 0; i < n0; ++i) {
      *reinterpret_cast<D*>(dst + i * d0) = cast_one<D>(*reinterpret_cast<const S*>(src + i * s0));
    }
  }
}

template <class D, class S> constexpr Cast pick() {  // equal dtypes only move bytes
  if constexpr (same_type<D, bool> && same_type<S, Bool>) return &cast<uint8_t, uint8_t>;
  else if constexpr (!same_type<D, S>) return &cast<D, S>;
  else if constexpr (sizeof(D) == 1) return &cast<uint8_t, uint8_t>;
  else if constexpr (sizeof(D) == 2) return &cast<uint16_t, uint16_t>;
  else if constexpr (sizeof(D) == 4) return &cast<int32_t, int32_t>;
  else if constexpr (sizeof(D) == 8) return &cast<int64_t, int64_t>;
  else return &cast<Two64, Two64>;
}

// Loads from memory are faster beside non-temporal stores of 32 bytes than of 64 or 16.
constexpr int64_t kStoreBytes = simd::kRegisterBytes < 32 ? simd::kRegisterBytes : 32;

// N elements of S at s as D, whose elements are float or the bits of a half type.
template <class D, int64_t N, class S> FN auto load_converted(const S* s) {
  if constexpr (N > simd::kLanes<float>)
    return simd::concat(load_converted<D, N / 2>(s), load_converted<D, N / 2>(s + N / 2));
  else if constexpr (is_half<D>) return simd::narrow_bits<D>(simd::load_as<float, N>(s));
  else return simd::load_as<D, N>(s);
}

// With non-temporal stores, one cache line after another.
template <class D, class S> void cast_streamed(void* dst, const void* src, int64_t n) {
  using Element = simd::ElementOf<decltype(load_converted<D, 4>(static_cast<const S*>(src)))>;
  constexpr int64_t item = sizeof(D), line = simd::kCacheLine / item, lanes = kStoreBytes / item,
                    bytes = line * int64_t{sizeof(S)}, ahead = 4096;
  auto* d = static_cast<D*>(dst);
  auto* s = static_cast<const S*>(src);
  int64_t i = 0;
  for (; i + line <= n; i += line) {
    simd::prefetch<3>(reinterpret_cast<const char*>(s + i) + ahead, bytes);
    for (int64_t k = 0; k < line; k += lanes)
      simd::stream(reinterpret_cast<Element*>(d + i + k), load_converted<D, lanes>(s + i + k));
  }
  contiguous(d + i, s + i, n - i);
  simd::stream_fence();
}

}  // namespace

#define TAEDA_ROW(D)                                                  \
  {pick<D, Bool>(),    pick<D, uint8_t>(),        pick<D, int8_t>(),  \
   pick<D, int16_t>(), pick<D, int32_t>(),        pick<D, int64_t>(), \
   pick<D, F16>(),     pick<D, BF16>(),           pick<D, float>(),   \
   pick<D, double>(),  pick<D, Complex<float>>(), pick<D, Complex<double>>()}
extern const Cast casts[kComputed][kComputed] = {
    TAEDA_ROW(bool),    TAEDA_ROW(uint8_t),        TAEDA_ROW(int8_t),
    TAEDA_ROW(int16_t), TAEDA_ROW(int32_t),        TAEDA_ROW(int64_t),
    TAEDA_ROW(F16),     TAEDA_ROW(BF16),           TAEDA_ROW(float),
    TAEDA_ROW(double),  TAEDA_ROW(Complex<float>), TAEDA_ROW(Complex<double>)};
#undef TAEDA_ROW
extern const StreamedCasts streamed_casts{{cast_streamed<F16, float>, cast_streamed<BF16, float>},
                                          {cast_streamed<float, F16>, cast_streamed<float, BF16>}};

}  // namespace taeda::TAEDA_ISA
