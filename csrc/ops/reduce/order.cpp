// Extremes: max, min, amax, amin, aminmax, argmax, argmin.
#include "ops/reduce/util.h"

namespace taeda {
namespace {

template <ReduceOp What> constexpr const char* kName = What == ReduceOp::Max ? "max" : "min";
template <ReduceOp What>
constexpr ReduceOp kArg = What == ReduceOp::Max ? ReduceOp::ArgMax : ReduceOp::ArgMin;

// ---- the values alone ----

template <ReduceOp What>
Tensor extreme(const char* what, const Tensor& x, uint64_t mask, bool keepdim) {
  if (is_complex(x.dtype()))
    fail<NotImplemented>("\"", what, "\" not implemented for '", x.dtype(), "'");
  Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim), x.options());
  if (x.is_meta() || out.numel() == 0) return out;
  reduce(What, x, mask, {x.dtype(), out.data()});
  return out;
}

template <ReduceOp What> Tensor extreme_all(const Tensor& x) {
  check(x.numel() > 0, kName<What>,
        "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
        "dim with the 'dim' "
        "argument.");
  return extreme<What>(What == ReduceOp::Max ? "max_all" : "min_all", x, all_dims(x.dim()), false);
}

void check_nonempty(const char* what, const char* separator, DimsRef sizes, uint64_t mask) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    check<IndexError>(!(mask >> i & 1) || sizes[i] > 0, what, separator, " Expected reduction dim ",
                      i, " to have non-zero size.");
  }
}

template <ReduceOp What> Tensor extreme_dims(const Tensor& x, OptDims dims, bool keepdim) {
  const char* what = What == ReduceOp::Max ? "amax" : "amin";
  uint64_t mask = reduced_mask(dims, x.dim());
  if (x.numel() == 0) {
    check(dims && !dims->empty(), what,
          "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
          "reduction dim with the 'dim' "
          "argument.");
    check_nonempty(what, "():", x.sizes(), mask);
  }
  return extreme<What>(What == ReduceOp::Max ? "max_values_cpu" : "min_values_cpu", x, mask,
                       keepdim);
}

// Elements that equal the extreme share the gradient evenly.
Tensor shared(const Tensor& x, const Tensor& y, const Tensor& g, const Reduced& r) {
  Tensor mask = to(op<"eq">(x, r.restore(y)), g.dtype());
  Tensor count = op<"sum">(mask, r.dims(), true);
  return r.restore(g) * (mask / count);
}
void extreme_all_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0), y = b.out();
  Reduced r{b.sizes(0), all_dims(x.dim()), false};
  if (!x.is_meta() && is_floating(y.dtype())) {
    GradMode off(false);
    if (op<"isnan">(y).item().to<bool>()) {
      Tensor nan = to(op<"isnan">(x), y.dtype());
      b.set(0, b.grad() * (nan / op<"sum">(nan)));
      return;
    }
  }
  b.set(0, shared(x, y, b.grad(), r));
}
void extreme_dims_backward(Backward& b) {
  b.set(0, shared(b.arg<Tensor>(0), b.out(), b.grad(), reduced_of(b)));
}

// ---- with indices ----

// Values and indices of the extremes along one dimension; `values` may be undefined.
template <ReduceOp What>
void extreme_indices(const Tensor& x, uint64_t mask, const Tensor& values, const Tensor& indices) {
  reduce(kArg<What>, x, mask,
         {x.dtype(), values.defined() ? values.data() : nullptr, indices.data()});
}

template <ReduceOp What> TensorList extreme_dim(const Tensor& x, int64_t dim, bool keepdim) {
  check(!is_complex(x.dtype()), kName<What>, "(): does not support complex input");
  uint64_t mask = dim_bit(dim, x.dim()) & all_dims(x.dim());
  check_nonempty(kName<What>, "():", x.sizes(), mask);
  Dims sizes = reduced_sizes(x.sizes(), mask, keepdim);
  Tensor values = empty(sizes, x.options()), indices = empty(sizes, {DType::Int64, x.device()});
  if (!x.is_meta() && values.numel() > 0) extreme_indices<What>(x, mask, values, indices);
  return {values, indices};
}
void extreme_dim_backward(Backward& b) {
  int64_t dim = b.arg<int64_t>(1);
  const Dims& s = b.sizes(0);
  if (s.empty()) return b.set(0, b.grad());
  bool keepdim = b.arg<bool>(2);
  Tensor g = keepdim ? b.grad() : unsqueeze(b.grad(), dim),
         at_place = keepdim ? b.out(1) : unsqueeze(b.out(1), dim);
  b.set(0, op<"scatter">(zeros(s, g.options()), dim, at_place, g));
}

