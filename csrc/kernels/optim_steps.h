// The numbers of an optimizer's step, in plain types that any instruction set may include.
#pragma once

#include <cstdint>

namespace taeda {

enum class Rule : uint8_t {
  Sgd,
  Adam,
  Adamax,
  NAdam,
  RAdam,
  RmsProp,
  Adagrad,
  Adadelta,
  Rprop,
  Asgd,
  Count
};

constexpr int kMostOperands = 5;  // param, grad and up to three states

// The numbers of a step: what every rule shares.
struct StepBase {
  double lr;
  double weight_decay = 0;  // an L2 penalty: added to the gradient
  double shrink = 1;        // decoupled weight decay: the parameter's factor
  bool maximize = false;
};

// Each rule's numbers, with its states in the order in which they follow param and grad: first
// those that are always there, then those that may be null.
struct SgdStep : StepBase {  // momentum
  static constexpr Rule rule = Rule::Sgd;
  static constexpr int states = 0, optional = 1;
  double momentum, dampening;
  bool nesterov, first;  // first: the momentum has no value yet
};
struct AdamStep : StepBase {  // mean, square, largest square (AMSGrad)
  static constexpr Rule rule = Rule::Adam;
  static constexpr int states = 2, optional = 1;
  double beta1, beta2, eps;
  double root_correction;  // what the root of the mean square is divided by
};
struct AdamaxStep : StepBase {  // mean, largest
  static constexpr Rule rule = Rule::Adamax;
  static constexpr int states = 2, optional = 0;
  double beta1, beta2, eps;
};
struct NAdamStep : StepBase {  // mean, square
  static constexpr Rule rule = Rule::NAdam;
  static constexpr int states = 2, optional = 0;
  double beta1, beta2, eps;
  double mean_lr;  // the rate of the mean; lr is that of the gradient
  double root_correction;
};
struct RAdamStep : StepBase {  // mean, square
  static constexpr Rule rule = Rule::RAdam;
  static constexpr int states = 2, optional = 0;
  double beta1, beta2, eps;
  double rectifier;  // 0 while the variance is not known well enough to scale by
};
struct RmsPropStep : StepBase {  // square, momentum, mean
  static constexpr Rule rule = Rule::RmsProp;
  static constexpr int states = 1, optional = 2;
  double alpha, momentum, eps;
};
struct AdagradStep : StepBase {  // sum of squares
  static constexpr Rule rule = Rule::Adagrad;
  static constexpr int states = 1, optional = 0;
  double eps;
};
struct AdadeltaStep : StepBase {  // square, square of the steps
  static constexpr Rule rule = Rule::Adadelta;
  static constexpr int states = 2, optional = 0;
  double rho, eps;
};
struct RpropStep : StepBase {  // previous gradient, step sizes
  static constexpr Rule rule = Rule::Rprop;
  static constexpr int states = 2, optional = 0;
  double slower, faster, least, most;
};
struct AsgdStep : StepBase {  // average of the parameter
  static constexpr Rule rule = Rule::Asgd;
  static constexpr int states = 1, optional = 0;
  double mu;
};

}  // namespace taeda
