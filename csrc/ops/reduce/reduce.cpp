// Sums and their relatives: sum, nansum, mean, prod, count_nonzero, any, all, trace.
#include "kernels/functors/reduction.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

// Whether summing elements of type `from` directly equals casting them to `to` first.
bool sums_directly(DType from, DType to) {
  if (is_complex(from)) return from == to;
  if (is_floating(from)) return is_inexact(to);
  return to != DType::Bool || from == DType::Bool;
}

void run_sum(ReduceOp what, const Tensor& x, const Tensor& out, uint64_t mask, double divisor) {
  if (is_complex(x.dtype())) {
    // (..., 2) reals, the last dimension kept
    run_sum(what, raw_view_as_real(x), raw_view_as_real(out), mask, divisor);
    return;
  }
  if (is_storage_only(x.dtype())) {
    const DType wide = is_floating(x.dtype()) ? DType::Float32 : DType::Int64;
    run_sum(what, raw_cast(x, wide), out, mask, divisor);
    return;
  }
  reduce(what, x, mask, {out.dtype(), out.data(), nullptr, divisor});
}

Tensor sum_like(ReduceOp what, Tensor x, OptDims dims, bool keepdim, DType dtype, bool mean) {
  uint64_t mask = reduced_mask(dims, x.dim());
  Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim), {dtype, x.device()});
  if (x.is_meta() || out.numel() == 0) return out;
  if (!sums_directly(x.dtype(), dtype)) x = raw_cast(x, dtype);
  double divisor = mean ? static_cast<double>(reduced_count(x.sizes(), mask)) : 1;
  run_sum(what, x, out, mask, divisor);
  return out;
}

DType sum_dtype(const Tensor& x, OptDType dtype) {
  if (dtype) return *dtype;
  return is_integral(x.dtype()) ? DType::Int64 : x.dtype();
}

Tensor sum_op(const Tensor& x, OptDims dims, bool keepdim, OptDType dtype) {
  return sum_like(ReduceOp::Sum, x, dims, keepdim, sum_dtype(x, dtype), false);
}
void sum_backward(Backward& b) { b.set(0, reduced_of(b).grow(as_dtype(b.grad(), b.dtype(0)))); }

Tensor nansum_op(const Tensor& x, OptDims dims, bool keepdim, OptDType dtype) {
  check(!is_complex(x.dtype()), "nansum on CPU does not support complex inputs");
  return sum_like(is_floating(x.dtype()) ? portable::sum_of<portable::NanSum> : ReduceOp::Sum, x,
                  dims, keepdim, sum_dtype(x, dtype), false);
}
void nansum_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0), g = reduced_of(b).grow(as_dtype(b.grad(), b.dtype(0)));
  b.set(0, g * to(!op<"isnan">(x), g.dtype()));
}

Tensor mean_op(const Tensor& x, OptDims dims, bool keepdim, OptDType dtype) {
  if (dtype) {
    check(is_inexact(*dtype),
          "mean(): could not infer output dtype. Optional dtype must be either a floating point or "
          "complex dtype. Got: ",
          *dtype);
  } else {
    check(is_inexact(x.dtype()),
          "mean(): could not infer output dtype. Input dtype must be either a floating point or "
          "complex dtype. Got: ",
          x.dtype());
  }
  return sum_like(ReduceOp::Sum, x, dims, keepdim, dtype.value_or(x.dtype()), true);
}
void mean_backward(Backward& b) {
  Reduced r = reduced_of(b);
  b.set(0, r.grow(as_dtype(b.grad(), b.dtype(0)) / static_cast<double>(r.count())));
}
Tensor nanmean_op(const Tensor& x, OptDims dims, bool keepdim, OptDType dtype) {
  check(is_inexact(x.dtype()),
        "nanmean(): expected input to have floating point or complex dtype but got ", x.dtype());
  Dims d = dims ? Dims(*dims) : Dims();
  Tensor count = sum(!op<"isnan">(x), d, keepdim);
  return op<"nansum">(x, d, keepdim, dtype) / count;
}

// ---- prod ----

