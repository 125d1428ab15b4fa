#include "autograd/autocast.h"

#include <algorithm>
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
  AutocastState now;
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

// Tensors of the other kind of device stay as they are.
bool is_eligible(const Tensor& t, DeviceType device) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::Float64 &&
         (t.device().type == DeviceType::CUDA) == (device == DeviceType::CUDA);
}

Tensor converted(const Tensor& t, DType dtype, DeviceType device) {
  if (!is_eligible(t, device) || t.dtype() == dtype) return t;
  State& s = state();
  const bool keep = s.now.cache && modes.grad && dtype == s.now.of(device).dtype &&
                    t.dtype() == DType::Float32 && requires_grad(t) && is_leaf(t);
  if (!keep) return to(t, dtype);
  auto found = s.cache.find(t.impl());
  if (found != s.cache.end() && found->second.version == t.version()) return found->second.result;
  Tensor result = to(t, dtype);
  s.cache.insert_or_assign(t.impl(), Converted{t, result, t.version()});
  return result;
}

template <class F> void replace_tensors(std::span<Value> args, F&& f) {
  for (Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      *t = f(*t);
    } else if (auto* list = std::get_if<TensorList>(&v)) {
      for (Tensor& t : *list) t = f(t);
    }
  }
}

DType target(Precision precision, std::span<Value> args, DeviceType device) {
  if (precision == Precision::Float32) return DType::Float32;
  DType dtype = state().now.of(device).dtype;
  if (precision == Precision::Widest) {
    replace_tensors(args, [&](const Tensor& t) {
      if (is_eligible(t, device) && t.dtype() == DType::Float32) dtype = DType::Float32;
      return t;
    });
  }
  return dtype;
}

// CUDA where a tensor is there, else the CPU.
DeviceType device_of(std::span<const Value> args) {
  const auto there = [](const Tensor& t) {
    return t.defined() && t.device().type == DeviceType::CUDA;
  };
  for (const Value& v : args) {
    const auto* t = std::get_if<Tensor>(&v);
    const auto* list = std::get_if<TensorList>(&v);
    if ((t && there(*t)) || (list && std::ranges::any_of(*list, there))) return DeviceType::CUDA;
  }
  return DeviceType::CPU;
}

Value autocast_layer(Call& c, uint32_t inner) {
  if (c.out.defined() || c.op.inplace_form) return call_inner(c, inner);
  const DeviceType device = device_of(c.args);
  if (!state().now.of(device).enabled) return call_inner(c, inner);
  const bool cuda = device == DeviceType::CUDA;
  check(!cuda || c.op.name != "binary_cross_entropy",
        "binary_cross_entropy(): probabilities under autocast lose what their logarithms need; use "
        "binary_cross_entropy_with_logits, or nn.BCEWithLogitsLoss, on what the sigmoid was given");
  const Precision precision =
      c.op.traits.autocast.on(cuda ? AutocastRule::Cuda : AutocastRule::Cpu);
  if (precision == Precision::AsGiven) return call_inner(c, inner);
  std::vector<Value> args(c.args.begin(), c.args.end());
  const Suspended suspended;
  const DType dtype = target(precision, args, device);
  replace_tensors(args, [&](const Tensor& t) { return converted(t, dtype, device); });
  Call changed{c.op, args, {}, c.grad};
  return call_inner(changed, inner);
}

[[maybe_unused]] const bool autocast_installed = (set_layer(kAutocastLayer, autocast_layer), true);

}  // namespace

AutocastState autocast() { return state().now; }

void set_autocast(const AutocastState& next) {
  for (const Autocast& a : {next.cpu, next.cuda}) {
    check(is_half(a.dtype) || a.dtype == DType::Float32,
          "set_autocast: the dtype must be float16, bfloat16 or float32, got ", name(a.dtype));
  }
  state().now = next;
  if (next.cpu.enabled || next.cuda.enabled) modes.always |= kAutocastLayer;
  else modes.always &= ~uint32_t{kAutocastLayer};
}

void clear_autocast_cache() { state().cache.clear(); }

}  // namespace taeda
