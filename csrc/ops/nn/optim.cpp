// Optimizer steps: one call updates every parameter of a group.
#include "kernels/optim.h"

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ops/core/memory.h"
#include "ops/core/op.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

constexpr size_t kGradient = OptimUpdate::kGradient;

// The lists of a parameter group; null: states that the optimizer does not use. `numbers` are
// zero-dim tensors, the first of them a count of steps.
struct Group {
  const std::string& what;
  const TensorList& params;
  const TensorList& grads;
  std::array<const TensorList*, OptimUpdate::kOperands - 2> states{};
  std::array<const TensorList*, 3> numbers{};
  bool may_count_on_device = false;
  Tensor rate;        // on the device: what the learning rate is multiplied by
  Tensor grad_scale;  // what the gradients are to be divided by
  Tensor found_inf;   // whether one has overflowed, so that there is no step

  // Whether the kernel counts the steps, in the device's memory.
  bool counts_on_device() const {
    return numbers[0] && !numbers[0]->empty() && numbers[0]->front().is_off_host() &&
           kernels<OptimKernels>(params[0].device()).counted_step;
  }
  // Whether the kernel reads what a scaled loss brings. What counts steps on the host reads it
  // here.
  bool scales_on_device() const {
    if (!grad_scale.defined() && !found_inf.defined()) return false;
    if (params.empty() || !params[0].is_off_host() || (numbers[0] && !counts_on_device()))
      return false;
    return static_cast<bool>(kernels<OptimKernels>(params[0].device()).counted_step);
  }
};

void check_like(const std::string& what, size_t i, const Tensor& param, const Tensor& other,
                const char* role) {
  check(same(param.sizes(), other.sizes()), what, "(): parameter ", i, " has shape ",
        to_string(param.sizes()), " but its ", role, " has shape ", to_string(other.sizes()));
  check(param.device() == other.device(), what, "(): parameter ", i, " is on ", param.device(),
        " but its ", role, " is on ", other.device());
  check(
      param.dtype() == other.dtype() || (is_floating(param.dtype()) && is_floating(other.dtype())),
      what, "(): parameter ", i, " has dtype ", name(param.dtype()), " but its ", role,
      " has dtype ", name(other.dtype()));
}

// Where steps are counted on the device, and the rate is.
void check_counts(const Group& g) {
  const Device device = g.params[0].device();
  const bool there = g.counts_on_device();
  check(!there || g.may_count_on_device, g.what, "(): steps must be counted on the CPU");
  check(!g.rate.defined() || there, g.what, "(): a rate on the device needs `steps` there");
  if (!there) return;
  const auto check_number = [&](const Tensor& t, const char* role) {
    check(t.device() == device && t.dtype() == DType::Float32 && t.numel() == 1, g.what,
          "(): ", role, " must be one float32 on ", device, ", got ", t.numel(), " of ",
          name(t.dtype()), " on ", t.device());
  };
  for (const TensorList* list : g.numbers) {
    if (!list) continue;
    for (const Tensor& number : *list) check_number(number, "a number of a step");
  }
  if (g.rate.defined()) check_number(g.rate, "rate");
}

// What a scaled loss brings is where the parameters are.
void check_scaling(const Group& g) {
  const Device device = g.params[0].device();
  for (const auto& [number, role] :
       {std::pair(&g.grad_scale, "grad_scale"), std::pair(&g.found_inf, "found_inf")}) {
    if (!number->defined()) continue;
    check(number->device() == device && number->dtype() == DType::Float32 && number->numel() == 1,
          g.what, "(): ", role, " must be one float32 on ", device, ", got ", number->numel(),
          " of ", name(number->dtype()), " on ", number->device());
  }
}

