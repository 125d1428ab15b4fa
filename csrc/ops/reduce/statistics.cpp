// Statistics of samples: covariance, quantiles, the most frequent value, histograms.
#include <cmath>
#include <limits>

#include "base/warn.h"
#include "kernels/histogram.h"
#include "kernels/runs.h"
#include "kernels/sort.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

using OptInt = std::optional<int64_t>;

// ---- cov, corrcoef ----

double number(const Tensor& t) { return t.item().to_double(); }

// Frequency and importance weights of the observations, multiplied; undefined where there are none.
Tensor observation_weights(const Tensor& fweights, const Tensor& aweights, int64_t count) {
  auto check_size = [&](const char* name, const Tensor& w) {
    check(w.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name,
          " with ", w.dim(), " dimensions");
    check(w.numel() == count, "cov(): expected ", name, " to have the same numel as there are ",
          "observations in the input but got ", w.numel(), " != ", count);
    GradMode off(false);
    check(w.is_meta() || !op<"any">(op<"lt">(w, Tensor(0))).item().to<bool>(), "cov(): ", name,
          " cannot be negative");
  };
  if (fweights.defined()) {
    check(is_integral(fweights.dtype(), false), "cov(): expected fweights to have integral dtype, ",
          "but got fweights with ", fweights.dtype(), " dtype");
    check_size("fweights", fweights);
  }
  if (!aweights.defined()) return fweights;
  check(is_floating(aweights.dtype()), "cov(): expected aweights to have floating point dtype, ",
        "but got aweights with ", aweights.dtype(), " dtype");
  check_size("aweights", aweights);
  return fweights.defined() ? fweights * aweights : aweights;
}

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  check(self.dim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input ",
        "with ", self.dim(), " dimensions");
  check(self.dtype() != DType::Bool, "cov(): bool dtype is not supported for input");
  Tensor x = self.dim() < 2 ? reshape(self, Dims{1, -1}) : self;
  const int64_t count = x.size(1);
  Tensor w = observation_weights(fweights, aweights, count);
  Tensor weighted = w.defined() ? x * w : x, mean;
  Tensor norm;
  if (!x.is_meta() && !w.defined() && count <= correction) {
    warn(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of "
        "observations.");
  }
  if (w.defined()) {
    Tensor total = op<"sum">(w);
    check(w.is_meta() || number(total) != 0, "cov(): weights sum to zero, can't be normalized");
    mean = sum(weighted, Dims{1}) / total;
    norm = aweights.defined() && correction != 0
               ? total - op<"sum">(w * aweights) / total * static_cast<double>(correction)
               : total - Tensor(Scalar(correction));
    norm = op<"clamp_min">(norm, Tensor(0));
  } else {
    mean = sum(weighted, Dims{1}) / Tensor(Scalar(count));
    norm = Tensor(Scalar(std::max<int64_t>(count - correction, 0)));
  }
  Tensor centered = x - unsqueeze(mean, 1);
  Tensor right = w.defined() ? centered * w : centered;
  return op<"squeeze">(matmul(centered, conj(op<"t">(right))) / norm);
}

Tensor corrcoef(const Tensor& self) {
  check(self.dim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an ",
        "input with ", self.dim(), " dimensions");
  Tensor c = op<"cov">(self);
  if (c.dim() == 0) return c / c;
  Tensor variance = op<"diagonal">(c, 0, 0, 1);
  const bool complex = is_complex(c.dtype());
  Tensor deviation = op<"sqrt">(complex ? op<"real">(variance) : variance);
  c = c / unsqueeze(deviation, 1) / unsqueeze(deviation, 0);
  auto clipped = [](const Tensor& t) { return op<"clamp">(t, Tensor(-1), Tensor(1)); };
  if (!complex) return clipped(c);
  return op<"complex">(clipped(op<"real">(c)), clipped(op<"imag">(c)));
}

// ---- quantile ----

