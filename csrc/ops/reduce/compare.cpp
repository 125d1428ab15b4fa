// Whole-tensor comparisons and counts of values: isclose, allclose, equal, unique, bincount, histc.
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/histogram.h"
#include "kernels/reduce.h"
#include "kernels/runs.h"
#include "kernels/scatter.h"
#include "kernels/sort.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

// ---- comparisons ----

Tensor isclose_op(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check(a.dtype() == b.dtype(), a.dtype(), " did not match ", b.dtype());
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  GradMode off(false);
  Tensor close = op<"eq">(a, b);
  if (equal_nan && is_inexact(a.dtype()))
    close = op<"logical_or">(close, op<"logical_and">(op<"isnan">(a), op<"isnan">(b)));
  if (rtol == 0 && atol == 0) return close;
  Tensor x = a, y = b;
  if (is_integral(a.dtype())) {
    x = to(a, default_dtype());
    y = to(b, default_dtype());
  }
  Tensor allowed = op<"abs">(y) * rtol + atol, actual = op<"abs">(x - y);
  return op<"logical_or">(close,
                          op<"logical_and">(op<"isfinite">(actual), op<"le">(actual, allowed)));
}
bool allclose_op(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  Tensor close = isclose_op(a, b, rtol, atol, equal_nan);
  check<NotImplemented>(!close.is_meta(), "allclose(): meta tensors have no data to compare");
  return op<"all">(close).item().to<bool>();
}
bool equal_op(const Tensor& a, const Tensor& b) {
  check(a.device() == b.device(),
        "Expected all tensors to be on the same device, but found at least two devices, ",
        a.device(), " and ", b.device(), "!");
  check<NotImplemented>(!a.is_meta(), "equal(): meta tensors have no data to compare");
  if (!same(a.sizes(), b.sizes())) return false;
  const DType d = a.dtype();
  if (d == b.dtype() && a.is_contiguous() && b.is_contiguous() &&
      (d == DType::Float32 || d == DType::Float64 || (is_integral(d) && !is_storage_only(d)))) {
    return kernels<ReduceKernels>(a.device()).all_equal(d, a.numel(), a.data(), b.data());
  }
  GradMode off(false);
  return op<"all">(op<"eq">(a, b)).item().to<bool>();
}

// ---- unique ----

// The first `count` elements of a vector.
Tensor first_of(const Tensor& t, int64_t count) {
  Tensor some = raw_view(t, Dims{count}, Dims{1}, 0);
  return count < t.numel() / 2 ? raw_clone(some) : some;
}

// Unique rows of a contiguous (n, m) tensor: the first of each, the row that each row is among
// them, and the counts.
TensorList unique_rows(const Tensor& x, int64_t n, int64_t m, bool sort) {
  need_arithmetic("unique", x.dtype());
  const Options options{DType::Int64, x.device()};
  Tensor first = empty(Dims{n}, options), inverse = empty(Dims{n}, options),
         counts = empty(Dims{n}, options);
  const int64_t count = kernels<RunKernels>(x.device())
                            .of_rows(x.dtype(), x.data(), n, m, sort, first.data_as<int64_t>(),
                                     counts.data_as<int64_t>(), inverse.data_as<int64_t>());
  return {first_of(first, count), inverse, first_of(counts, count)};
}

// The unique elements of a contiguous real vector, the index of each element among them (if
// `inverse`), and the counts (if `count_them`). Without `sort`, only adjacent elements are
// compared.
TensorList unique_numbers(const Tensor& x, bool inverse, bool count_them, bool sort) {
  const int64_t n = x.numel();
  const Options options{DType::Int64, x.device()};
  const RunKernels& runs = kernels<RunKernels>(x.device());
  Tensor sorted = x, order, run_of = empty(Dims{inverse ? n : 0}, options);
  if (sort) {
    sorted = empty(Dims{n}, x.options());
    order = empty(Dims{n}, options);
    SortLines l;
    l.n = l.k = n;
    l.x_stride = l.out_stride = 1;
    kernels<SortKernels>(x.device())
        .sort(x.data(), sorted.data(), order.data_as<int64_t>(), l, x.dtype(), false, true);
  }
  if (!count_them && !inverse && n > 0) {
    Tensor values = empty(Dims{n}, x.options());
    return {first_of(values, runs.take_first(x.dtype(), sorted.data(), n, values.data())), run_of,
            run_of};
  }
  const int64_t count = runs.count(x.dtype(), sorted.data(), n);
  Tensor values = empty(Dims{count}, x.options()), counts = empty(Dims{count}, options);
  if (n > 0) {
    runs.split(x.dtype(), sorted.data(), n, count, sort ? order.data_as<int64_t>() : nullptr,
               values.data(), counts.data_as<int64_t>(),
               inverse ? run_of.data_as<int64_t>() : nullptr);
  }
  return {values, run_of, counts};
}