// Checks every parameter before the first is changed, so that a failed step leaves everything
// unchanged.
void check_group(const Group& g) {
  const size_t n = g.params.size();
  auto check_length = [&](const TensorList& list) {
    check<ValueError>(list.size() == n, g.what,
                      "(): every list must have one tensor for each of the ", n, " params, got ",
                      list.size());
  };
  check_length(g.grads);
  for (const TensorList* list : g.states) {
    if (list) check_length(*list);
  }
  for (const TensorList* list : g.numbers) {
    if (!list) continue;
    check_length(*list);
    for (const Tensor& t : *list) {
      check<TypeError>(
          is_floating(t.dtype()) && !is_half(t.dtype()) && t.numel() == 1 && !t.is_meta(), g.what,
          "(): counts of steps must be zero-dim float32 tensors");
    }
  }
  if (n > 0) {
    check_counts(g);
    check_scaling(g);
  }
  for (size_t i = 0; i < n; ++i) {
    const Tensor& param = g.params[i];
    check(is_floating(param.dtype()) || is_complex(param.dtype()), g.what, "(): parameter ", i,
          " has dtype ", name(param.dtype()), "; only floating-point parameters can be updated");
    check(!param.is_meta(), g.what, "(): parameter ", i,
          " is on the meta device and has no values");
    check_like(g.what, i, param, g.grads[i], "gradient");
    check(param.dtype() == g.grads[i].dtype(), g.what, "(): parameter ", i, " has dtype ",
          name(param.dtype()), " but its gradient has dtype ", name(g.grads[i].dtype()));
    for (const TensorList* list : g.states) {
      if (list) check_like(g.what, i, param, (*list)[i], "state");
    }
  }
}

// Whether `t` and `like` have the same dense layout, so that one loop over memory can pair their
// elements.
bool has_same_layout(const Tensor& t, const Tensor& like) {
  if (like.is_contiguous()) return t.is_contiguous();
  return same(t.strides(), like.strides()) && is_dense_nonoverlapping(t.sizes(), t.strides());
}

// A copy of a tensor that is not laid out as its parameter is, and where to write it back, if at
// all.
struct Copy {
  const Tensor* to;
  Tensor values;
};

// Parameter i and what goes with it, its step still to be set. Complex numbers count as pairs of
// real ones.
OptimUpdate update_of(const Group& g, size_t i, std::vector<Copy>& copies) {
  const Tensor& param = g.params[i];
  const bool dense = is_dense_nonoverlapping(param.sizes(), param.strides());
  OptimUpdate u;
  auto take = [&](size_t k, const Tensor& t) {
    const Tensor* from = &t;
    if (!dense || !has_same_layout(t, param)) {
      Tensor copy = dense ? empty_strided(param.sizes(), param.strides(), t.options())
                          : empty(param.sizes(), t.options());
      copy_into(copy, t);
      const bool only_read = k == kGradient && !g.grad_scale.defined();
      from = &copies.emplace_back(only_read ? nullptr : &t, std::move(copy)).values;
    }
    u.data[k] = from->data();
    u.dtypes[k] = to_real(t.dtype());
  };
  take(0, param);
  take(kGradient, g.grads[i]);
  for (size_t k = 0; k < g.states.size(); ++k) {
    if (g.states[k]) take(k + 2, (*g.states[k])[i]);
  }
  u.n = param.numel() * (is_complex(param.dtype()) ? 2 : 1);
  if (g.scales_on_device()) {
    u.grad_scale = memory<const float>(g.grad_scale);
    u.found_inf = memory<const float>(g.found_inf);
  }
  return u;
}

StepNumber read(const Tensor& t) {
  if (t.dtype() == DType::Float64) return {host_value<double>(t), false};
  return {host_value<float>(t)};
}
void write(const Tensor& t, const StepNumber& n) {
  if (!n.changed) return;
  if (n.single) set_host_value(t, static_cast<float>(n.value));
  else set_host_value(t, n.value);
}

// Where the kernel does not: divides the gradients. False where there is no step.
bool unscale(const Group& g) {
  if (g.params.empty() || g.scales_on_device()) return true;
  if (g.found_inf.defined() && host_value<float>(g.found_inf) != 0) return false;
  if (!g.grad_scale.defined()) return true;
  for (const Tensor& grad : g.grads) op<"div_">(grad, g.grad_scale);
  return true;
}