Tensor quantile_of(const char* what, const Tensor& self, const Tensor& q, OptInt dim, bool keepdim,
                   const std::string& interpolation, bool ignore_nan) {
  check(self.numel() > 0, what, "() input tensor must be non-empty");
  check(q.dim() <= 1, what, "() q must be a scalar or 1D tensor, but got ", q.dim(), "D");
  check(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, what,
        "() input tensor must be either float or double dtype");
  check(q.dtype() == self.dtype(), what, "() q tensor must be same dtype as the input tensor, got ",
        q.dtype(), " and ", self.dtype());
  check(interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
            interpolation == "midpoint" || interpolation == "nearest",
        what, "() interpolation must be one of linear, lower, higher, midpoint or nearest, got ",
        interpolation);
  const int64_t d = dim ? wrap_dim(*dim, self.dim()) : 0;
  Tensor x = dim && self.dim() ? op<"movedim">(self, Dims{d}, Dims{-1}) : reshape(self, Dims{-1});
  Tensor sorted = ops<"sort">(x, -1, false, false)[0];

  Tensor ranks;  // (..., number of quantiles)
  Tensor points = q.dim() ? q : unsqueeze(q, 0);
  if (ignore_nan) {
    Tensor count = op<"sum">(!op<"isnan">(sorted), Dims{-1}, true);
    ranks = op<"clamp_min">(points * (count - Tensor(1)), Tensor(0));
  } else {
    const Tensor last(Scalar(x.size(-1) - 1));
    ranks = where(op<"any">(op<"isnan">(sorted), Dims{-1}, true), last, points * last);
  }
  ranks = to(ranks, self.dtype());
  if (interpolation == "lower") ranks = op<"floor">(ranks);
  else if (interpolation == "higher") ranks = op<"ceil">(ranks);
  else if (interpolation == "nearest") ranks = op<"round">(ranks);
  Tensor low = to(ranks, DType::Int64), out = op<"gather">(sorted, -1, low);
  if (interpolation == "linear" || interpolation == "midpoint") {
    Tensor share = interpolation == "linear" ? ranks - low : full(ranks.sizes(), 0.5, x.options());
    out = op<"lerp">(out, op<"gather">(sorted, -1, to(op<"ceil">(ranks), DType::Int64)), share);
  }

  if (keepdim && self.dim()) {
    if (dim) {
      out = op<"movedim">(unsqueeze(out, -1), Dims{-1}, Dims{d});
    } else {
      Dims ones(self.sizes().size(), 1);
      ones.push_back(points.numel());
      out = reshape(out, ones);
    }
  }
  return q.dim() ? op<"movedim">(out, Dims{-1}, Dims{0}) : squeeze(out, -1);
}

void check_quantiles(const char* what, const Tensor& q) {
  if (q.is_meta() || q.numel() == 0) return;
  GradMode off(false);
  Tensor inside = op<"ge">(q, Tensor(0)) & op<"le">(q, Tensor(1));
  check(op<"all">(inside).item().to<bool>(), what, "() q values must be in the range [0, 1]");
}
template <bool IgnoreNan>
Tensor quantile(const Tensor& self, const Tensor& q, OptInt dim, bool keepdim,
                const std::string& interpolation) {
  const char* what = IgnoreNan ? "nanquantile" : "quantile";
  check_quantiles(what, q);
  return quantile_of(what, self, q, dim, keepdim, interpolation, IgnoreNan);
}
template <bool IgnoreNan>
Tensor quantile_scalar(const Tensor& self, double q, OptInt dim, bool keepdim,
                       const std::string& interpolation) {
  const char* what = IgnoreNan ? "nanquantile" : "quantile";
  check(q >= 0 && q <= 1, what, "() q must be in the range [0, 1] but got ", q);
  return quantile_of(what, self, full({}, q, self.options()), dim, keepdim, interpolation,
                     IgnoreNan);
}

// ---- mode ----

