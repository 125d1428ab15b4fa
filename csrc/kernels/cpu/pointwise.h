// Running contiguous inner loops over tensors of any layout and dtype.
//
// The loops come in one table per instruction set (kernels/cpu/simd), chosen when the library
// loads. This header is included there too: it holds plain data types only.
#pragma once

#include <stdint.h>

namespace taeda {

struct Plan;

// out[i] = f(in[0][i], in[1][i], ...) for n contiguous elements. `out` may be one of the inputs.
using Loop = void (*)(void* out, const void* const* in, int64_t n);

// The loops of one functor. Indices of dtypes follow the enum in base/dtype.h.
struct Loops {
  Loop f[12] = {};          // by the dtype that operands are computed in; null where not supported
  uint8_t result[12] = {};  // the dtype of what f[i] writes
  Loop d[4][2] = {};  // gradient of operand k in float32 and float64; inputs: g, operands, result
  bool bool_first = false;  // the first operand is a bool whatever the dtype (where)
};

// dst[j * d1 + i * d0] = src[j * s1 + i * s0], i < n0, j < n1, with conversion. Strides in bytes.
using Cast = void (*)(char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1,
                      int64_t n0, int64_t n1);

struct LoopTable {
  const Loops* arithmetic;
  const Loops* rounding;
  const Loops* logic;
  const Loops* math;
  const Loops* special;
  const Loops* bessel;
  const Loops* polynomial;
  const Loops* activation;
  const Loops* loss;
  const Cast (*cast)[12];  // cast[to][from]
};

const LoopTable& loops();

// Runs `loop` over the plan's operands (0 is the output). `compute` says in which dtype the loop
// takes each of them; those that are strided, broadcast or of another dtype pass through small
// buffers.
void run_loop(const Plan& plan, Loop loop, const uint8_t* compute);

// dst = src, elementwise, with conversion: operand 0 from operand 1.
void run_copy(const Plan& plan);

}  // namespace taeda
