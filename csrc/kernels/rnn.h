// A recurrent cell run over a whole sequence, and back, on plain memory.
//
// Sequences lie packed: step t has sizes[t] rows (never more than the step before it), one after
// the other. The state has `batch` rows; a step changes the first sizes[t] of them. Whichever way
// the sequence is read, a row's state is therefore its initial one until its first step, and its
// final one after its last.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

enum class RnnCell : uint8_t { Tanh, Relu, Lstm, Gru };

constexpr int64_t gate_count(RnnCell cell) {
  return cell == RnnCell::Lstm ? 4 : cell == RnnCell::Gru ? 3 : 1;
}

struct RnnShape {
  RnnCell cell;
  bool reverse;    // read from the last step to the first
  int64_t batch;   // rows of the state
  int64_t hidden;  // H
  int64_t state;   // P: the size of h, which is H unless an LSTM projects it
  // Host memory, read before the kernel returns.
  const int64_t* sizes;    // rows of each step
  const int64_t* offsets;  // the first row of each step
  int64_t steps;

  int64_t gates() const { return gate_count(cell) * hidden; }
  int64_t rows() const { return steps ? offsets[steps - 1] + sizes[steps - 1] : 0; }  // in all
};

template <class T> struct RnnWeights {
  const T* w;  // gates x P
  const T* b;  // gates, or null
  const T* r;  // P x H, or null
};

// x: rows x gates, the input's part of the gates. h (batch x P) and c (batch x H, LSTM only) hold
// the initial state and then the final one. For the backward pass are kept: output (rows x P), acts
// (rows x gates, after their functions), and extra (rows x H): an LSTM's c, or what a GRU's new
// gate takes from the state.
template <class T> struct RnnForward {
  const T* x;
  T *h, *c, *output, *acts, *extra;
};

// The gradients. grad (rows x P) may be null; dh and dc hold the gradients of the final state and
// then those of the initial one. dx, dg: rows x gates, of the input's and of the state's part (the
// same memory unless a GRU). before: rows x P, the h that each step started from. Where h is
// projected, dp (rows x P) is its gradient and raw (rows x H) what was projected.
template <class T> struct RnnBackward {
  const T *h0, *c0, *output, *acts, *extra, *grad;
  T *dh, *dc, *dx, *dg, *before, *dp, *raw;
};

template <class T> struct RnnKernels {  // T: float, double
  KernelFn<void(const RnnShape& s, const RnnWeights<T>& w, const RnnForward<T>& f)> forward;
  KernelFn<void(const RnnShape& s, const RnnWeights<T>& w, const RnnBackward<T>& b)> backward;

  static const RnnKernels cpu;
};

}  // namespace taeda