TensorList mode(const Tensor& self, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.dim());
  const uint64_t mask = dim_bit(d, self.dim()) & all_dims(self.dim());
  check<IndexError>(self.dim() == 0 || self.size(d) > 0, "mode(): Expected reduction dim ", d,
                    " to have non-zero size.");
  Tensor values = empty(reduced_sizes(self.sizes(), mask, keepdim), self.options());
  Tensor indices = empty(values.sizes(), {DType::Int64, self.device()});
  if (self.is_meta() || values.numel() == 0) return {values, indices};
  GradMode off(false);
  Tensor x = self.dim() ? op<"movedim">(self, Dims{d}, Dims{-1}) : reshape(self, Dims{1});
  TensorList in_order = ops<"sort">(x, -1, false, true);
  Tensor sorted = raw_contiguous(in_order[0]), positions = raw_contiguous(in_order[1]);
  if (is_half(self.dtype())) unsupported_dtype("mode", self.dtype());
  kernels<RunKernels>(self.device())
      .modes(self.dtype(), sorted.data(), positions.data_as<int64_t>(), values.data(),
             indices.data_as<int64_t>(), values.numel(), x.size(-1));
  return {values, indices};
}
void mode_backward(Backward& b) {
  const Dims& s = b.sizes(0);
  const int64_t dim = b.arg<int64_t>(1);
  if (s.empty()) return b.set(0, b.grad());
  const bool keepdim = b.arg<bool>(2);
  Tensor g = keepdim ? b.grad() : unsqueeze(b.grad(), dim),
         positions = keepdim ? b.out(1) : unsqueeze(b.out(1), dim);
  b.set(0, op<"scatter">(zeros(s, g.options()), dim, positions, g));
}

// ---- histograms ----

// The given range, or the minimum and maximum of the data; a single value becomes an interval
// around it.
std::pair<double, double> bin_range(const char* what, const Tensor& x,
                                    const std::vector<double>& range, size_t at) {
  double low = 0, high = 1;
  if (!range.empty()) {
    low = range[at];
    high = range[at + 1];
  } else if (x.numel() > 0) {
    low = number(op<"amin">(x));
    high = number(op<"amax">(x));
  }
  check(std::isfinite(low) && std::isfinite(high), what, "(): range [", low, ", ", high,
        "] is not finite");
  check(low <= high, what, "(): min should not exceed max, but got min ", low, " max ", high);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  return {low, high};
}

// The bin of each element of a vector, or -1: [edge, next edge), the last one with its end.
Tensor bins_of(const Tensor& x, const Tensor& edges) {
  const int64_t bins = edges.numel() - 1;
  Tensor place = op<"searchsorted">(edges, contiguous(x), false, true) - Tensor(1);
  Tensor end = op<"select">(edges, 0, bins);
  place = where(x == end, Tensor(Scalar(bins - 1)), place);
  Tensor inside = (x >= op<"select">(edges, 0, 0)) & (x <= end);
  return where(inside, place, Tensor(-1));
}

void check_histogram(const char* what, const Tensor& self, const Tensor& weight) {
  if (!is_floating(self.dtype()) || is_half(self.dtype())) unsupported_dtype(what, self.dtype());
  if (!weight.defined()) return;
  check(weight.dtype() == self.dtype(), what,
        "(): if weight tensor is provided, input tensor and weight tensor should have the same ",
        "dtype, but got ", self.dtype(), " and ", weight.dtype());
}

Tensor as_density(Tensor hist, const TensorList& edges) {
  hist = hist / op<"sum">(hist);
  for (size_t d = 0; d < edges.size(); ++d) {
    Dims along(edges.size(), 1);
    along[d] = -1;
    hist = hist / reshape(op<"diff">(edges[d]), along);
  }
  return hist;
}

// `self` (N, D) counted into the D-dimensional grid of `edges`.
Tensor count_into(const char* what, const Tensor& self, const TensorList& edges,
                  const Tensor& weight, bool density) {
  check(!weight.defined() || weight.numel() == self.size(0), what,
        "(): if weight tensor is provided it should have one element for each point, but got ",
        "input of shape ", to_string(self.sizes()), " and weight of shape ",
        weight.defined() ? std::string(to_string(weight.sizes())) : "");
  Dims shape;
  Tensor flat, inside;
  for (size_t d = 0; d < edges.size(); ++d) {
    const int64_t bins = edges[d].numel() - 1;
    Tensor place = bins_of(op<"select">(self, 1, static_cast<int64_t>(d)), edges[d]);
    Tensor valid = place >= Tensor(0);
    flat = flat.defined() ? flat * Tensor(Scalar(bins)) + place : place;
    inside = inside.defined() ? inside & valid : valid;
    shape.push_back(bins);
  }
  Tensor w =
      weight.defined() ? reshape(weight, Dims{-1}) : full(Dims{self.size(0)}, 1.0, self.options());
  w = where(inside, w, Tensor(0));
  flat = where(inside, flat, Tensor(0));
  Tensor hist = op<"index_add">(zeros(Dims{numel_of(shape)}, self.options()), 0, flat, w);
  hist = reshape(hist, shape);
  return density ? as_density(hist, edges) : hist;
}

