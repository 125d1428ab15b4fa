// Forward mode: at a level, a tensor may carry a tangent, and ops on it give results that carry
// theirs. There is one level at a time in a thread.
#pragma once

#include "ops/core/op.h"

namespace taeda {

// A tangent as its tensor's AutogradMeta keeps it. It is valid only at its level; the value is
// dropped when the level ends, even if the tensor lives on.
struct Tangent {
  Tensor value;
  uint64_t level;
  Tangent *next = nullptr, *previous = nullptr;  // list of all live tangents

  Tangent(Tensor value, uint64_t level);
  ~Tangent();
  Tangent(const Tangent&) = delete;
  Tangent& operator=(const Tangent&) = delete;
};

bool forward_level();  // whether this thread is at a level
void enter_forward_level();
void exit_forward_level();

// The tangent of `t`, possibly derived from that of its base; undefined if it has none.
Tensor tangent_of(const Tensor& t);
// A view of `primal` that carries `tangent`, of the same sizes.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// `dual` without its tangent: a tensor on the same memory, with the same history.
Tensor primal_of(const Tensor& dual);
// Sets the tangent of `t`, copied into the layout of `t` if necessary.
void set_tangent(const Tensor& t, const Tensor& tangent);
// The same after an in-place change of `t`: tensors that share memory with `t` see the new tangent
// too. An undefined one stands for zeros.
void change_tangent(const Tensor& t, const Tensor& tangent);
// Gives `to`, another handle on the value of `from`, the same tangent.
void share_tangent(const Tensor& from, const Tensor& to);
void check_no_tangent(const Tensor& t, const Op& op);  // for out= arguments

struct TangentsOff {  // RAII: ops called meanwhile ignore tangents
  TangentsOff() : saved_(modes.always) { modes.always &= ~uint32_t{kForwardLayer}; }
  ~TangentsOff() { modes.always = saved_; }
  TangentsOff(const TangentsOff&) = delete;
  TangentsOff& operator=(const TangentsOff&) = delete;

 private:
  uint32_t saved_;
};

}  // namespace taeda
