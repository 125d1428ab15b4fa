// Reading and writing with tensors as indices: index, index_put.
#include <algorithm>

#include "base/device_runtime.h"
#include "ops/index/plan.h"
#include "ops/pointwise/copy.h"

namespace taeda {
namespace {

// As in PyTorch, indices of the CPU fit tensors of any device.
const TensorList& beside(const Tensor& x, const TensorList& indices, TensorList* moved) {
  const auto near = [&](const Tensor& i) { return !i.defined() || i.device() == x.device(); };
  if (std::all_of(indices.begin(), indices.end(), near)) return indices;
  for (const Tensor& i : indices) {
    if (near(i)) {
      moved->push_back(i);
      continue;
    }
    check(is_host(i.device()),
          "indices should be either on cpu or on the same device as the indexed tensor (",
          x.device(), "), but got one on ", i.device());
    moved->push_back(x.is_off_host() ? raw_to(x.device(), i) : i);
  }
  return *moved;
}

// ---- index ----

// Fast path: elements of a dense vector. Undefined if it does not apply, or if an index is out of
// range (the general path reports that).
Tensor elements_of(const Tensor& x, const TensorList& indices) {
  if (x.dim() != 1 || x.strides()[0] != 1 || x.is_meta() || indices.size() != 1) return {};
  const Tensor& index = indices[0];
  if (!index.defined() || index.dtype() != DType::Int64 || index.is_meta() || !x.numel() ||
      !index.is_contiguous())
    return {};
  Tensor out = empty(index.sizes(), x.options());
  const Tensor kept = kept_inside(index, -x.numel(), x.numel());
  const bool good = kernels<IndexKernels>(x.device())
                        .take_elements(out.data(), x.data(), kept.data_as<int64_t>(), index.numel(),
                                       x.numel(), x.dtype());
  return good ? out : Tensor();
}

// The mask, if a single boolean mask of x's shape indexes a contiguous x; else undefined.
Tensor whole_mask(const Tensor& x, const TensorList& indices) {
  if (indices.size() != 1 || !x.is_contiguous() || x.is_meta() || x.dim() == 0) return {};
  const Tensor& mask = indices[0];
  if (!mask.defined() || mask.dtype() != DType::Bool || mask.is_meta() ||
      !same(mask.sizes(), x.sizes()))
    return {};
  return raw_contiguous(mask);
}

Tensor index_op(const Tensor& x, const TensorList& given) {
  TensorList moved;
  const TensorList& indices = beside(x, given, &moved);
  if (Tensor out = elements_of(x, indices); out.defined()) return out;
  if (const Tensor mask = whole_mask(x, indices); mask.defined()) {
    const IndexKernels& k = kernels<IndexKernels>(x.device());
    const int64_t total = k.count_true(mask.data_as<uint8_t>(), mask.numel());
    Tensor out = empty(Dims{total}, x.options());
    k.take_true(x.data(), mask.data_as<uint8_t>(), mask.numel(), out.data(), total, x.dtype());
    return out;
  }
  IndexPlan p = plan_of(resolve(x, indices), !x.is_meta());
  Tensor out = empty(p.result, x.options());
  if (!x.is_meta() && out.numel() > 0)
    kernels<ScatterKernels>(x.device()).read(out.data(), x.data(), p.layout, x.dtype());
  return out;
}
void index_backward(Backward& b) {
  b.set(0, op<"_index_backward">(b.grad(), b.arg<TensorList>(1), b.sizes(0)));
}

Tensor index_backward_op(const Tensor& g, const TensorList& given, DimsRef sizes) {
  TensorList moved;
  const TensorList& indices = beside(g, given, &moved);
  Tensor out = raw_zeros(sizes, g.options());
  if (g.is_meta() || g.numel() == 0) return out;
  const IndexKernels& k = kernels<IndexKernels>(out.device());
  if (const Tensor mask = whole_mask(out, indices);
      mask.defined() && g.dim() == 1 &&
      g.numel() == k.count_true(mask.data_as<uint8_t>(), mask.numel())) {
    k.put_true(out.data(), mask.data_as<uint8_t>(), mask.numel(), raw_contiguous(g).data(),
               g.numel(), g.dtype());
    return out;
  }
  const Tensor target = raw_parts(out), flat = raw_parts(raw_contiguous(g));
  IndexPlan p = plan_of(resolve(target, indices), true);
  check(same(flat.sizes(), p.result), "index_backward(): grad of shape ", to_string(flat.sizes()),
        " does not fit an indexing result of shape ", to_string(p.result));
  need_arithmetic("index_backward", target.dtype());
  kernels<ScatterKernels>(out.device())
      .accumulate(target.data(), flat.data(), p.layout, target.dtype());
  return out;
}
void index_backward_backward(Backward& b) { b.set(0, op<"index">(b.grad(), b.arg<TensorList>(1))); }

// ---- index_put ----

Value index_put_op(Call& c) {
  const auto& self = Unpack<Tensor>::get(c.args[0]);
  TensorList moved;
  const TensorList& indices = beside(self, std::get<TensorList>(c.args[1]), &moved);
  Tensor values = Unpack<Tensor>::get(c.args[2]);
  bool accumulate = std::get<bool>(c.args[3]);
  check(values.device() == self.device() || (values.dim() == 0 && is_host(values.device())),
        "index_put_(): Expected values to be on the same device as self (", self.device(),
        "), but got ", values.device());
  check(values.dtype() == self.dtype() || values.is_wrapped_number(),
        "Index put requires the source and destination dtypes match, got ", self.dtype(),
        " for the destination and ", values.dtype(), " for the source.");
  Tensor out = target_of(c, self);
  IndexPlan p = plan_of(resolve(out, indices), !self.is_meta());
  bool fits = true;
  try {
    fits = same(broadcast_sizes(values.sizes(), p.result), p.result);
  } catch (const Error&) {
    fits = false;
  }
  check(fits, "shape mismatch: value tensor of shape ", to_string(values.sizes()),
        " cannot be broadcast to indexing result of shape ", to_string(p.result));
  if (self.is_meta() || numel_of(p.result) == 0) return out;
  if (self.is_off_host()) values = raw_to(self.device(), values);
  values = raw_cast(without_overlap(values, out), self.dtype());
  const Tensor target = accumulate ? raw_parts(out) : out;
  const bool in_parts = target.dtype() != out.dtype();
  if (values.numel() == 1 && !in_parts) {
    p.layout.run_flat = p.layout.count_flat = 0;
    for (int64_t& s : p.layout.outer_flat) s = 0;
  } else {
    values = raw_contiguous(
        raw_view(values, p.result, broadcast_strides(values, p.result), values.offset()));
  }
  if (in_parts) p = plan_of(resolve(target, indices), true);
  if (accumulate) need_arithmetic("index_put", target.dtype());
  const ScatterKernels& k = kernels<ScatterKernels>(out.device());
  (accumulate ? k.accumulate : k.write)(out.data(), values.data(), p.layout, target.dtype());
  return out;
}
void index_put_backward(Backward& b) {
  const Tensor& g = b.grad();
  auto indices = b.arg<TensorList>(1);
  if (b.needs(0)) {
    b.set(0, b.arg<bool>(3) ? g : op<"index_put">(g, indices, zeros(Dims{}, g.options()), false));
  }
  if (b.needs(2)) b.set(2, sum_to(op<"index">(g, indices), b.sizes(2)));
}

// ---- ops ----

const Define kIndexOps[] = {
    {"index(self: Tensor, indices: Tensor?[]) -> Tensor",
     "The elements at the given indices. Item i of `indices` holds indices into dimension i (int64 "
     "or "
     "int32, negative ones count "
     "from the end), or is a bool mask over as many dimensions as it has, or None for the whole "
     "dimension. The broadcast "
     "shape of the indices stands where they stood, or in front where a None separates them.",
     kernel(index_op),
     {.backward = index_backward, .saves = saves_arg(1), .forms = kMixed}},
    {"_index_backward(grad: Tensor, indices: Tensor?[], sizes: int[]) -> Tensor",
     "Zeros of shape `sizes` to which `grad` has been added at the indices.",
     kernel(index_backward_op),
     {.backward = index_backward_backward, .saves = saves_arg(1), .forms = kMixed}},
    {"index_put(self: Tensor, indices: Tensor?[], values: Tensor, accumulate: bool = False) -> "
     "Tensor",
     "A copy of `self` with `values` at the indices that `index` would read; with `accumulate`, "
     "added there.",
     raw_kernel(index_put_op, true),
     {.backward = index_put_backward,
      .saves = saves_arg(1),
      .forms = kPublic | kInplace | kMixed | kInplaceFunction,
      .autocast = kWidestOnCuda}},
};

}  // namespace
}  // namespace taeda
