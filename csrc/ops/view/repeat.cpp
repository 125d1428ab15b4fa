// Repetition: repeat, tile, repeat_interleave.
#include "base/checked.h"
#include "kernels/index.h"
#include "kernels/pointwise.h"
#include "ops/core/memory.h"
#include "ops/core/shape_util.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

// Sizes with each repeat count in front of its dimension: (r0, s0, r1, s1, ...).
Dims interleaved(DimsRef repeats, DimsRef sizes) {
  Dims out;
  size_t lead = repeats.size() - sizes.size();
  for (size_t i = 0; i < repeats.size(); ++i) {
    out.push_back(repeats[i]);
    out.push_back(i < lead ? 1 : sizes[i - lead]);
  }
  return out;
}
Tensor repeat_op(const Tensor& x, DimsRef repeats) {
  check(
      repeats.size() >= x.sizes().size(),
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  size_t lead = repeats.size() - x.sizes().size();
  Dims sizes(repeats), strides;
  for (size_t i = 0; i < repeats.size(); ++i) {
    sizes[i] = checked_mul(repeats[i], i < lead ? 1 : x.sizes()[i - lead]);
    strides.push_back(0);
    strides.push_back(i < lead ? 1 : x.strides()[i - lead]);
  }
  Tensor out = empty(sizes, x.options());
  if (x.is_meta() || out.numel() == 0) return out;
  Dims both = interleaved(repeats, x.sizes());
  const Tensor to = raw_view(out, both, contiguous_strides(both), out.offset());
  kernels<PointwiseKernels>(x.device()).copy(Plan(to, x, strides, 0));
  return out;
}
void repeat_backward(Backward& b) {
  const auto& repeats = b.arg<Dims>(1);
  const Dims& in = b.sizes(0);
  if (numel_of(b.grad().sizes()) == 0) return b.set(0, zeros(in, b.options(0)));
  Dims dims;
  for (size_t i = 0; i < repeats.size(); ++i) dims.push_back(static_cast<int64_t>(2 * i));
  Tensor g = reshape(b.grad(), interleaved(repeats, in));
  b.set(0, reshape(dims.empty() ? g : sum(g, dims), in));
}
Tensor tile_op(const Tensor& x, DimsRef dims) {
  Dims repeats(dims);
  while (repeats.size() < x.sizes().size()) repeats.insert(0, 1);
  return op<"repeat">(x, repeats);
}

// repeats [2, 0, 1] -> [0, 0, 2]
Tensor repeat_index(const Tensor& repeats, std::optional<int64_t> output_size) {
  check(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  check(repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32,
        "repeats has to be Long or Int tensor");
  check(!repeats.is_meta() || output_size,
        "repeat_interleave: a meta tensor of repeats needs output_size");
  if (repeats.is_meta()) return empty(Dims{*output_size}, repeats.options());
  const Tensor counts = raw_contiguous(raw_cast(repeats, DType::Int64));
  int64_t total = 0;
  for (int64_t n : host_values<int64_t>(counts)) {
    check(n >= 0, "repeats can not be negative");
    total = checked_add(total, n);
  }
  check(!output_size || *output_size == total, "allocated size does not match required size");
  const Tensor out = empty(Dims{total}, counts.options());
  kernels<IndexKernels>(out.device())
      .repeat(counts.data_as<int64_t>(), counts.numel(), out.data_as<int64_t>());
  return raw_cast(out, repeats.dtype());
}
Tensor repeat_interleave_index(const Tensor& repeats, std::optional<int64_t> output_size) {
  return op<"_repeat_index">(repeats, output_size);
}
Tensor repeat_interleave_tensor(const Tensor& x, const Tensor& repeats, std::optional<int64_t> dim,
                                std::optional<int64_t> output_size) {
  Tensor input = dim ? x : reshape(x, Dims{-1});
  check(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
  if (input.dim() == 0) input = reshape(input, Dims{1});
  int64_t d = wrap_dim(dim.value_or(0), input.dim()), size = input.size(d);
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.numel() == 1 && size != 1))
    counts = expand(reshape(repeats, Dims{1}), Dims{size});
  check(counts.numel() == size,
        "repeats must have the same size as input along dim, but got repeats.size(0) = ",
        counts.numel(), " and input.size(", d, ") = ", size);
  return op<"index_select">(input, d, op<"_repeat_index">(counts, output_size));
}
Tensor repeat_interleave_int(const Tensor& x, int64_t repeats, std::optional<int64_t> dim,
                             std::optional<int64_t> output_size) {
  check(repeats >= 0, "Repeats must be non-negative");
  Tensor input = dim ? x : reshape(x, Dims{-1});
  if (input.dim() == 0) input = reshape(input, Dims{1});
  int64_t d = wrap_dim(dim.value_or(0), input.dim());
  const int64_t total = checked_mul(repeats, input.size(d));
  check(!output_size || *output_size == total, "repeat_interleave: Invalid output_size, expected ",
        total, " but got ", output_size.value_or(0));
  Dims wide(input.sizes()), sizes(input.sizes());
  wide.insert(static_cast<size_t>(d) + 1, repeats);
  sizes[static_cast<size_t>(d)] = total;
  return reshape(clone(expand(unsqueeze(input, d + 1), wide)), sizes);
}

const Define repeat_ops[] = {
    {"repeat(self: Tensor, repeats: int[]) -> Tensor",
     "A copy in which `self` stands repeats[i] times along dimension i; dimensions may be added in "
     "front.",
     kernel(repeat_op),
     {.backward = repeat_backward, .forms = kMethod}},
    {"tile(self: Tensor, dims: int[]) -> Tensor",
     "`repeat`, with ones put in front of `dims` where it is too short.",
     kernel(tile_op),
     {.composite = true}},
    {"_repeat_index(repeats: Tensor, output_size: int? = None) -> Tensor",
     "Index i, repeats[i] times, for every i.",
     kernel(repeat_index),
     {.non_differentiable = 1}},
    {"repeat_interleave(self: Tensor, repeats: int, dim: int? = None, *, output_size: int? = None) "
     "-> Tensor",
     "Every element `repeats` times in a row along `dim`, or of the flattened tensor.",
     kernel(repeat_interleave_int),
     {.composite = true}},
    {"repeat_interleave(self: Tensor, repeats: Tensor, dim: int? = None, *, output_size: int? = "
     "None) -> Tensor",
     "Element i of `dim` repeats[i] times in a row.",
     kernel(repeat_interleave_tensor),
     {.composite = true}},
    {"repeat_interleave(repeats: Tensor, *, output_size: int? = None) -> Tensor",
     "The indices 0, 1, ..., index i repeats[i] times.",
     kernel(repeat_interleave_index),
     {.forms = kFunction, .composite = true}},
};

}  // namespace
}  // namespace taeda
