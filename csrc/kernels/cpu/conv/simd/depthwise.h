// The inner loops of depthwise convolution in planes: one plane with one kernel, with neighbours of
// a row across the registers.
#pragma once

#include "kernels/cpu/conv/simd/conv.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

template <class T> struct PlaneLoops {
  int64_t lanes;  // of a register
  // Elements of memory that each of these needs for a plane. The memory is fresh, or as another
  // plane of the same window has left it in the same function.
  int64_t (*memory)(const Window& w);
  void (*forward)(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh,
                  T* y);
  void (*grad_input)(const Window& w, const T* gy, const T* weight, T* memory, bool fresh, T* gx);
  // sums[tap][lane] += the products of one plane; the lanes are to be added up.
  void (*grad_weight)(const Window& w, const T* x, const T* gy, T* memory, bool fresh, T* sums);
};

struct PlaneKernels {
  PlaneLoops<float> f32;
  PlaneLoops<double> f64;
};

TAEDA_TABLES(PlaneKernels, plane_kernels)

}  // namespace taeda::cpu::simd
