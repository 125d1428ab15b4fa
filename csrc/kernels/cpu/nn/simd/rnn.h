// Loops over one row of a recurrent cell.
#pragma once

#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu::simd {

// A null b stands for zeros.
template <class T> struct RnnLoops {
  void (*elman)(bool relu, int64_t n, const T* x, const T* g, const T* b, T* act);
  void (*lstm)(int64_t n, const T* x, const T* g, const T* b, T* c, T* acts, T* h);
  void (*gru)(int64_t n, const T* x, const T* g, const T* b, T* h, T* acts, T* extra);
  void (*elman_backward)(bool relu, int64_t n, const T* act, const T* dh, T* dx);
  void (*lstm_backward)(int64_t n, const T* acts, const T* c, const T* before, const T* dh, T* dc,
                        T* dx);
  // dh becomes the part of the gradient that does not pass through the gates.
  void (*gru_backward)(int64_t n, const T* acts, const T* extra, const T* before, T* dh, T* dx,
                       T* dg);
  void (*lstm_output)(int64_t n, const T* acts, const T* c, T* h);
};

TAEDA_TABLES(ForFloats<RnnLoops>, rnn_kernels)

}  // namespace taeda::cpu::simd
