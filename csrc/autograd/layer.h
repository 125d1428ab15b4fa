// What the dispatch layers share.
#pragma once

#include "ops/core/op.h"

namespace taeda {

template <class F> void each_tensor(std::span<const Value> args, F&& f) {
  for (const Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      if (t->defined()) f(*t);
    } else if (auto* l = std::get_if<TensorList>(&v)) {
      for (const Tensor& t : *l) {
        if (t.defined()) f(t);
      }
    }
  }
}

template <class F> void each_result(Value& result, F&& f) {
  if (auto* t = std::get_if<Tensor>(&result)) {
    if (t->defined()) f(*t, 0u);
  } else if (auto* l = std::get_if<TensorList>(&result)) {
    for (uint32_t i = 0; i < l->size(); ++i) {
      if ((*l)[i].defined()) f((*l)[i], i);
    }
  }
}

// The tensor that an in-place op changes. (Ops without a trailing `_` may change buffers on the
// side, like running statistics; those have no history.)
inline const Tensor* changed_tensor(const Call& c) {
  if (c.op.mutated < 0 || c.op.name.back() != '_') return nullptr;
  auto* t = std::get_if<Tensor>(&c.args[static_cast<size_t>(c.op.mutated)]);
  return t && t->defined() ? t : nullptr;
}

// A kernel may return an argument as it is.
inline bool is_argument(const Tensor& t, std::span<const Value> args) {
  bool found = false;
  each_tensor(args, [&](const Tensor& a) { found |= a.is(t); });
  return found;
}

// In-place form of a composite op: the layers see the ops that it calls and the copy into `self`.
Value run_composite_in_place(Call& c);

struct Geometry {
  Dims sizes, strides;
  int64_t offset;
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.offset()) {}
  bool operator==(const Geometry&) const = default;
};

}  // namespace taeda
