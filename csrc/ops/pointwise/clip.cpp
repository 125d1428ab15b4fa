// Gradient clipping: one call for all tensors of a model.
#include "ops/core/tensor_ops.h"

namespace taeda {
namespace {

Tensor total_norm(const TensorList& tensors, double norm_type) {
  check<ValueError>(!tensors.empty(), "_total_norm(): expected at least one tensor");
  TensorList norms;
  norms.reserve(tensors.size());
  for (const Tensor& t : tensors) norms.push_back(op<"linalg_vector_norm">(t, Scalar(norm_type)));
  if (norms.size() == 1) return norms[0];
  return op<"linalg_vector_norm">(op<"stack">(norms, int64_t(0)), Scalar(norm_type));
}

void scale_all(const TensorList& tensors, const Tensor& factor) {
  check(factor.numel() == 1, "_scale_all_(): factor must have one element, got shape ",
        to_string(factor.sizes()));
  // Gradients that are small enough are not touched, where to know that is not to wait for a
  // device.
  if (factor.device().type == DeviceType::CPU && factor.item().to<double>() == 1.0) return;
  for (const Tensor& t : tensors) op<"mul_">(t, factor);
}

void clamp_all(const TensorList& tensors, double limit) {
  for (const Tensor& t : tensors) op<"clamp_">(t, Scalar(-limit), Scalar(limit));
}

const Define clip_ops[] = {
    {"_total_norm(tensors: Tensor[], norm_type: float) -> Tensor",
     "The norm of all elements of several tensors, as if they were one vector.",
     kernel(total_norm),
     {.forms = 0, .composite = true}},
    {"_scale_all_(tensors: Tensor[], factor: Tensor) -> None",
     "Multiplies several tensors by one number, in place.",
     kernel(scale_all),
     {.forms = 0, .composite = true}},
    {"_clamp_all_(tensors: Tensor[], limit: float) -> None",
     "Limits every element of several tensors to [-limit, limit], in place.",
     kernel(clamp_all),
     {.forms = 0, .composite = true}},
};

}  // namespace
}  // namespace taeda
