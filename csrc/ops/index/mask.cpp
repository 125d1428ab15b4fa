// Masks and their indices: nonzero, argwhere, masked_select, masked_scatter, one_hot.
#include "base/checked.h"
#include "kernels/histogram.h"
#include "ops/index/util.h"

namespace taeda {

Tensor mask_flat_indices(const Tensor& mask) {
  Tensor bytes = raw_contiguous(raw_cast(mask, DType::Bool));
  const IndexKernels& k = kernels<IndexKernels>(mask.device());
  const int64_t total = k.count_true(bytes.data_as<uint8_t>(), bytes.numel());
  Tensor flat = empty(Dims{total}, {DType::Int64, mask.device()});
  k.true_indices(bytes.data_as<uint8_t>(), bytes.numel(), flat.data_as<int64_t>(), total);
  return flat;
}

TensorList mask_indices(const Tensor& mask) {
  size_t nd = mask.sizes().size();
  Tensor flat = mask_flat_indices(mask);
  if (nd == 1) return {flat};
  TensorList out(nd);
  std::vector<int64_t*> columns;
  for (Tensor& t : out) {
    t = empty(flat.sizes(), flat.options());
    columns.push_back(t.data_as<int64_t>());
  }
  if (nd > 0) {
    kernels<IndexKernels>(mask.device())
        .coordinates(flat.data_as<int64_t>(), flat.numel(), mask.sizes(), columns.data(), 1);
  }
  return out;
}

namespace {

void check_has_data(const Tensor& x, const char* what) {
  check<NotImplemented>(!x.is_meta(), what,
                        "(): the size of the result depends on data, which meta tensors lack");
}

Tensor nonzero_op(const Tensor& x) {
  check_has_data(x, "nonzero");
  size_t nd = x.sizes().size();
  Tensor flat = mask_flat_indices(x);
  if (nd == 1) return raw_view(flat, Dims{flat.numel(), 1}, Dims{1, 1}, 0);
  Tensor out = empty(Dims{flat.numel(), static_cast<int64_t>(nd)}, flat.options());
  if (nd == 0) return out;
  std::vector<int64_t*> columns;
  for (size_t d = 0; d < nd; ++d) {
    const Tensor column = raw_view(out, flat.sizes(), Dims{out.stride(0)}, static_cast<int64_t>(d));
    columns.push_back(column.data_as<int64_t>());
  }
  kernels<IndexKernels>(x.device())
      .coordinates(flat.data_as<int64_t>(), flat.numel(), x.sizes(), columns.data(),
                   static_cast<int64_t>(nd));
  return out;
}

TensorList nonzero_tuple(const Tensor& x) {
  check_has_data(x, "nonzero");
  return mask_indices(x.dim() == 0 ? raw_view(x, Dims{1}, Dims{1}, x.offset()) : x);
}

Tensor masked_select_op(const Tensor& x, const Tensor& mask) {
  check(mask.dtype() == DType::Bool, "masked_select: expected BoolTensor for mask");
  check_has_data(x, "masked_select");
  Dims sizes = broadcast_sizes(mask.sizes(), x.sizes());
  if (sizes.empty()) return op<"index">(reshape(x, Dims{1}), TensorList{reshape(mask, Dims{1})});
  return op<"index">(expand(x, sizes), TensorList{expand(mask, sizes)});
}

Value masked_scatter_op(Call& c) {
  const auto &self = Unpack<Tensor>::get(c.args[0]), &mask = Unpack<Tensor>::get(c.args[1]),
             &source = Unpack<Tensor>::get(c.args[2]);
  Dims sizes = broadcast_sizes(mask.sizes(), self.sizes());
  check(mask.dtype() == DType::Bool,
        "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask.dtype());
  check(self.dtype() == source.dtype(),
        "masked_scatter: expected self and source to have same dtypes but got", self.dtype(),
        " and ", source.dtype());
  check(!c.out.defined() || same(sizes, self.sizes()), "masked_scatter_(): output with shape ",
        to_string(self.sizes()), " doesn't match the broadcast shape ", to_string(sizes));
  Tensor out = target_of(
      c, c.out.defined() ? self
                         : raw_view(self, sizes, broadcast_strides(self, sizes), self.offset()));
  if (self.is_meta() || out.numel() == 0) return out;
  Tensor bytes =
      raw_contiguous(raw_view(mask, sizes, broadcast_strides(mask, sizes), mask.offset()));
  const IndexKernels& k = kernels<IndexKernels>(out.device());
  int64_t n = k.count_true(bytes.data_as<uint8_t>(), bytes.numel());
  check(n <= source.numel(), "Number of elements of source < number of ones in mask");
  Tensor flat = raw_contiguous(out), values = raw_contiguous(without_overlap(source, out));
  k.put_true(flat.data(), bytes.data_as<uint8_t>(), bytes.numel(), values.data(), n, out.dtype());
  if (!flat.is(out)) copy_into(out, flat);
  return out;
}
void masked_scatter_backward(Backward& b) {
  const Tensor& g = b.grad();
  Tensor mask = b.arg<Tensor>(1);
  if (b.needs(0)) b.set(0, sum_to(where(mask, zeros(Dims{}, g.options()), g), b.sizes(0)));
  if (b.needs(2)) {
    Tensor taken = op<"masked_select">(g, mask);
    Tensor rest = zeros(Dims{numel_of(b.sizes(2)) - taken.numel()}, g.options());
    b.set(2, reshape(op<"cat">(TensorList{taken, rest}, 0), b.sizes(2)));
  }
}

Tensor one_hot_op(const Tensor& index, int64_t num_classes) {
  check(index.dtype() == DType::Int64,
        "one_hot is only applicable to index tensor of type LongTensor.");
  check<NotImplemented>(
      !index.is_meta() || num_classes > 0,
      "one_hot(): the number of classes depends on data, which meta tensors lack");
  Tensor flat = index_values(index);
  if (index.numel() == 0)
    check(num_classes > 0, "Can not infer total number of classes from empty tensor.");
  int64_t classes = num_classes;
  if (!index.is_meta()) {
    const auto [least, largest] =
        flat.numel()
            ? kernels<CountKernels>(index.device()).range(flat.data(), flat.numel(), DType::Int64)
            : std::pair<int64_t, int64_t>(0, -1);
    check(least >= 0, "Class values must be non-negative, got ", least);
    if (num_classes == -1) classes = checked_add(largest, 1);
    else check(num_classes >= 1 || index.numel() == 0, "num_classes should be positive");
    check(largest < classes, "Class values must be smaller than num_classes (", classes, "), got ",
          largest);
  }
  Dims sizes(index.sizes());
  sizes.push_back(classes);
  Tensor out = raw_zeros(sizes, index.options());
  if (!index.is_meta()) {
    kernels<IndexKernels>(index.device())
        .mark(flat.data_as<int64_t>(), flat.numel(), classes, out.data_as<int64_t>());
  }
  return out;
}

const Define kMaskOps[] = {
    {"nonzero(self: Tensor) -> Tensor",
     "The coordinates of the elements that are not zero, in row-major order: an int64 tensor "
     "(count, dimensions).",
     kernel(nonzero_op),
     {.forms = kPublic | kOut,
      .non_differentiable = 1,
      .vmap = vmap::dynamic,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"_nonzero_tuple(self: Tensor) -> Tensor[]",
     "The coordinates of the elements that are not zero, one int64 vector for each dimension.",
     kernel(nonzero_tuple),
     {.non_differentiable = ~0u, .vmap = vmap::dynamic}},
    {"argwhere(self: Tensor) -> Tensor",
     "The same as `nonzero`.",
     kernel(nonzero_op),
     {.non_differentiable = 1}},
    {"masked_select(self: Tensor, mask: Tensor) -> Tensor",
     "The elements at which the bool tensor `mask`, broadcast with `self`, is true, as a vector.",
     kernel(masked_select_op),
     {.forms = kPublic | kOut, .composite = true, .out_memory = {.same_or_disjoint = 0b11}}},
    {"masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor",
     "A copy of `self` in which the elements where `mask` is true hold the elements of `source`, "
     "one "
     "after the other.",
     raw_kernel(masked_scatter_op, true),
     {.backward = masked_scatter_backward, .saves = saves_arg(1), .forms = kPublic | kInplace}},
    {"one_hot(self: Tensor, num_classes: int = -1) -> Tensor",
     "For each class number a row of `num_classes` zeros with a one at it (int64). -1 takes the "
     "largest number plus one.\n\n"
     ">>> taeda.nn.functional.one_hot(taeda.tensor([1, 2]))\n"
     "tensor([[0, 1, 0],\n"
     "        [0, 0, 1]])",
     kernel(one_hot_op),
     {.forms = kFunction, .non_differentiable = 1, .module = "nn.functional"}},
};

}  // namespace
}  // namespace taeda
