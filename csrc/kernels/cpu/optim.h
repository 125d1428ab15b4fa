// One optimizer step over one parameter's memory. Contiguous arrays of n elements; float or double.
#pragma once

#include <cstdint>

namespace taeda::cpu {

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize, first;  // first: the momentum buffer has no value yet
};

struct AdamStep {
  double lr, beta1, beta2, weight_decay, eps;
  double step;                        // the number of this step, counted from 1
  bool amsgrad, maximize, decoupled;  // decoupled: AdamW's weight decay
};

template <class T> struct OptimLoops {
  void (*sgd)(const SgdStep& s, T* param, const T* grad, T* momentum,
              int64_t n);  // momentum: null where unused
  void (*adam)(const AdamStep& s, T* param, const T* grad, T* mean, T* square, T* max_square,
               int64_t n);
};

struct OptimTable {
  OptimLoops<float> f32;
  OptimLoops<double> f64;
};

const OptimTable& optim_table();

}  // namespace taeda::cpu
