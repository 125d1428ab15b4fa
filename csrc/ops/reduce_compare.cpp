// Whole-tensor comparisons and counts of values: isclose, allclose, equal, unique, bincount, histc.
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/cpu/index/histogram.h"
#include "kernels/cpu/index/sort.h"
#include "kernels/reduce.h"
#include "ops/reduce_util.h"

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

// Groups of equal neighbours, in the order `order` of n rows; differ(i, j) compares rows.
struct Groups {
  std::vector<int64_t> first;  // the representative row of each group
  std::vector<int64_t> counts;
  Tensor inverse;  // the group of every row
};
template <class F> Groups group(const std::vector<int64_t>& order, F&& differ) {
  Groups g;
  auto n = static_cast<int64_t>(order.size());
  g.inverse = empty(Dims{n}, {DType::Int64, {}});
  auto* inverse = g.inverse.data_as<int64_t>();
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || differ(order[i - 1], order[i])) {
      g.first.push_back(order[i]);
      g.counts.push_back(0);
    }
    ++g.counts.back();
    inverse[order[i]] = static_cast<int64_t>(g.first.size()) - 1;
  }
  return g;
}

Tensor vector_of(const std::vector<int64_t>& v) {
  Tensor t = empty(Dims{static_cast<int64_t>(v.size())}, {DType::Int64, {}});
  std::copy(v.begin(), v.end(), t.data_as<int64_t>());
  return t;
}

// Sort order: NaN comes after all numbers; it equals nothing, not even itself.
template <class T> bool before(T a, T b) {
  if constexpr (std::is_same_v<T, cfloat> || std::is_same_v<T, cdouble>) {
    if (a.real() != b.real()) return before(a.real(), b.real());
    return before(a.imag(), b.imag());
  } else {
    return a < b || (b != b && a == a);
  }
}

// Unique rows of a contiguous (n, m) tensor.
Groups unique_rows(const Tensor& x, int64_t n, int64_t m, bool sort) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return visit_all(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = x.data_as<T>();
    if (sort) {
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return std::lexicographical_compare(p + a * m, p + (a + 1) * m, p + b * m, p + (b + 1) * m,
                                            before<T>);
      });
    }
    return group(order, [&](int64_t a, int64_t b) {
      return !std::equal(p + a * m, p + (a + 1) * m, p + b * m);
    });
  });
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] int64_t count_runs(const T* v, int64_t n) {
  int64_t count = n > 0 ? 1 : 0;
  for (int64_t i = 1; i < n; ++i) count += static_cast<int64_t>(v[i] != v[i - 1]);
  return count;
}
// Converts start offsets of runs to their lengths, in place.
[[gnu::optimize("O3"), gnu::noinline]] void to_lengths(int64_t* begin, int64_t count, int64_t end) {
  for (int64_t i = 0; i + 1 < count; ++i) begin[i] = begin[i + 1] - begin[i];
  begin[count - 1] = end - begin[count - 1];
}

// Writes the first element of each run to `first`. Branch-free: every element is written, and
// overwritten by the next unless it starts a run. Returns the number of runs; n > 0.
template <class T>
[[gnu::optimize("O3"), gnu::noinline]] int64_t first_of_runs(const T* v, int64_t n, T* first) {
  int64_t count = 1;
  first[0] = v[0];
  for (int64_t i = 1; i < n; ++i) {
    first[count] = v[i];
    count += static_cast<int64_t>(v[i] != v[i - 1]);
  }
  return count;
}

