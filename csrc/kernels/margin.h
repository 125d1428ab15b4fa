// Losses that ask for a margin between the scores x (rows, classes) of right and of wrong classes.
// A term that is NaN counts as 0.
#pragma once

#include "kernels/kernels.h"
#include "kernels/loss.h"

namespace taeda {

struct MarginShape {
  int64_t rows, classes;
};

// One right class t for each row: the terms are max(0, margin - x[t] + x[c]) of the others, squared
// or not, times weight[t] where there are weights.
template <class T> struct OneRightClass {
  const int64_t* target;
  const T* weight;  // may be null
  T margin;
  bool squared;
};

template <class T> struct MarginKernels {  // T: float, double
  // The sum of each row's terms over the number of classes, or the mean or sum of those.
  KernelFn<void(const MarginShape& s, Reduction reduction, const T* x,
                const OneRightClass<T>& right, T* loss)>
      one_right;
  // gx from the gradient of each row's loss, g times `scale`; `g` moves by g_step.
  KernelFn<void(const MarginShape& s, const T* g, int64_t g_step, double scale, const T* x,
                const OneRightClass<T>& right, T* gx)>
      one_right_backward;

  // Any number of right classes: `target` (rows, classes) names them, up to the first -1 of a row.
  // The terms are max(0, 1 - x[right] + x[wrong]).
  KernelFn<void(const MarginShape& s, Reduction reduction, const T* x, const int64_t* target,
                T* loss)>
      many_right;
  KernelFn<void(const MarginShape& s, const T* g, int64_t g_step, double scale, const T* x,
                const int64_t* target, T* gx)>
      many_right_backward;

  static const MarginKernels cpu;
};

}  // namespace taeda
