// Integrals by the trapezoidal rule.
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

// Sums of adjacent elements along `dim`.
Tensor neighbours(const Tensor& y, int64_t dim) {
  const int64_t n = y.size(dim);
  return narrow(y, dim, 1, n - 1) + narrow(y, dim, 0, n - 1);
}
Tensor steps(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(dim);
  return narrow(x, dim, 1, n - 1) - narrow(x, dim, 0, n - 1);
}
// `t` with leading dimensions of size 1, up to `rank` dimensions.
Tensor padded(const Tensor& t, int64_t rank) {
  Dims sizes(t.sizes());
  while (static_cast<int64_t>(sizes.size()) < rank) sizes.insert(0, 1);
  return reshape(t, sizes);
}

void check_samples(const char* what, const Tensor& y) {
  check(y.dtype() != DType::Bool, what, "(): received a bool input for `y`, but bool is not ",
        "supported");
}

// Twice the trapezoid areas between adjacent samples at x.
Tensor areas(const char* what, const Tensor& y, const Tensor& x, int64_t dim) {
  check_samples(what, y);
  check(x.dtype() != DType::Bool, what, "(): received a bool input for `x`, but bool is not ",
        "supported");
  if (x.dim() == 1) {
    check(x.numel() == y.size(dim), what,
          "(): There must be one `x` value for each sample point: ", x.numel(), " values for ",
          y.size(dim), " samples");
    Tensor dx = steps(x, 0);
    Dims along(y.sizes().size(), 1);
    along[static_cast<size_t>(wrap_dim(dim, y.dim()))] = dx.numel();
    return neighbours(y, dim) * reshape(dx, along);
  }
  const int64_t rank = std::max(x.dim(), y.dim());
  Tensor wide_y = padded(y, rank), wide_x = padded(x, rank);
  return neighbours(wide_y, dim) * steps(wide_x, dim);
}

bool no_samples(const Tensor& y, int64_t dim) { return y.size(dim) == 0; }
Tensor no_area(const Tensor& y, int64_t dim) {
  Dims sizes(y.sizes());
  sizes.erase(static_cast<size_t>(wrap_dim(dim, y.dim())));
  return zeros(sizes, y.options());
}

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  if (no_samples(y, dim)) return no_area(y, dim);
  return sum(areas("trapezoid", y, x, dim), Dims{dim}) / 2.0;
}
Tensor trapezoid_even(const Tensor& y, Scalar dx, int64_t dim) {
  if (no_samples(y, dim)) return no_area(y, dim);
  check_samples("trapezoid", y);
  check(!dx.is_complex(), "trapezoid(): Currently, we only support dx as a real number.");
  // Every sample counts fully but the first and the last.
  const Tensor ends = op<"select">(y, dim, int64_t{0}) + op<"select">(y, dim, int64_t{-1});
  return (sum(y, Dims{dim}) - ends * 0.5) * dx.to_double();
}
Tensor cumulative(const Tensor& y, const Tensor& x, int64_t dim) {
  if (no_samples(y, dim)) return no_area(y, dim);
  return op<"cumsum">(areas("cumulative_trapezoid", y, x, dim), dim, std::nullopt) / 2.0;
}
Tensor cumulative_even(const Tensor& y, Scalar dx, int64_t dim) {
  if (no_samples(y, dim)) return no_area(y, dim);
  check_samples("cumulative_trapezoid", y);
  check(!dx.is_complex(),
        "cumulative_trapezoid(): Currently, we only support dx as a real number.");
  return op<"cumsum">(neighbours(y, dim), dim, std::nullopt) * (dx.to_double() / 2);
}

constexpr Traits kComposite{.forms = kFunction, .composite = true};

const Define kCalculusOps[] = {
    {"trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor",
     "The integral of samples `y` along `dim` by the trapezoidal rule. `x` says where they were "
     "taken: one vector for all, or a tensor that broadcasts.",
     kernel(trapezoid), kComposite},
    {"trapezoid(y: Tensor, *, dx: Scalar = 1, dim: int = -1) -> Tensor",
     "The same for samples that are `dx` apart.", kernel(trapezoid_even), kComposite},
    {"trapz(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor", "The same as `trapezoid`.",
     kernel(trapezoid), kComposite},
    {"trapz(y: Tensor, *, dx: Scalar = 1, dim: int = -1) -> Tensor", "The same as `trapezoid`.",
     kernel(trapezoid_even), kComposite},
    {"cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor",
     "The integrals of samples `y` from the first up to each later one; see `trapezoid`.",
     kernel(cumulative), kComposite},
    {"cumulative_trapezoid(y: Tensor, *, dx: Scalar = 1, dim: int = -1) -> Tensor",
     "The same for samples that are `dx` apart.", kernel(cumulative_even), kComposite},
};

}  // namespace
}  // namespace taeda
