// Running contiguous inner loops over tensors of any layout and dtype.
//
// The loops come in one table per instruction set (kernels/cpu/simd), chosen when the library
// loads. This header is included there too: it holds plain data types only.
#pragma once

#include <stdint.h>

#include "kernels/cpu/simd/pick.h"
#include "kernels/pointwise.h"

namespace taeda {

// out[i] = f(in[0][i], in[1][i], ...) for n contiguous elements. `out` may be one of the inputs.
using Loop = void (*)(void* out, const void* const* in, int64_t n);

// The same for `rows` rows, where operand k is one number for each row where bit k of `scalars` is
// set. From row to row the output and the operands are `steps` bytes apart. Numbers among float16
// and bfloat16 operands are float32.
using ScalarLoop = void (*)(void* out, const void* const* in, unsigned scalars, int64_t n,
                            int64_t rows, const int64_t* steps);
struct ScalarForm {
  ScalarLoop loop = nullptr;
  uint8_t masks = 0;  // bit s is set where the loop takes `scalars` = s
};

// Indices of dtypes follow the enum in base/dtype.h. The first of them have loops of their own.
inline constexpr int kDTypes = 20, kComputed = 12, kFirstFloat = 6;

// The loops of one functor.
struct Loops : FunctorTypes {
  Loop f[kDTypes] = {};  // by the dtype that operands are computed in; null where not supported
  Loop d[4][2] = {};  // gradient of operand k in float32 and float64; inputs: g, operands, result
  ScalarForm scalar[4] = {};  // f of float16, bfloat16, float32 and float64 operands
  Loop streamed = nullptr;    // f of one operand in float32, by non-temporal stores
  bool heavy = false, slow = false, heavy_derivatives = false;  // as functors.h says
};

// dst[j * d1 + i * d0] = src[j * s1 + i * s0], i < n0, j < n1, with conversion. Strides in bytes.
using Cast = void (*)(char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1,
                      int64_t n0, int64_t n1);

// Conversion of n contiguous elements, to where a cache line begins, by non-temporal stores.
using StreamedCast = void (*)(void* dst, const void* src, int64_t n);
struct StreamedCasts {
  StreamedCast to_half[2], from_half[2];  // float32 to and from float16 and bfloat16
};

using LoopList = const Loops* const*;
struct LoopTable {
  LoopList arithmetic, rounding, logic, math, special, bessel, polynomial, activation, loss;
  const Cast (*cast)[kComputed];  // cast[to][from]
  const StreamedCasts* streamed;
};

namespace cpu::simd {
TAEDA_TABLES(LoopTable, loop_table)
}  // namespace cpu::simd

const LoopTable& loops();

// The dtype of so many bytes, 1, 2, 4, 8 or 16, as which elements are moved.
uint8_t dtype_of_size(int64_t bytes);

// As Cast, for any two dtypes.
void cast_stored(uint8_t to, uint8_t from, char* dst, int64_t d0, int64_t d1, const char* src,
                 int64_t s0, int64_t s1, int64_t n0, int64_t n1);  // one of them is stored
inline void cast_rows(uint8_t to, uint8_t from, char* dst, int64_t d0, int64_t d1, const char* src,
                      int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
  if (to < kComputed && from < kComputed) loops().cast[to][from](dst, d0, d1, src, s0, s1, n0, n1);
  else cast_stored(to, from, dst, d0, d1, src, s0, s1, n0, n1);
}

// Operand 0 of a plan from operand 1, with conversion.
void run_copy(const Plan& plan);

}  // namespace taeda