TensorList unique_of(const Tensor& x, std::optional<int64_t> dim, bool sort, bool inverse,
                     bool counts) {
  check<NotImplemented>(
      !x.is_meta(), "unique(): the size of the result depends on data, which meta tensors lack");
  GradMode off(false);
  if (!dim) {
    Tensor flat = raw_contiguous(x);
    flat = raw_view(flat, Dims{x.numel()}, Dims{1}, flat.offset());
    if (!is_complex(x.dtype())) {
      TensorList found = unique_numbers(flat, inverse, counts, sort);
      if (inverse) found[1] = raw_view(found[1], x.sizes(), contiguous_strides(x.sizes()), 0);
      return found;
    }
    TensorList found = unique_rows(flat, x.numel(), 1, sort);
    return {op<"index_select">(flat, 0, found[0]),
            raw_view(found[1], x.sizes(), contiguous_strides(x.sizes()), 0), found[2]};
  }
  int64_t d = wrap_dim(*dim, x.dim()), n = x.size(d);
  check(x.numel() > 0 || n == 0,
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  Tensor rows = raw_contiguous(alias(op<"movedim">(x, Dims{d}, Dims{0})));
  if (n > 0 && x.numel() == n && !is_complex(x.dtype())) {
    TensorList found =
        unique_numbers(raw_view(rows, Dims{n}, Dims{1}, rows.offset()), inverse, counts, sort);
    Dims sizes(x.sizes());
    sizes[static_cast<size_t>(d)] = found[0].numel();
    found[0] = raw_view(found[0], sizes, contiguous_strides(sizes), 0);
    return found;
  }
  TensorList found = unique_rows(rows, n, n ? x.numel() / n : 0, sort);
  found[0] = op<"index_select">(x, d, found[0]);
  return found;
}
TensorList unique_op(const Tensor& x, std::optional<int64_t> dim, bool inverse, bool counts) {
  return unique_of(x, dim, true, inverse, counts);
}
TensorList unique_consecutive_op(const Tensor& x, std::optional<int64_t> dim, bool inverse,
                                 bool counts) {
  return unique_of(x, dim, false, inverse, counts);
}

// ---- counts ----

Tensor bincount_op(const Tensor& x, const Tensor& weights, int64_t minlength) {
  if (!is_integral(x.dtype(), false))
    fail<NotImplemented>("\"bincount_cpu\" not implemented for '", x.dtype(), "'");
  check<NotImplemented>(
      !x.is_meta(), "bincount(): the size of the result depends on data, which meta tensors lack");
  check(minlength >= 0, "minlength should be >= 0");
  const char* wrong = "bincount only supports 1-d non-negative integral inputs.";
  check(x.dim() == 1, wrong);
  check(!weights.defined() || (weights.dim() == 1 && weights.numel() == x.numel()),
        "weights should be 1-d and have the same length as input");
  check(!weights.defined() || !is_complex(weights.dtype()), "bincount(): weights must be real");
  const DType whole = is_storage_only(x.dtype()) ? DType::Int64 : x.dtype();
  Tensor values = raw_contiguous(raw_cast(x, weights.defined() ? DType::Int64 : whole));
  const int64_t n = values.numel();
  const CountKernels& k = kernels<CountKernels>(x.device());
  const auto [least, most] =
      n ? k.range(values.data(), n, values.dtype()) : std::pair<int64_t, int64_t>(0, -1);
  check(least >= 0, wrong);
  check(most < std::numeric_limits<int64_t>::max(), "bincount(): the value ", most,
        " is too large to count up to");
  const int64_t bins = std::max(most + 1, minlength);
  if (!weights.defined()) {
    Tensor out = raw_zeros(Dims{bins}, {DType::Int64, x.device()});
    k.count(values.data(), n, values.dtype(), bins, out.data_as<int64_t>());
    return out;
  }
  DType d = weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  Tensor w = raw_contiguous(raw_cast(weights, d)), out = raw_zeros(Dims{bins}, {d, x.device()});
  if (n > 0) {
    IndexLayout l;
    l.offsets = values.data_as<int64_t>();
    l.count = n;
    l.count_flat = 1;
    kernels<ScatterKernels>(x.device()).accumulate(out.data(), w.data(), l, d);
  }
  return out;
}

Tensor histc_op(const Tensor& x, int64_t bins, Scalar min, Scalar max) {
  if (is_half(x.dtype()))
    return raw_cast(histc_op(raw_cast(x, DType::Float32), bins, min, max), x.dtype());
  if (!is_floating(x.dtype())) {
    fail<NotImplemented>("\"histogram_cpu\" not implemented for '", x.dtype(), "'");
  }
  check(bins > 0, "bins must be > 0, but got ", bins, " for dimension 0");
  check(bins <= kMostBins, "histc(): bins must be at most ", kMostBins, ", but got ", bins);
  if (x.is_meta()) return empty(Dims{bins}, x.options());
  Tensor flat = raw_contiguous(x), counts = raw_zeros(Dims{bins}, {DType::Int64, x.device()});
  visit_floating(x.dtype(), "histc", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T low = min.to<T>(), high = max.to<T>();
    if (low == high && flat.numel() > 0) {
      GradMode off(false);
      low = op<"amin">(flat).item().to<T>();
      high = op<"amax">(flat).item().to<T>();
    }
    check(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high,
          "] is not finite");
    if (low == high) {
      low -= 1;
      high += 1;
    }
    check(low < high, "max must be larger than min");
    kernels<HistogramKernels<T>>(x.device())
        .even(flat.data_as<T>(), flat.numel(), low, high, bins, counts.data_as<int64_t>());
  });
  return raw_cast(counts, x.dtype());
}

