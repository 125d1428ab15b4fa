#pragma once

#include "kernels/cpu/conv/simd/conv.h"

namespace taeda::cpu::simd::TAEDA_ISA {

// See PlaneLoops.
template <class T>
void plane_grad_weight(const Window& w, const T* x, const T* gy, T* memory, bool fresh, T* sums);

}  // namespace taeda::cpu::simd::TAEDA_ISA
