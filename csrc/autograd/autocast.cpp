#include "autograd/autocast.h"

#include <unordered_map>
#include <vector>

#include "autograd/meta.h"
#include "ops/core/op.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

// A parameter and its conversion. The version tells whether it has been changed since.
struct Converted {
  Tensor source, result;
  uint32_t version;
};

struct State {
  Autocast now;
  std::unordered_map<const TensorImpl*, Converted> cache;
};
State& state() {
  static thread_local State s;
  return s;
}

// Disables the layer for the ops that it calls itself.
struct Suspended {
  Suspended() { modes.always &= ~uint32_t{kAutocastLayer}; }
  ~Suspended() { modes.always |= kAutocastLayer; }
};

bool is_eligible(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::Float64;
}

Tensor converted(const Tensor& t, DType dtype) {
  if (!is_eligible(t) || t.dtype() == dtype) return t;
  State& s = state();
  const bool keep = s.now.cache && modes.grad && dtype == s.now.dtype &&
                    t.dtype() == DType::Float32 && requires_grad(t) && is_leaf(t);
  if (!keep) return to(t, dtype);
  auto found = s.cache.find(t.impl());
  if (found != s.cache.end() && found->second.version == t.version()) return found->second.result;
  Tensor result = to(t, dtype);
  s.cache.insert_or_assign(t.impl(), Converted{t, result, t.version()});
  return result;
}

template <class F> void each_tensor(std::span<Value> args, F&& f) {
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      *t = f(*t);
    } else if (auto* list = std::get_if<TensorList>(&v)) {
      for (Tensor& t : *list) t = f(t);
    }
  }
}

DType target(Precision precision, std::span<Value> args) {
  if (precision == Precision::Float32) return DType::Float32;
  DType dtype = state().now.dtype;
  if (precision == Precision::Widest) {
    each_tensor(args, [&](const Tensor& t) {
      if (is_eligible(t) && t.dtype() == DType::Float32) dtype = DType::Float32;
      return t;
    });
  }
  return dtype;
}

Value autocast_layer(Call& c, uint32_t inner) {
  const Precision precision = c.op.traits.autocast;
  if (precision == Precision::AsGiven || c.out.defined() || c.op.inplace_form)
    return call_inner(c, inner);
  std::vector<Value> args(c.args.begin(), c.args.end());
  const Suspended suspended;
  const DType dtype = target(precision, args);
  each_tensor(args, [&](const Tensor& t) { return converted(t, dtype); });
  Call changed{c.op, args, {}, c.grad};
  return call_inner(changed, inner);
}

[[maybe_unused]] const bool installed = (set_layer(kAutocastLayer, autocast_layer), true);

}  // namespace

Autocast autocast() { return state().now; }

void set_autocast(Autocast next) {
  check(is_half(next.dtype), "set_autocast: the dtype must be float16 or bfloat16, got ",
        name(next.dtype));
  state().now = next;
  if (next.enabled) modes.always |= kAutocastLayer;
  else modes.always &= ~uint32_t{kAutocastLayer};
}

void clear_autocast_cache() { state().cache.clear(); }

}  // namespace taeda