// Counts the elements of a vector between edges that are about equally spaced.
Tensor count_between(const Tensor& self, const Tensor& edges) {
  const int64_t bins = edges.numel() - 1;
  check(edges.dim() == 1 && bins >= 1 && edges.dtype() == self.dtype() &&
            edges.device() == self.device(),
        "_count_between(): expected two edges or more, of the dtype of self");
  check(bins <= kMostBins, "_count_between(): expected at most ", kMostBins, " bins, got ", bins);
  if (self.is_meta()) return empty(Dims{bins}, self.options());
  Tensor x = raw_contiguous(self), e = raw_contiguous(edges);
  Tensor counts = raw_zeros(Dims{bins}, {DType::Int64, self.device()});
  visit_floating(self.dtype(), "histogram", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<HistogramKernels<T>>(x.device())
        .between(x.data_as<T>(), x.numel(), e.data_as<T>(), bins, counts.data_as<int64_t>());
  });
  return raw_cast(counts, self.dtype());
}

Tensor even_edges(const char* what, const Tensor& x, int64_t bins, const std::vector<double>& range,
                  size_t at) {
  check(bins > 0, what, "(): bins must be > 0, but got ", bins);
  const auto [low, high] = bin_range(what, x, range, at);
  return op<"linspace">(Scalar(low), Scalar(high), bins + 1, x.dtype(), x.device());
}

void check_edges(const char* what, const Tensor& self, const Tensor& edges) {
  check(edges.dim() == 1, what, "(): bins tensor should have one dimension, but got ", edges.dim(),
        " dimensions");
  check(edges.numel() > 0, what, "(): bins tensor should not be empty");
  check(edges.dtype() == self.dtype(), what,
        "(): input tensor and bins tensors should have the same dtype, but got input with dtype ",
        self.dtype(), " and bins with dtype ", edges.dtype());
}

TensorList histogram_edges(const Tensor& self, const Tensor& bins, const Tensor& weight,
                           bool density) {
  check_histogram("histogram", self, weight);
  check_edges("histogram", self, bins);
  return {count_into("histogram", reshape(self, Dims{-1, 1}), {bins}, weight, density),
          clone(bins)};
}
TensorList histogram_count(const Tensor& self, int64_t bins,
                           const std::optional<std::vector<double>>& range, const Tensor& weight,
                           bool density) {
  check_histogram("histogram", self, weight);
  check(!range || range->size() == 2, "histogram(): range should have 2 elements");
  Tensor flat = reshape(self, Dims{-1});
  Tensor edges = even_edges("histogram", flat, bins, range.value_or(std::vector<double>{}), 0);
  if (weight.defined())
    return {count_into("histogram", unsqueeze(flat, 1), {edges}, weight, density), edges};
  Tensor hist = op<"_count_between">(flat, edges);
  return {density ? as_density(hist, {edges}) : hist, edges};
}

// [hist, edges...] of points along the last dimension.
TensorList histogramdd(const Tensor& self, const Dims& bins, const TensorList& edges,
                       const std::optional<std::vector<double>>& range, const Tensor& weight,
                       bool density) {
  const char* what = "histogramdd";
  check_histogram(what, self, weight);
  check(self.dim() >= 2, what, "(): input tensor should have at least 2 dimensions, but got ",
        self.dim());
  const int64_t n = self.size(-1);
  const int64_t given = static_cast<int64_t>(edges.empty() ? bins.size() : edges.size());
  check(given == n, what, "(): expected ", n, " sequences of bin edges for a ", n,
        "-dimensional histogram but got ", given);
  check(!range || static_cast<int64_t>(range->size()) == 2 * n, what, "(): for a ", n,
        "-dimensional histogram range should have ", 2 * n, " elements");
  Tensor points = reshape(self, Dims{-1, n});
  TensorList out{Tensor()};
  for (int64_t d = 0; d < n; ++d) {
    const auto i = static_cast<size_t>(d);
    if (!edges.empty()) check_edges(what, self, edges[i]);
    out.push_back(edges.empty() ? even_edges(what, op<"select">(points, 1, d), bins[i],
                                             range.value_or(std::vector<double>{}), 2 * i)
                                : clone(edges[i]));
  }
  out[0] = count_into(what, points, {out.begin() + 1, out.end()}, weight, density);
  return out;
}