// Updates every parameter of a group; make(state) gives the rule with the numbers of a parameter's
// step.
template <class Make> void step_group(const Group& g, Make&& make) {
  check_group(g);
  const size_t count = g.params.size();
  // Before steps are counted: where the kernel is missing, the CPU counts and makes them.
  const bool there = g.counts_on_device();
  if (count) {
    const OptimKernels& k = kernels<OptimKernels>(g.params[0].device());
    if (!there && !k.step) missing_kernel();
  }
  if (!unscale(g)) return;
  std::vector<Copy> copies;
  std::vector<OptimUpdate> updates;
  updates.reserve(count);
  for (size_t i = 0; i < count; ++i) updates.push_back(update_of(g, i, copies));
  Powers powers;
  for (size_t i = 0; i < count; ++i) {
    StepNumber counter;
    StepState state{powers};
    if (there) {
      state.count = std::numeric_limits<double>::infinity();
      updates[i].count = (*g.numbers[0])[i].data_as<float>();
      updates[i].rate = memory<const float>(g.rate);
    } else if (g.numbers[0]) {
      counter = read((*g.numbers[0])[i]);
      state.count = counter.set(counter.value + 1);
    }
    for (size_t k = 0; k + 1 < g.numbers.size(); ++k) {
      const TensorList* list = g.numbers[k + 1];
      if (!list) continue;
      if (there) updates[i].numbers[k] = (*list)[i].data_as<float>();
      else state.numbers[k] = read((*list)[i]);
    }
    updates[i].step = make(state);
    if (g.numbers[0] && !there) write((*g.numbers[0])[i], counter);
    for (size_t k = 1; k < g.numbers.size(); ++k) {
      if (g.numbers[k] && !there) write((*g.numbers[k])[i], state.numbers[k - 1]);
    }
  }
  if (count) {
    const OptimKernels& k = kernels<OptimKernels>(g.params[0].device());
    there ? k.counted_step(updates) : k.step(updates);
  }
  for (const Copy& copy : copies) {
    if (copy.to) copy_into(*copy.to, copy.values);
  }
  // Elsewhere, an op has divided the gradients.
  const TensorList* const grads =
      g.grad_scale.defined() && g.scales_on_device() ? &g.grads : nullptr;
  for (const TensorList* list : {&g.params, grads, g.states[0], g.states[1], g.states[2]}) {
    if (!list) continue;
    for (const Tensor& t : *list) t.bump_version();
  }
}

// ---- the ops, from their rules ----

template <class Rule> struct StepOp {
  static constexpr RuleInfo kInfo = Rule::info;
  static constexpr int kStates = count_names(kInfo.states), kOptional = count_names(kInfo.optional),
                       kNumbers = count_names(kInfo.numbers),
                       kOptions = 2 + kStates + kOptional + kNumbers;

  static std::string schema() {
    std::string s = str("_fused_", kInfo.name, "_(params: Tensor[], grads: Tensor[]");
    for (std::string_view names : {kInfo.states, kInfo.optional, kInfo.numbers}) {
      while (!names.empty()) {
        const size_t end = std::min(names.find(", "), names.size());
        s += str(", ", names.substr(0, end), ": Tensor[]");
        names.remove_prefix(std::min(end + 2, names.size()));
      }
    }
    return str(s, ", *, ", kInfo.options,
               ", rate: Tensor? = None, grad_scale: Tensor? = None, "
               "found_inf: Tensor? = None) -> None");
  }

  static Value run(Call& c) {
    const auto list = [&](int i) { return &std::get<TensorList>(c.args[static_cast<size_t>(i)]); };
    Group g{c.op.name, *list(0), *list(1), {}, {}, kInfo.on_device, {}, {}, {}};
    Tensor* const last[] = {&g.rate, &g.grad_scale, &g.found_inf};
    for (size_t i = 0; i < 3; ++i) {
      if (const auto* t = std::get_if<Tensor>(&c.args[c.args.size() - 3 + i])) *last[i] = *t;
    }
    for (int k = 0; k < kStates + kOptional; ++k) {
      if (k < kStates || !list(2 + k)->empty()) g.states[static_cast<size_t>(k)] = list(2 + k);
    }
    for (int k = 0; k < kNumbers; ++k)
      g.numbers[static_cast<size_t>(k)] = list(2 + kStates + kOptional + k);
    step_group(g, [&](StepState& s) { return make(&Rule::at, s, c); });
    return {};
  }

 private:
  template <class... Options>
  static Rule make(Rule (*at)(StepState&, Options...), StepState& s, Call& c) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return at(s, Unpack<Options>::get(c.args[kOptions + I])...);
    }(std::index_sequence_for<Options...>{});
  }
};

template <class... Rules> bool register_rules(portable::List<Rules...>) {
  (define(StepOp<Rules>::schema().c_str(), Rules::info.doc, raw_kernel(StepOp<Rules>::run),
          {.forms = kMixed}),  // counts of steps are on the CPU
   ...);
  return true;
}
const bool registered = register_rules(portable::OptimRules{});

}  // namespace
}  // namespace taeda
