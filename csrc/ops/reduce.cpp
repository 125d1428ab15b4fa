// Sums and their relatives: sum, nansum, mean, prod, count_nonzero, any, all, trace.
#include "ops/reduce_util.h"

#include <cmath>

namespace taeda {
namespace {

using cpu::ReduceOp;

// Converts accumulators, divided by `divisor`, to `out`'s elements.
template <class A>
void write_results(const Tensor& out, const A* acc, int64_t count, int64_t first, int64_t stride,
                   double divisor) {
  visit_all(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* o = out.data_as<T>() + first;
    auto write = [&](auto&& quotient) {
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<T, bool>) o[i * stride] = acc[i] != 0;
        else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
          o[i * stride] = T(static_cast<float>(quotient(acc[i])));
        else if constexpr (std::is_integral_v<T>) o[i * stride] = static_cast<T>(acc[i]);
        else o[i * stride] = T(quotient(acc[i]));
      }
    };
    if (divisor == 1) write([](A x) { return static_cast<double>(x); });
    else write([divisor](A x) { return static_cast<double>(x) / divisor; });
  });
}

// Whether summing elements of type `from` directly equals casting them to `to` first.
bool sums_directly(DType from, DType to) {
  if (is_complex(from)) return from == to;
  if (is_floating(from)) return is_inexact(to);
  return to != DType::Bool || from == DType::Bool;
}

// Whether each x[i] is contiguous.
bool is_dense_after_first(const Tensor& x) {
  int64_t step = 1;
  for (size_t d = x.sizes().size(); d-- > 1;) {
    if (x.sizes()[d] != 1 && x.strides()[d] != step) return false;
    step *= x.sizes()[d];
  }
  return true;
}

// Fast path without a reduction plan: small tensors, and sums of a few long rows, as in gradients
// of broadcast operands. Returns false if it does not apply.
bool sum_of_few_rows(const Tensor& x, const Tensor& out, uint64_t mask) {
  if (x.dtype() != out.dtype()) return false;
  // If only the first dimension is reduced, it may have any stride.
  const bool first = mask == 1 && is_dense_after_first(x);
  if (!first && !x.is_contiguous()) return false;
  int64_t before = 1, n = 1, columns = 1;
  for (size_t d = 0; d < x.sizes().size(); ++d) {
    const int64_t size = x.sizes()[d];
    if (!(mask >> d & 1)) {
      (n == 1 ? before : columns) *= size;
    } else if (columns > 1 && size > 1) {
      return false;
    } else {
      n *= size;
    }
  }
  const bool few = n <= 8 && columns >= 32, small = n <= 64 && before * n * columns <= 4096;
  if (n < 2 || columns < 2 || (!few && !small)) return false;
  const int64_t stride = first ? x.strides()[0] : columns;
  if (x.dtype() == DType::Float32) {
    cpu::sum_few_rows(before, n, stride, columns, x.data_as<float>(), out.data_as<float>());
  } else if (x.dtype() == DType::Float64) {
    cpu::sum_few_rows(before, n, stride, columns, x.data_as<double>(), out.data_as<double>());
  } else {
    return false;
  }
  return true;
}

void run_sum(ReduceOp what, const Tensor& x, const Tensor& out, uint64_t mask, double divisor) {
  if (is_storage_only(x.dtype())) {
    const DType wide = is_floating(x.dtype()) ? DType::Float32 : DType::Int64;
    run_sum(what, raw_cast(x, wide), out, mask, divisor);
    return;
  }
  if (what == ReduceOp::Sum && divisor == 1 && sum_of_few_rows(x, out, mask)) return;
  if (is_complex(x.dtype())) {
    // (..., 2) reals, the last dimension kept
    run_sum(what, raw_view_as_real(x), raw_view_as_real(out), mask, divisor);
    return;
  }
  auto finish = [&](const auto* acc, int64_t count, int64_t first, int64_t stride) {
    write_results(out, acc, count, first, stride, divisor);
  };
  if (is_floating(x.dtype())) {
    cpu::reduce<double>(what, x.dtype(), x.data(), x.sizes(), x.strides(), mask, finish);
  } else {
    cpu::reduce<int64_t>(what, x.dtype(), x.data(), x.sizes(), x.strides(), mask, finish);
  }
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
  return sum_like(is_floating(x.dtype()) ? ReduceOp::NanSum : ReduceOp::Sum, x, dims, keepdim,
                  sum_dtype(x, dtype), false);
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
  Tensor flat = raw_contiguous(raw_view(x, sizes, strides, x.offset()));
  visit_inexact(x.dtype(), "prod", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = flat.data_as<T>();
    T* o = out.data_as<T>();
    int64_t n = out.numel() ? x.numel() / out.numel() : 0;
    for (int64_t i = 0; i < out.numel(); ++i) {
      T v = 1;
      for (int64_t j = 0; j < n; ++j) v *= p[i * n + j];
      o[i] = v;
    }
  });
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