// ---- ops ----

const Define kStatisticsOps[] = {
    {"cov(self: Tensor, *, correction: int = 1, fweights: Tensor? = None, aweights: Tensor? = "
     "None) -> Tensor",
     "The covariance matrix of variables (rows) over observations (columns). `fweights` says how "
     "often each observation occurs, `aweights` how much it counts; the sum is divided by their "
     "number less `correction`.",
     kernel(cov),
     {.composite = true}},
    {"corrcoef(self: Tensor) -> Tensor",
     "Pearson's correlation coefficients of variables (rows) over observations (columns).",
     kernel(corrcoef),
     {.composite = true}},
    {"quantile(self: Tensor, q: Tensor, dim: int? = None, keepdim: bool = False, *, "
     "interpolation: str = 'linear') -> Tensor",
     "The values below which the fractions `q` (0 to 1, of self's dtype) of the elements along "
     "`dim` lie, by default of all. Between two elements, `interpolation` decides: linear, lower, "
     "higher, midpoint or nearest. A vector `q` becomes the first dimension.",
     kernel(quantile<false>),
     {.forms = kPublic | kOut, .composite = true}},
    {"quantile(self: Tensor, q: float, dim: int? = None, keepdim: bool = False, *, "
     "interpolation: str = 'linear') -> Tensor",
     "The same for one fraction.",
     kernel(quantile_scalar<false>),
     {.forms = kPublic | kOut, .composite = true}},
    {"nanquantile(self: Tensor, q: Tensor, dim: int? = None, keepdim: bool = False, *, "
     "interpolation: str = 'linear') -> Tensor",
     "`quantile` of the elements that are not NaN.",
     kernel(quantile<true>),
     {.forms = kPublic | kOut, .composite = true}},
    {"nanquantile(self: Tensor, q: float, dim: int? = None, keepdim: bool = False, *, "
     "interpolation: str = 'linear') -> Tensor",
     "The same for one fraction.",
     kernel(quantile_scalar<true>),
     {.forms = kPublic | kOut, .composite = true}},
    {"mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> (values: Tensor, indices: "
     "Tensor)",
     "The value that comes most often along `dim`, the smallest of several, and where it last "
     "stands.",
     kernel(mode),
     {.backward = mode_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::along,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"histogram(self: Tensor, bins: Tensor, *, weight: Tensor? = None, density: bool = False) -> "
     "(hist: Tensor, bin_edges: Tensor)",
     "How many elements lie between neighbouring edges `bins`; each interval is without its end, "
     "but for the last. `weight` counts an element more or less; `density` makes the integral 1.",
     kernel(histogram_edges),
     {.forms = kPublic | kOut, .composite = true, .vmap = vmap::one_by_one}},
    {"histogram(self: Tensor, bins: int = 100, *, range: float[]? = None, weight: Tensor? = None, "
     "density: bool = False) -> (hist: Tensor, bin_edges: Tensor)",
     "The same in `bins` equal intervals of `range`, by default from the least element to the "
     "greatest.",
     kernel(histogram_count),
     {.forms = kPublic | kOut, .composite = true, .vmap = vmap::one_by_one}},
    {"_count_between(self: Tensor, edges: Tensor) -> Tensor",
     "How many elements of a vector lie between neighbouring edges of one dtype with it, which are "
     "about equally far from each other.",
     kernel(count_between),
     {.non_differentiable = 1}},
    {"_histogramdd(self: Tensor, bins: int[], edges: Tensor[], range: float[]?, weight: Tensor?, "
     "density: bool) -> Tensor[]",
     "The counts, then the edges of each dimension.",
     kernel(histogramdd),
     {.composite = true, .vmap = vmap::one_by_one}},
};

}  // namespace
}  // namespace taeda