Tensor complex_prod(const Tensor& x, uint64_t mask, const Tensor& out) {
  // Kept dimensions first, then the reduced ones, flattened into one.
  Dims order, kept;
  for (size_t i = 0; i < x.sizes().size(); ++i) {
    if (!(mask >> i & 1)) order.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < x.sizes().size(); ++i) {
    if (mask >> i & 1) order.push_back(static_cast<int64_t>(i));
  }
  Dims sizes, strides;
  for (int64_t d : order) {
    sizes.push_back(at(x.sizes(), d));
    strides.push_back(at(x.strides(), d));
  }
  need_arithmetic("prod", x.dtype());
  Tensor flat = raw_contiguous(raw_view(x, sizes, strides, x.offset()));
  const int64_t rows = out.numel();
  kernels<ReduceKernels>(x.device())
      .complex_prod(x.dtype(), rows, x.numel() / rows, flat.data(), out.data());
  return out;
}

Tensor prod_op(Tensor x, std::optional<int64_t> dim, bool keepdim, OptDType dtype) {
  DType to = sum_dtype(x, dtype);
  uint64_t mask = dim ? dim_bit(*dim, x.dim()) & all_dims(x.dim()) : all_dims(x.dim());
  Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim && dim), {to, x.device()});
  if (x.is_meta() || out.numel() == 0) return out;
  if (!sums_directly(x.dtype(), to)) x = raw_cast(x, to);
  if (is_complex(x.dtype())) return complex_prod(x, mask, out);
  if (is_complex(to)) {
    Tensor real = prod_op(x, dim, keepdim, to_real(to));
    return raw_cast(real, to);
  }
  run_sum(ReduceOp::Prod, x, out, mask, 1);
  return out;
}

// For each k along the last dimension a row in which element k is replaced by 1: (..., n) -> (...,
// n, n).
Tensor each_left_out(const Tensor& x) {
  int64_t n = x.size(-1);
  Dims sizes(x.sizes());
  sizes.push_back(n);
  Tensor eye = op<"_diagonal_backward">(full(Dims{n}, Scalar(true), {DType::Bool, x.device()}),
                                        Dims{n, n}, 0, 0, 1);
  return where(eye, full(Dims{}, Scalar(1), x.options()), expand(unsqueeze(x, -2), sizes));
}

void prod_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0), g = as_dtype(b.grad(), b.dtype(0));
  auto dim = b.arg<std::optional<int64_t>>(1);
  if (x.dim() == 0) return b.set(0, g);
  int64_t d = dim ? wrap_dim(*dim, x.dim()) : 0;
  Tensor flat = dim ? x : reshape(x, Dims{-1});
  Tensor grown = dim ? (b.arg<bool>(2) ? g : unsqueeze(g, d)) : reshape(g, Dims{1});
  Tensor gx;
  if (!has_zero(x)) {
    Tensor y = op<"prod">(flat, d, true, std::nullopt);
    gx = grown * conj(y / flat);
  } else {
    Tensor moved = transpose(flat, d, -1);
    Tensor others = op<"prod">(each_left_out(moved), -1, false, std::nullopt);
    gx = grown * conj(transpose(others, d, -1));
  }
  b.set(0, dim ? gx : reshape(gx, x.sizes()));
}

// ---- counts and truth ----

Tensor count_nonzero_op(const Tensor& x, OptDims dims) {
  if (is_complex(x.dtype())) return count_nonzero_op(op<"ne">(x, Tensor(0)), dims);
  uint64_t mask = reduced_mask(dims, x.dim());
  Tensor out = empty(reduced_sizes(x.sizes(), mask, false), {DType::Int64, x.device()});
  if (x.is_meta() || out.numel() == 0) return out;
  run_sum(portable::sum_of<portable::CountNonzero>, x, out, mask, 1);
  return out;
}

