// Connectionist temporal classification (Graves et al. 2006): sums over all alignments of a target
// with a sequence.
#pragma once

#include <cstdint>

#include "kernels/kernels.h"

namespace taeda {

// One batch. The states of a target of length s are blank, label, blank, ..., label, blank: 2 s
// + 1.
struct CtcShape {
  int64_t steps, batch, classes, blank;
  int64_t width;           // states that `alpha` has room for
  const int64_t* targets;  // all labels
  // Host memory, one number for each target, read before the kernel returns.
  const int64_t* target_begin;  // where its labels begin
  const int64_t* target_lengths;
  const int64_t* input_lengths;
};

template <class T> struct CtcKernels {  // T: float, double
  // The first label that is no class, or the blank where all are.
  KernelFn<int64_t(const CtcShape& s)> bad_label;
  // log_probs: (steps, batch, classes). alpha (batch, steps, width): the log probability of all
  // ways to each state; loss (batch), 0 instead of infinity where `zero_infinity`.
  KernelFn<void(const CtcShape& s, const T* log_probs, bool zero_infinity, T* alpha, T* loss)>
      forward;
  // grad (steps, batch, classes), zeroed before: by log_probs that come out of log_softmax, times
  // `upstream` (batch). `skip_infinite`: a target of infinite loss gets none.
  KernelFn<void(const CtcShape& s, const T* log_probs, const T* alpha, const T* loss,
                const T* upstream, bool skip_infinite, T* grad)>
      backward;

  static const CtcKernels cpu;
};

}  // namespace taeda