// The unique elements of a contiguous real vector, the index of each element among them (if
// `inverse`), and the counts (if `count_them`). Without `sort`, only adjacent elements are
// compared.
TensorList unique_numbers(const Tensor& x, bool inverse, bool count_them, bool sort) {
  const int64_t n = x.numel();
  Tensor sorted = x, order, group_of = empty(Dims{inverse ? n : 0}, {DType::Int64, {}});
  if (sort) {
    sorted = empty(Dims{n}, x.options());
    order = empty(Dims{n}, {DType::Int64, {}});
    cpu::SortLines l;
    l.n = l.k = n;
    l.x_stride = l.out_stride = 1;
    cpu::sort_lines(x.data(), sorted.data(), order.data_as<int64_t>(), l, x.dtype(), false, true);
  }
  const int64_t* from = sort ? order.data_as<int64_t>() : nullptr;
  auto* to = group_of.data_as<int64_t>();
  return visit_real(x.dtype(), "unique", [&](auto tag) -> TensorList {
    using T = typename decltype(tag)::type;
    const T* v = sorted.data_as<T>();
    if (!count_them && !inverse && n > 0) {
      Tensor some = empty(Dims{n}, x.options());
      const int64_t count = first_of_runs(v, n, some.data_as<T>());
      some = raw_view(some, Dims{count}, Dims{1}, 0);
      return {count < n / 2 ? raw_clone(some) : some, group_of, group_of};
    }
    const int64_t count = count_runs(v, n);
    Tensor values = empty(Dims{count}, x.options()),
           counts = empty(Dims{count}, group_of.options());
    if (n == 0) return {values, group_of, counts};
    auto* c = counts.data_as<int64_t>();
    auto* different = values.data_as<T>();
    // Branch-free, from the end: the first element of each run is the last to write its value and
    // start.
    int64_t k = count - 1;
    for (int64_t i = n - 1; i > 0; --i) {
      const auto before = static_cast<int64_t>(v[i] != v[i - 1]);
      different[k] = v[i];
      c[k] = i;
      if (inverse) to[from ? from[i] : i] = k;
      k -= before;
    }
    different[0] = v[0];
    c[0] = 0;
    if (inverse) to[from ? from[0] : 0] = 0;
    to_lengths(c, count, n);
    return {values, group_of, counts};
  });
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
    Groups g = unique_rows(flat, x.numel(), 1, sort);
    return {op<"index_select">(flat, 0, vector_of(g.first)),
            raw_view(g.inverse, x.sizes(), contiguous_strides(x.sizes()), 0), vector_of(g.counts)};
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
  Groups g = unique_rows(rows, n, n ? x.numel() / n : 0, sort);
  return {op<"index_select">(x, d, vector_of(g.first)), g.inverse, vector_of(g.counts)};
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
  const auto [least, most] =
      n ? cpu::whole_range(values.data(), n, values.dtype()) : std::pair<int64_t, int64_t>(0, -1);
  check(least >= 0, wrong);
  check(most < std::numeric_limits<int64_t>::max(), "bincount(): the value ", most,
        " is too large to count up to");
  const int64_t bins = std::max(most + 1, minlength);
  if (!weights.defined()) {
    Tensor out = raw_zeros(Dims{bins}, {DType::Int64, x.device()});
    cpu::count_whole(values.data(), n, values.dtype(), bins, out.data_as<int64_t>());
    return out;
  }
  const auto* v = values.data_as<int64_t>();
  DType d = weights.dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  Tensor w = raw_contiguous(raw_cast(weights, d)), out = raw_zeros(Dims{bins}, {d, x.device()});
  visit_floating(d, "bincount", [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < n; ++i) out.data_as<T>()[v[i]] += w.data_as<T>()[i];
  });
  return out;
}

Tensor histc_op(const Tensor& x, int64_t bins, Scalar min, Scalar max) {
  if (is_half(x.dtype()))
    return raw_cast(histc_op(raw_cast(x, DType::Float32), bins, min, max), x.dtype());
  if (!is_floating(x.dtype())) {
    fail<NotImplemented>("\"histogram_cpu\" not implemented for '", x.dtype(), "'");
  }
  check(bins > 0, "bins must be > 0, but got ", bins, " for dimension 0");
  if (x.is_meta()) return empty(Dims{bins}, x.options());
  Tensor flat = raw_contiguous(x), counts = raw_zeros(Dims{bins}, {DType::Int64, x.device()});
  visit_floating(x.dtype(), "histc", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T low = min.to<T>(), high = max.to<T>();
    if (low == high && flat.numel() > 0) {
      GradMode off(false);
      low = *op<"amin">(flat).template data_as<T>();
      high = *op<"amax">(flat).template data_as<T>();
    }
    check(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high,
          "] is not finite");
    if (low == high) {
      low -= 1;
      high += 1;
    }
    check(low < high, "max must be larger than min");
    cpu::count_even(flat.data_as<T>(), flat.numel(), low, high, bins, counts.data_as<int64_t>());
  });
  return raw_cast(counts, x.dtype());
}

const Define kOps[] = {
    {"isclose(self: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: "
     "bool = False) -> Tensor",
     "Where |self - other| <= atol + rtol * |other|, as bool. Infinities are close to themselves, "
     "NaN to NaN if `equal_nan`.",
     kernel(isclose_op),
     {.non_differentiable = 1}},
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
     {.non_differentiable = 6}},
    {"_unique_consecutive(self: Tensor, dim: int? = None, inverse: bool = True, counts: bool = "
     "True) -> (Tensor, Tensor, Tensor)",
     "The same, where only neighbours are compared and the order is kept.",
     kernel(unique_consecutive_op),
     {.non_differentiable = 6}},
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