template <ReduceOp What> Tensor truth(Tensor x, uint64_t mask, bool keepdim) {
  if (is_storage_only(x.dtype())) x = raw_cast(x, DType::Bool);
  DType dtype = x.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool;
  Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim), {dtype, x.device()});
  if (x.is_meta() || out.numel() == 0) return out;
  if (is_complex(x.dtype())) x = raw_cast(x, DType::Bool);
  reduce(What, x, mask, {dtype, out.data()});
  return out;
}
template <ReduceOp What> Tensor truth_all(const Tensor& x) {
  return truth<What>(x, all_dims(x.dim()), false);
}
// Unlike elsewhere, an empty list of dimensions reduces none.
template <ReduceOp What> Tensor truth_dims(const Tensor& x, OptDims dims, bool keepdim) {
  return truth<What>(x, dims ? dim_mask(*dims, x.dim()) & all_dims(x.dim()) : all_dims(x.dim()),
                     keepdim);
}

Tensor trace_op(const Tensor& x) {
  check(x.dim() == 2, "trace: expected a matrix, but got tensor with dim ", x.dim());
  return op<"sum">(op<"diagonal">(x, 0, 0, 1));
}

// ---- ops ----

const Define kReduceOps[] = {
    {"sum(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "The sum over `dim`, by default over all dimensions. Integers and bools add up as int64. "
     "float32 is summed in short "
     "blocks, the blocks in double precision.",
     kernel(sum_op),
     {.backward = sum_backward,
      .forms = kPublic | kOut,
      .autocast = kFloat32OnCuda,
      .vmap = vmap::reduction}},
    {"nansum(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "`sum` in which NaN counts as zero.",
     kernel(nansum_op),
     {.backward = nansum_backward,
      .saves = saves_arg(0),
      .forms = kPublic | kOut,
      .vmap = vmap::reduction}},
    {"mean(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "The mean over `dim`, by default over all dimensions; NaN where there is nothing to average.",
     kernel(mean_op),
     {.backward = mean_backward, .forms = kPublic | kOut, .vmap = vmap::reduction}},
    {"nanmean(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) "
     "-> Tensor",
     "The mean of those elements that are not NaN.",
     kernel(nanmean_op),
     {.forms = kPublic | kOut, .composite = true}},
    {"prod(self: Tensor, dim: int? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "The product over `dim`, by default over all dimensions. Integers and bools multiply as "
     "int64.",
     kernel(prod_op),
     {.backward = prod_backward,
      .saves = saves_arg(0),
      .forms = kPublic | kOut,
      .autocast = Precision::Float32,
      .vmap = vmap::reduction}},
    {"count_nonzero(self: Tensor, dim: int[1]? = None) -> Tensor",
     "How many elements differ from zero, as int64.",
     kernel(count_nonzero_op),
     {.non_differentiable = 1, .vmap = vmap::reduction}},
    {"any(self: Tensor) -> Tensor",
     "Whether any element is true (not zero). uint8 stays uint8; else bool.",
     kernel(truth_all<ReduceOp::Any>),
     {.forms = kPublic | kOut, .non_differentiable = 1, .vmap = vmap::reduction}},
    {"any(self: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor",
     "Whether any element along `dim` is true.",
     kernel(truth_dims<ReduceOp::Any>),
     {.forms = kPublic | kOut, .non_differentiable = 1, .vmap = vmap::reduction}},
    {"all(self: Tensor) -> Tensor",
     "Whether all elements are true (not zero). uint8 stays uint8; else bool.",
     kernel(truth_all<ReduceOp::All>),
     {.forms = kPublic | kOut, .non_differentiable = 1, .vmap = vmap::reduction}},
    {"all(self: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor",
     "Whether all elements along `dim` are true.",
     kernel(truth_dims<ReduceOp::All>),
     {.forms = kPublic | kOut, .non_differentiable = 1, .vmap = vmap::reduction}},
    {"trace(self: Tensor) -> Tensor",
     "The sum of a matrix's diagonal.",
     kernel(trace_op),
     {.composite = true, .autocast = kFloat32OnCpu}},
};

}  // namespace

Tensor raw_sum(const Tensor& x, DimsRef dims, bool keepdim) {
  return sum_op(x, dims, keepdim, std::nullopt);
}

}  // namespace taeda
