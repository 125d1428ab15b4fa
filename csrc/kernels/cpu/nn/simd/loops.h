// A table of loops for float and for double.
#pragma once

#include <cstdint>

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <template <class> class Loops> struct ForFloats {
  Loops<float> f32;
  Loops<double> f64;
};

}  // namespace taeda::cpu::simd
