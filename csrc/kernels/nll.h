// Negative log-likelihood of class indices: x is (batch, classes, inner), target (batch, inner).
#pragma once

#include "kernels/kernels.h"
#include "kernels/loss.h"

namespace taeda {

struct NllShape {
  int64_t batch, classes, inner, ignore_index;
};

template <class T> struct NllKernels {  // T: float, double
  // The first target that is neither a class nor ignore_index, or ignore_index where all are good.
  KernelFn<int64_t(const NllShape& s, const int64_t* target)> bad_target;
  // The loss of each target, -weight[t] * x[t], 0 where ignored; or their sum, or that over the sum
  // `total` of the weights they count with. `weight` may be null (ones).
  KernelFn<void(const NllShape& s, Reduction reduction, const T* x, const int64_t* target,
                const T* weight, T* loss, double* total)>
      nll;
  // gx (zeros on entry): -weight[t] * g at each target, over `total` unless that is null; `g` moves
  // by g_step (0: one gradient for all).
  KernelFn<void(const NllShape& s, const T* g, int64_t g_step, const double* total,
                const int64_t* target, const T* weight, T* gx)>
      nll_backward;

  // Cross entropy of logits x (batch, classes), inner = 1. `stats` gets two numbers for each row:
  // its largest element m, and the sum of exp(x - m). The loss of a row is -weight[t]
  // log(softmax(x)[t]), reduced as above.
  KernelFn<void(const NllShape& s, Reduction reduction, const T* x, const int64_t* target,
                const T* weight, T* loss, double* stats, double* total)>
      entropy;
  // gx of every row; g and total as in nll_backward.
  KernelFn<void(const NllShape& s, const T* g, int64_t g_step, const double* total, const T* x,
                const double* stats, const int64_t* target, const T* weight, T* gx)>
      entropy_backward;

  // Whether all of n numbers lie in [0, 1].
  KernelFn<bool(int64_t n, const T* x)> are_probabilities;

  static const NllKernels cpu;
};

}  // namespace taeda
