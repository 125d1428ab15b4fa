// Mixed precision: dividing the gradients of a scaled loss by the scale, and the scale's next
// value.
#include "kernels/amp.h"

#include <vector>

#include "ops/core/op.h"
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

void check_number(const char* who, const Tensor& t, const char* name, DType dtype, Device device) {
  check(t.numel() == 1 && t.dtype() == dtype && t.device() == device, who, "(): ", name,
        " must be one ", taeda::name(dtype), " on ", to_string(device), ", got ", t.numel(), " of ",
        taeda::name(t.dtype()), " on ", to_string(t.device()));
}

Value unscale(Call& c) {
  constexpr const char* who = "_amp_foreach_non_finite_check_and_unscale_";
  const auto& grads = std::get<TensorList>(c.args[0]);
  const auto &found = std::get<Tensor>(c.args[1]), &factor = std::get<Tensor>(c.args[2]);
  if (grads.empty()) return {};
  const Device device = grads[0].device();
  check_number(who, found, "found_inf", DType::Float32, device);
  check_number(who, factor, "inv_scale", DType::Float32, device);
  for (const Tensor& g : grads) {
    check(g.device() == device, who, "(): gradients must be on one device, got ", to_string(device),
          " and ", to_string(g.device()));
    check(is_floating(g.dtype()) && itemsize(g.dtype()) > 1, who, "(): gradients of dtype ",
          name(g.dtype()), " cannot be unscaled");
  }
  std::vector<Tensor> parts;
  std::vector<ScaledGradient> memory;
  for (const Tensor& g : grads) {
    const bool dense = is_dense_nonoverlapping(g.sizes(), g.strides());
    Tensor part = g;
    if (!dense) copy_into(part = empty(g.sizes(), g.options()), g);
    memory.push_back({part.data(), part.numel(), part.dtype()});
    parts.push_back(std::move(part));
  }
  kernels<AmpKernels>(device).unscale(memory, factor.data_as<float>(), found.data_as<float>());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!parts[i].is(grads[i])) copy_into(grads[i], parts[i]);
    grads[i].bump_version();
  }
  found.bump_version();
  return {};
}

Tensor update(const Tensor& self, const Tensor& growth_tracker, const Tensor& found_inf,
              double growth, double backoff, int64_t interval) {
  constexpr const char* who = "_amp_update_scale_";
  check_number(who, self, "self", DType::Float32, self.device());
  check_number(who, growth_tracker, "growth_tracker", DType::Int32, self.device());
  check_number(who, found_inf, "found_inf", DType::Float32, self.device());
  kernels<AmpKernels>(self.device())
      .update(self.data_as<float>(), growth_tracker.data_as<int32_t>(), found_inf.data_as<float>(),
              {growth, backoff, static_cast<int32_t>(interval)});
  return self;
}

const Define kAmpOps[] = {
    {"_amp_foreach_non_finite_check_and_unscale_(grads: Tensor[], found_inf: Tensor, inv_scale: "
     "Tensor) -> None",
     "Multiplies gradients by `inv_scale`, and sets `found_inf` to 1 where one was infinite or "
     "nan.",
     raw_kernel(unscale),
     {}},
    {"_amp_update_scale_(self!: Tensor, growth_tracker!: Tensor, found_inf: Tensor, "
     "scale_growth_factor: float, scale_backoff_factor: float, growth_interval: int) -> Tensor",
     "The scale of losses after a step: lower where an overflow was found, higher after "
     "`growth_interval` steps without.",
     kernel(update),
     {}},
};

}  // namespace
}  // namespace taeda
