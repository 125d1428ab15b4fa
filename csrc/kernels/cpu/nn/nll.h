// Negative log-likelihood of class indices: x is (batch, classes, inner), target (batch, inner). T:
// float or double.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct NllShape {
  int64_t batch, classes, inner, ignore_index;
};

// Returns the first target that is neither a class nor ignore_index, or ignore_index where all are
// good.
int64_t bad_target(const NllShape& s, const int64_t* target);
template <class T> struct Nll {
  // loss[i] = -weight[t] * x[t], 0 where ignored. `weight` may be null (ones).
  static void nll_each(const NllShape& s, const T* x, const int64_t* target, const T* weight,
                       T* loss);
  // The sum of those losses and of the weights they count with.
  static void nll_total(const NllShape& s, const T* x, const int64_t* target, const T* weight,
                        double* loss, double* total);
  // gx (zeros on entry): -weight[t] * scale * g at each target; `g` moves by g_step (0: one
  // gradient for all).
  static void nll_backward(const NllShape& s, const T* g, int64_t g_step, double scale,
                           const int64_t* target, const T* weight, T* gx);

  // Cross entropy of logits x (batch, classes), inner = 1. `stats` has two numbers for each row:
  // its largest element m, and the sum of exp(x - m). The loss of a row is -weight[t]
  // log(softmax(x)[t]).
  static void entropy_stats(const NllShape& s, const T* x, double* stats);
  static void entropy_losses(const NllShape& s, const T* x, const double* stats,
                             const int64_t* target, const T* weight, double* loss,
                             double* total_weight);
  // gx of every row; g and scale as in nll_backward.
  static void entropy_backward(const NllShape& s, const T* g, int64_t g_step, double scale,
                               const T* x, const double* stats, const int64_t* target,
                               const T* weight, T* gx);
};

}  // namespace taeda::cpu
