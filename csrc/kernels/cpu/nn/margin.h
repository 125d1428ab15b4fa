// Losses that ask for a margin between the scores x (rows, classes) of right and of wrong classes.
// A term that is NaN counts as 0. T: float or double.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct MarginShape {
  int64_t rows, classes;
};

// One right class t for each row: the terms are max(0, margin - x[t] + x[c]) of the others, squared
// or not, times weight[t] where there are weights.
template <class T> struct OneRight {
  const int64_t* target;
  const T* weight;  // may be null
  T margin;
  bool squared;
};
template <class T> struct Margins {
  // The sum of each row's terms over the number of classes.
  static void one_right_losses(const MarginShape& s, const T* x, const OneRight<T>& right,
                               double* loss);
  // gx from the gradient of each row's loss, g times `scale`; `g` moves by g_step.
  static void one_right_gradient(const MarginShape& s, const T* g, int64_t g_step, double scale,
                                 const T* x, const OneRight<T>& right, T* gx);

  // Any number of right classes: `target` (rows, classes) names them, up to the first -1 of a row.
  // The terms are max(0, 1 - x[right] + x[wrong]).
  static void many_right_losses(const MarginShape& s, const T* x, const int64_t* target,
                                double* loss);
  static void many_right_gradient(const MarginShape& s, const T* g, int64_t g_step, double scale,
                                  const T* x, const int64_t* target, T* gx);
};

}  // namespace taeda::cpu