const Define kCompareOps[] = {
    {"isclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: "
     "bool = False) -> Tensor",
     "Where |self - other| <= atol + rtol * |other|, as bool. Infinities are close to themselves, "
     "NaN to NaN if `equal_nan`.",
     kernel(isclose_op),
     {.non_differentiable = 1, .vmap = vmap::elementwise}},
    {"allclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: "
     "bool = False) -> bool",
     "Whether `isclose` holds everywhere.", kernel(allclose_op)},
    {"equal(self: Tensor, other: Tensor) -> bool",
     "Whether both have one shape and the same elements.", kernel(equal_op)},
    {"_unique(self: Tensor, dim: int? = None, inverse: bool = True, counts: bool = True) -> "
     "(Tensor, Tensor, Tensor)",
     "The different elements in order (or the different slices along `dim`), for each element the "
     "place of its like (without `inverse` perhaps nothing), and how often each occurs (without "
     "`counts` perhaps nothing).",
     kernel(unique_op),
     {.non_differentiable = 6, .vmap = vmap::dynamic}},
    {"_unique_consecutive(self: Tensor, dim: int? = None, inverse: bool = True, counts: bool = "
     "True) -> (Tensor, Tensor, Tensor)",
     "The same, where only neighbours are compared and the order is kept.",
     kernel(unique_consecutive_op),
     {.non_differentiable = 6, .vmap = vmap::dynamic}},
    {"bincount(self: Tensor, weights: Tensor? = None, minlength: int = 0) -> Tensor",
     "How often each of the numbers 0, 1, ... occurs in a vector of integers, or the sum of its "
     "`weights`.",
     kernel(bincount_op),
     {.non_differentiable = 1}},
    {"histc(self: Tensor, bins: int = 100, min: Scalar = 0, max: Scalar = 0) -> Tensor",
     "How many elements lie in each of `bins` equal intervals from `min` to `max`, or of the "
     "elements' own range.",
     kernel(histc_op),
     {.forms = kPublic | kOut, .non_differentiable = 1}},
};

}  // namespace
}  // namespace taeda
