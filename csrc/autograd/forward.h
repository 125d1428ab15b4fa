// Forward mode: at a level, a tensor may carry a tangent, and ops on it give results that carry
// theirs. There is one level at a time in a thread.
#pragma once

#include "ops/op.h"

namespace taeda {

// A tangent as its tensor's AutogradMeta keeps it. It counts at its level alone, and the end of the
// level takes its value away, however long the tensor lives.
struct Tangent {
  Tensor value;
  uint64_t level;
  Tangent *next = nullptr, *previous = nullptr;  // of all tangents there are

  Tangent(Tensor value, uint64_t level);
  ~Tangent();
  Tangent(const Tangent&) = delete;
  Tangent& operator=(const Tangent&) = delete;
};

bool forward_level();  // whether this thread is at a level
void enter_forward_level();
void exit_forward_level();

// The tangent of `t`, which that of its base may have to be asked for; undefined where it has none.
Tensor tangent_of(const Tensor& t);
// A view of `primal` that carries `tangent`, of the same sizes.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
// `dual` without its tangent: a tensor on the same memory, with the same history.
Tensor primal_of(const Tensor& dual);
// `t` carries `tangent` from now on, laid out as `t` is where it is not yet.
void set_tangent(const Tensor& t, const Tensor& tangent);
// The same after an in-place change of `t`: what shares memory with `t` sees the new tangent, too.
// An undefined one stands for zeros.
void change_tangent(const Tensor& t, const Tensor& tangent);
// `to` is another handle on the value of `from`.
void share_tangent(const Tensor& from, const Tensor& to);
void check_no_tangent(const Tensor& t, const Op& op);  // of an out= argument or what goes there

struct TangentsOff {  // RAII: ops called meanwhile do not look at tangents
  TangentsOff() : saved_(modes.always) { modes.always &= ~uint32_t{kForwardLayer}; }
  ~TangentsOff() { modes.always = saved_; }
  TangentsOff(const TangentsOff&) = delete;
  TangentsOff& operator=(const TangentsOff&) = delete;

 private:
  uint32_t saved_;
};

}  // namespace taeda
