// Convolution of single planes, each with a kernel of its own: see ConvLoops.
#pragma once

#include <cstdint>

#include "kernels/cpu/conv/simd/conv.h"

namespace taeda::cpu::simd::TAEDA_ISA {

template <class T>
void plane(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh, T* y);
template <class T>
void plane_grad_input(const Window& w, const T* gy, const T* weight, T* memory, bool fresh, T* gx);

// The same where strips of rows are the faster way; false where they are not.
template <class T>
bool strips_plane(const Window& w, const T* x, const T* weight, T start, T* memory, bool fresh,
                  T* y);
template <class T>
bool strips_plane_grad_input(const Window& w, const T* gy, const T* weight, T* memory, bool fresh,
                             T* gx);

template <class T> bool fits_plane_weight(const Window& w);
template <class T>
void plane_grad_weight(const Window& w, const T* x, const T* gy, T* memory, bool fresh, T* sums);

}  // namespace taeda::cpu::simd::TAEDA_ISA