bool has_zero(const Tensor& x) {
  if (x.is_meta() || x.numel() == 0) return false;
  GradMode off(false);
  return op<"any">(op<"eq">(x, Tensor(0))).item().to<bool>();
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
  run_sum(ReduceOp::CountNonzero, x, out, mask, 1);
  return out;
}

template <ReduceOp What> Tensor truth(Tensor x, uint64_t mask, bool keepdim) {
  if (is_storage_only(x.dtype())) x = raw_cast(x, DType::Bool);
  DType dtype = x.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool;
  Tensor out = empty(reduced_sizes(x.sizes(), mask, keepdim), {dtype, x.device()});
  if (x.is_meta() || out.numel() == 0) return out;
  if (is_complex(x.dtype())) x = raw_cast(x, DType::Bool);
  auto* o = out.data_as<uint8_t>();
  cpu::reduce<uint8_t>(What, x.dtype(), x.data(), x.sizes(), x.strides(), mask,
                       [&](const uint8_t* acc, int64_t count, int64_t first, int64_t stride) {
                         for (int64_t i = 0; i < count; ++i) o[first + i * stride] = acc[i];
                       });
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

const Define kOps[] = {
    {"sum(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "The sum over `dim`, by default over all dimensions. Integers and bools add up as int64. "
     "float32 is summed in short "
     "blocks, the blocks in double precision.",
     kernel(sum_op),
     {.backward = sum_backward, .forms = kPublic | kOut}},
    {"nansum(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "`sum` in which NaN counts as zero.",
     kernel(nansum_op),
     {.backward = nansum_backward, .saves = saves_arg(0), .forms = kPublic | kOut}},
    {"mean(self: Tensor, dim: int[1]? = None, keepdim: bool = False, *, dtype: dtype? = None) -> "
     "Tensor",
     "The mean over `dim`, by default over all dimensions; NaN where there is nothing to average.",
     kernel(mean_op),
     {.backward = mean_backward, .forms = kPublic | kOut}},
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
     {.backward = prod_backward, .saves = saves_arg(0), .forms = kPublic | kOut}},
    {"count_nonzero(self: Tensor, dim: int[1]? = None) -> Tensor",
     "How many elements differ from zero, as int64.",
     kernel(count_nonzero_op),
     {.non_differentiable = 1}},
    {"any(self: Tensor) -> Tensor",
     "Whether any element is true (not zero). uint8 stays uint8; else bool.",
     kernel(truth_all<ReduceOp::Any>),
     {.forms = kPublic | kOut, .non_differentiable = 1}},
    {"any(self: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor",
     "Whether any element along `dim` is true.",
     kernel(truth_dims<ReduceOp::Any>),
     {.forms = kPublic | kOut, .non_differentiable = 1}},
    {"all(self: Tensor) -> Tensor",
     "Whether all elements are true (not zero). uint8 stays uint8; else bool.",
     kernel(truth_all<ReduceOp::All>),
     {.forms = kPublic | kOut, .non_differentiable = 1}},
    {"all(self: Tensor, dim: int[1]? = None, keepdim: bool = False) -> Tensor",
     "Whether all elements along `dim` are true.",
     kernel(truth_dims<ReduceOp::All>),
     {.forms = kPublic | kOut, .non_differentiable = 1}},
    {"trace(self: Tensor) -> Tensor",
     "The sum of a matrix's diagonal.",
     kernel(trace_op),
     {.composite = true}},
};

}  // namespace

Tensor raw_sum(const Tensor& x, DimsRef dims, bool keepdim) {
  return sum_op(x, dims, keepdim, std::nullopt);
}

}  // namespace taeda
