// Matrix products of integers, which wrap around.
#pragma once

#include <cstdint>
#include <type_traits>

namespace taeda::cpu::simd {

// What products of T are computed with: of bytes only the low bits of sums in 16 bits are wanted.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) <= 2, uint16_t,
                                    std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

template <class U> struct IntegerLoops {
  int64_t rows, cols;  // of one product

  // c[r * cols + j] = sum over p < k of a[p * rows + r] * b[p * cols + j].
  void (*product)(int64_t k, const U* a, const U* b, U* c);
};

struct IntegerKernels {
  IntegerLoops<uint16_t> u16;
  IntegerLoops<uint32_t> u32;
  IntegerLoops<uint64_t> u64;
  // The sum over p < k of a[p] * b[p].
  template <class T> using Dot = Wrapping<T> (*)(int64_t k, const T* a, const T* b);
  Dot<int8_t> dot_i8;
  Dot<uint8_t> dot_u8;
  Dot<int16_t> dot_i16;
  Dot<int32_t> dot_i32;
  Dot<int64_t> dot_i64;
  // c[j] = the sum over p < k of a[p * a_step] * b[p * ldb + j], for j < n.
  template <class T>
  using Row = void (*)(int64_t k, int64_t n, const T* a, int64_t a_step, const T* b, int64_t ldb,
                       T* c);
  Row<int8_t> row_i8;
  Row<uint8_t> row_u8;
  Row<int16_t> row_i16;
  Row<int32_t> row_i32;
  Row<int64_t> row_i64;
};

namespace v2 {
extern const IntegerKernels integer_kernels;
}
namespace v3 {
extern const IntegerKernels integer_kernels;
}
namespace v4 {
extern const IntegerKernels integer_kernels;
}
namespace base {
extern const IntegerKernels integer_kernels;
}

}  // namespace taeda::cpu::simd
