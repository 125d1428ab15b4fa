// Optimizer steps: one call updates every parameter of a group.
#include "kernels/cpu/optim.h"

#include <array>

#include "base/thread_pool.h"
#include "ops/op.h"
#include "ops/tensor_ops.h"

namespace taeda {
namespace {

constexpr int64_t kGrain = 1 << 15;

// What a step works on: the parameter, its gradient, its state. Null where a state is not used.
using Operands = std::array<const Tensor*, 5>;

void check_same(const char* what, size_t i, const Tensor& param, const Tensor& other) {
  check(same(param.sizes(), other.sizes()), what, "(): parameter ", i, " has shape ",
        to_string(param.sizes()), " but its gradient or state has shape ",
        to_string(other.sizes()));
  check(param.device() == other.device(), what, "(): parameter ", i, " is on ",
        to_string(param.device()), " but its gradient or state is on ", to_string(other.device()));
}

// Checks every parameter before the first is changed, so that a step is taken whole or not at all.
// A list of states that is empty is not used.
void check_all(const char* what, const TensorList& params, const TensorList& grads,
               std::initializer_list<const TensorList*> states) {
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& param = params[i];
    check(is_floating(param.dtype()), what, "(): parameter ", i, " has dtype ", name(param.dtype()),
          "; only real floating-point parameters can be updated");
    check(!param.is_meta(), what, "(): parameter ", i, " is on the meta device and has no values");
    check_same(what, i, param, grads[i]);
    check(is_floating(grads[i].dtype()), what, "(): the gradient of parameter ", i, " has dtype ",
          name(grads[i].dtype()), "; expected a real floating-point dtype");
    for (const TensorList* list : states) {
      if (!list->empty()) check_same(what, i, param, (*list)[i]);
    }
  }
}

// Whether `t` can be walked beside `like` element by element, in memory order.
bool lies_like(const Tensor& t, const Tensor& like) {
  if (like.is_contiguous()) return t.is_contiguous();
  return same(t.strides(), like.strides()) && is_dense_nonoverlapping(t.sizes(), t.strides());
}

// Calls step(tag, pointers, count) on the operands' memory, in parallel over large parameters. What
// is not of the compute type, or not laid out as the parameter is, is worked on as a copy and then
// written back.
template <class F> void update(const Operands& operands, F&& step) {
  const Tensor& param = *operands[0];
  DType compute = param.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  bool dense = param.dtype() == compute && is_dense_nonoverlapping(param.sizes(), param.strides());
  std::array<Tensor, 5> copies;
  std::array<void*, 5> data{};
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k]) continue;
    const Tensor& t = *operands[k];
    if (dense && t.dtype() == compute && lies_like(t, param)) {
      data[k] = t.data();
      continue;
    }
    copies[k] = dense ? empty_strided(param.sizes(), param.strides(), {compute, param.device()})
                      : empty(param.sizes(), {compute, param.device()});
    copy_into(copies[k], t);
    data[k] = copies[k].data();
  }
  visit_floating(compute, "optimizer step", [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(param.numel(), kGrain, [&](int64_t begin, int64_t end) {
      step(
          tag, [&](size_t k) { return data[k] ? static_cast<T*>(data[k]) + begin : nullptr; },
          end - begin);
    });
  });
  for (size_t k = 0; k < copies.size(); ++k) {
    if (k != 1 && copies[k].defined()) copy_into(*operands[k], copies[k]);
  }
  param.bump_version();
}

void fused_sgd(const TensorList& params, const TensorList& grads, const TensorList& buffers,
               double lr, double momentum, double dampening, double weight_decay, bool nesterov,
               bool maximize, bool is_first_step) {
  check<ValueError>(
      grads.size() == params.size() && (buffers.empty() || buffers.size() == params.size()),
      "_fused_sgd_(): got ", params.size(), " params, ", grads.size(), " grads and ",
      buffers.size(), " momentum buffers");
  check_all("_fused_sgd_", params, grads, {&buffers});
  cpu::SgdStep s{lr, momentum, dampening, weight_decay, nesterov, maximize, is_first_step};
  const auto& table = cpu::optim_table();
  for (size_t i = 0; i < params.size(); ++i) {
    update({&params[i], &grads[i], buffers.empty() ? nullptr : &buffers[i]},
           [&](auto tag, auto at, int64_t n) {
             if constexpr (std::is_same_v<typename decltype(tag)::type, float>)
               table.f32.sgd(s, at(0), at(1), at(2), n);
             else table.f64.sgd(s, at(0), at(1), at(2), n);
           });
  }
}

void fused_adam(const TensorList& params, const TensorList& grads, const TensorList& means,
                const TensorList& squares, const TensorList& max_squares, const TensorList& steps,
                double lr, double beta1, double beta2, double weight_decay, double eps,
                bool amsgrad, bool maximize, bool decoupled) {
  size_t n = params.size();
  check<ValueError>(grads.size() == n && means.size() == n && squares.size() == n &&
                        steps.size() == n && max_squares.size() == (amsgrad ? n : 0),
                    "_fused_adam_(): every list must have one tensor for each of the ", n,
                    " params");
  check_all("_fused_adam_", params, grads, {&means, &squares, &max_squares});
  for (const Tensor& step : steps) {
    check<TypeError>(step.dtype() == DType::Float32 && step.numel() == 1 && !step.is_meta(),
                     "_fused_adam_(): steps must be zero-dim float32 tensors");
  }
  const auto& table = cpu::optim_table();
  for (size_t i = 0; i < n; ++i) {
    float step = *steps[i].data_as<float>() + 1;
    cpu::AdamStep s{lr, beta1, beta2, weight_decay, eps, step, amsgrad, maximize, decoupled};
    update({&params[i], &grads[i], &means[i], &squares[i], amsgrad ? &max_squares[i] : nullptr},
           [&](auto tag, auto at, int64_t len) {
             if constexpr (std::is_same_v<typename decltype(tag)::type, float>)
               table.f32.adam(s, at(0), at(1), at(2), at(3), at(4), len);
             else table.f64.adam(s, at(0), at(1), at(2), at(3), at(4), len);
           });
    *steps[i].data_as<float>() = step;
  }
}

const Define optim_ops[] = {
    {"_fused_sgd_(params: Tensor[], grads: Tensor[], momentum_buffers: Tensor[], *, lr: float, "
     "momentum: float, "
     "dampening: float, weight_decay: float, nesterov: bool, maximize: bool, is_first_step: bool) "
     "-> None",
     "One SGD step on every parameter. `momentum_buffers` is empty where momentum is 0.",
     kernel(fused_sgd),
     {.forms = 0}},
    {"_fused_adam_(params: Tensor[], grads: Tensor[], exp_avgs: Tensor[], exp_avg_sqs: Tensor[], "
     "max_exp_avg_sqs: "
     "Tensor[], steps: Tensor[], *, lr: float, beta1: float, beta2: float, weight_decay: float, "
     "eps: float, amsgrad: "
     "bool, maximize: bool, decoupled: bool) -> None",
     "One Adam step on every parameter; `decoupled` is AdamW's weight decay. Counts `steps` up.",
     kernel(fused_adam),
     {.forms = 0}},
};

}  // namespace
}  // namespace taeda