template <ReduceOp What>
Tensor arg_extreme(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const char* what = What == ReduceOp::Max ? "argmax" : "argmin";
  check(!is_complex(x.dtype()), what, "(): does not support complex input");
  check(x.dtype() != DType::Bool, what, "(): does not support bool input");
  if (dim) {
    uint64_t mask = dim_bit(*dim, x.dim()) & all_dims(x.dim());
    check_nonempty(what, "():", x.sizes(), mask);
    Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim), {DType::Int64, x.device()});
    if (!x.is_meta() && out.numel() > 0) extreme_indices<What>(x, mask, Tensor(), out);
    return out;
  }
  check<IndexError>(x.numel() > 0, what,
                    "(): Expected reduction dim to be specified for input.numel() == 0.");
  Tensor out = empty(keepdim ? Dims(x.sizes().size(), 1) : Dims(), {DType::Int64, x.device()});
  if (x.is_meta()) return out;
  Tensor flat = raw_contiguous(x);
  extreme_indices<What>(raw_view(flat, Dims{x.numel()}, Dims{1}, flat.offset()), 1, Tensor(), out);
  return out;
}

template <ReduceOp What> Tensor binary(const Tensor& a, const Tensor& b) {
  if constexpr (What == ReduceOp::Max) return op<"maximum">(a, b);
  else return op<"minimum">(a, b);
}

TensorList aminmax_op(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) {
    check(x.numel() > 0,
          "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
          "identity.");
    Dims none;
    return {op<"amin">(x, none, keepdim), op<"amax">(x, none, keepdim)};
  }
  check_nonempty("aminmax", ":", x.sizes(), dim_bit(*dim, x.dim()) & all_dims(x.dim()));
  Dims dims{*dim};
  return {op<"amin">(x, dims, keepdim), op<"amax">(x, dims, keepdim)};
}

// ---- ops ----

constexpr uint32_t kBoth = saves_arg(0) | saves_out(0);

const Define kOrderOps[] = {
    {"max(self: Tensor) -> Tensor",
     "The largest element; NaN where there is one. Ties share the gradient.",
     kernel(extreme_all<ReduceOp::Max>),
     {.backward = extreme_all_backward,
      .saves = kBoth,
      .forms = kPublic | kOut,
      .vmap = vmap::reduction,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
    {"max(self: Tensor, other: Tensor) -> Tensor",
     "The same as `maximum`.",
     kernel(binary<ReduceOp::Max>),
     {.forms = kPublic | kOut,
      .composite = true,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
    {"max(self: Tensor, dim: int, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
     "The largest elements along `dim` and where they first stand (int64). NaN counts as the "
     "largest.",
     kernel(extreme_dim<ReduceOp::Max>),
     {.backward = extreme_dim_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::reduction,
      .out_memory = {.same_or_disjoint = 0b11}}},
    {"min(self: Tensor) -> Tensor",
     "The smallest element; NaN where there is one. Ties share the gradient.",
     kernel(extreme_all<ReduceOp::Min>),
     {.backward = extreme_all_backward,
      .saves = kBoth,
      .forms = kPublic | kOut,
      .vmap = vmap::reduction,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
    {"min(self: Tensor, other: Tensor) -> Tensor",
     "The same as `minimum`.",
     kernel(binary<ReduceOp::Min>),
     {.forms = kPublic | kOut,
      .composite = true,
      .out_memory = {.same_or_disjoint = 0b11},
      .out_dtype = OutDtype::Castable}},
    {"min(self: Tensor, dim: int, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
     "The smallest elements along `dim` and where they first stand (int64). NaN counts as the "
     "smallest.",
     kernel(extreme_dim<ReduceOp::Min>),
     {.backward = extreme_dim_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::reduction,
      .out_memory = {.same_or_disjoint = 0b11}}},
    {"amax(self: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor",
     "The largest elements over `dim`, by default over all dimensions. Ties share the gradient "
     "evenly.",
     kernel(extreme_dims<ReduceOp::Max>),
     {.backward = extreme_dims_backward,
      .saves = kBoth,
      .forms = kPublic | kOut,
      .vmap = vmap::reduction}},
    {"amin(self: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor",
     "The smallest elements over `dim`, by default over all dimensions. Ties share the gradient "
     "evenly.",
     kernel(extreme_dims<ReduceOp::Min>),
     {.backward = extreme_dims_backward,
      .saves = kBoth,
      .forms = kPublic | kOut,
      .vmap = vmap::reduction}},
    {"aminmax(self: Tensor, *, dim: int? = None, keepdim: bool = False) -> (min: Tensor, max: "
     "Tensor)",
     "`amin` and `amax` of one dimension, or of all.",
     kernel(aminmax_op),
     {.forms = kPublic | kOut, .composite = true, .out_memory = {.same_or_disjoint = 0b1}}},
    {"argmax(self: Tensor, dim: int? = None, keepdim: bool = False) -> Tensor",
     "The index of the first largest element along `dim` (int64); without `dim`, its index in the "
     "flattened tensor.",
     kernel(arg_extreme<ReduceOp::Max>),
     {.forms = kPublic | kOut, .non_differentiable = 1, .vmap = vmap::reduction}},
    {"argmin(self: Tensor, dim: int? = None, keepdim: bool = False) -> Tensor",
     "The index of the first smallest element along `dim` (int64); without `dim`, its index in the "
     "flattened tensor.",
     kernel(arg_extreme<ReduceOp::Min>),
     {.forms = kPublic | kOut, .non_differentiable = 1, .vmap = vmap::reduction}},
};

}  // namespace
}  // namespace taeda
