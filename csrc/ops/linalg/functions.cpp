// Functions of matrices: exponentials, powers, chains of products; tensors seen as matrices.
#include <array>
#include <cmath>
#include <vector>

#include "kernels/matrices.h"
#include "ops/linalg/linalg.h"

namespace taeda {
namespace {

// ---- exponential ----

// Rational approximations to exp, each good to the precision of double, or of float, for matrices
// of a 1-norm up to a bound (Higham, 2005); the coefficients of the numerator, the lowest first.
struct Pade {
  double bound_f64, bound_f32;
  std::vector<double> terms;
};
const std::array<Pade, 5>& pades() {
  constexpr double none = -1;
  static const std::array<Pade, 5> all{
      Pade{1.495585217958292e-2, 4.258730016922831e-1, {120, 60, 12, 1}},
      Pade{2.539398330063230e-1, 1.880152677804762, {30240, 15120, 3360, 420, 30, 1}},
      Pade{9.504178996162932e-1,
           3.925724783138660,
           {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
      Pade{
          2.097847961257068,
          none,
          {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
      Pade{5.371920351148152,
           none,
           {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
            129060195264000., 10559470521600., 670442572800., 33522128640., 1323241920., 40840800.,
            960960., 16380., 182., 1.}}};
  return all;
}
bool is_single(const Tensor& a) { return to_real(a.dtype()) == DType::Float32; }
double bound_of(const Pade& p, const Tensor& a) { return is_single(a) ? p.bound_f32 : p.bound_f64; }
double largest_bound(const Tensor& a) {
  double most = 0;
  for (const Pade& p : pades()) most = std::max(most, bound_of(p, a));
  return most;
}

// exp(a) for matrices of a 1-norm up to `norm`, which is at most largest_bound(a).
Tensor pade(const Tensor& a, double norm) {
  const Pade* chosen = &pades().back();
  for (const Pade& p : pades()) {
    if (norm <= bound_of(p, a)) {
      chosen = &p;
      break;
    }
  }
  const std::vector<double>& terms = chosen->terms;
  const size_t degree = terms.size() - 1;
  Tensor eye = identity(a.size(-1), a.options());
  std::vector<Tensor> powers{eye, matmul(a, a)};  // of the square
  while (powers.size() < 4 && 2 * powers.size() <= degree)
    powers.push_back(matmul(powers.back(), powers[1]));
  if (degree == 9) powers.push_back(matmul(powers[2], powers[2]));
  auto sums = [&](size_t c) {  // of every second coefficient, starting with the c-th
    const size_t last = degree == 13 ? 3 : degree / 2;
    Tensor sum = eye * terms[c];
    for (size_t k = 1; k <= last; ++k) sum = sum + powers[k] * terms[2 * k + c];
    if (degree != 13) return sum;
    Tensor high = powers[3] * terms[12 + c] + powers[2] * terms[10 + c] + powers[1] * terms[8 + c];
    return sum + matmul(powers[3], high);
  };
  Tensor odd = matmul(a, sums(1)), even = sums(0);
  return ops<"linalg_solve_ex">(even - odd, even + odd, true, false)[0];
}

Tensor matrix_exp_raw(const Tensor& a) {
  check_square("linalg.matrix_exp", a);
  if (a.is_meta() || a.numel() == 0) return empty(a.sizes(), a.options());
  GradMode off(false);
  // Scaling and squaring, with a number of steps for each matrix.
  Tensor norm = op<"linalg_matrix_norm">(a, Scalar(1.0), Dims{-2, -1}, true, std::nullopt);
  norm = contiguous(to(norm, DType::Float64));
  Tensor halvings = empty(norm.sizes(), {DType::Int64, a.device()}),
         scale = empty(norm.sizes(), {DType::Float64, a.device()});
  const auto [most, largest] = kernels<LinalgKernels>(a.device())
                                   .halve(norm.numel(), largest_bound(a), norm.data_as<double>(),
                                          halvings.data_as<int64_t>(), scale.data_as<double>());
  Tensor x = pade(a * to(scale, to_real(a.dtype())), largest);
  for (int64_t i = 0; i < most; ++i) {
    Tensor squared = matmul(x, x);
    x = norm.numel() == 1 ? squared : where(halvings > Tensor(Scalar(i)), squared, x);
  }
  return x;
}
// The upper right block of exp([[A^H, g], [0, A^H]]).
void matrix_exp_backward(Backward& b) {
  Tensor a = adjoint(b.arg<Tensor>(0));
  const int64_t n = a.size(-1);
  Tensor upper = op<"cat">(TensorList{a, b.grad()}, -1);
  Tensor lower = op<"cat">(TensorList{zeros_like(a), a}, -1);
  Tensor both = op<"linalg_matrix_exp">(op<"cat">(TensorList{upper, lower}, -2));
  b.set(0, narrow(narrow(both, -2, 0, n), -1, n, n));
}
Tensor matrix_exp(const Tensor& a) { return op<"linalg_matrix_exp">(a); }

// ---- powers and chains ----

Tensor matrix_power(const Tensor& a, int64_t n) {
  check(a.dim() >= 2 && a.size(-1) == a.size(-2),
        "linalg.matrix_power: A must be batches of square "
        "matrices, got shape ",
        to_string(a.sizes()));
  if (n == 0) {  // through `where`, so that the gradient is zeros, not missing
    Tensor eye = expand(identity(a.size(-1), a.options()), a.sizes());
    return where(zeros(Dims{}, {DType::Bool, a.device()}), a, eye);
  }
  if (n == 1) return clone(a);
  uint64_t left = n < 0 ? uint64_t(0) - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  Tensor power = n < 0 ? op<"linalg_inv">(a) : a, result;
  for (;; power = matmul(power, power)) {
    if (left & 1) result = result.defined() ? matmul(result, power) : power;
    left >>= 1;
    if (!left) return result;
  }
}

// The cheapest order of a chain of products (by the number of multiplications), by the recurrence
// over where the last product splits the chain.
class Chain {
 public:
  explicit Chain(const TensorList& matrices) : matrices_(matrices), n_(matrices.size()) {
    cost_.assign(n_ * n_, 0);
    split_.assign(n_ * n_, 0);
    for (size_t length = 1; length < n_; ++length) {
      for (size_t i = 0; i + length < n_; ++i) plan(i, i + length);
    }
  }
  Tensor product() const { return product(0, n_ - 1); }

 private:
  void plan(size_t i, size_t j) {
    for (size_t k = i; k < j; ++k) {
      const double cost = cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] +
                          static_cast<double>(matrices_[i].size(0)) *
                              static_cast<double>(matrices_[k].size(1)) *
                              static_cast<double>(matrices_[j].size(1));
      if (k == i || cost < cost_[i * n_ + j]) {
        cost_[i * n_ + j] = cost;
        split_[i * n_ + j] = k;
      }
    }
  }
  Tensor product(size_t i, size_t j) const {
    if (i == j) return matrices_[i];
    const size_t k = split_[i * n_ + j];
    return op<"mm">(product(i, k), product(k + 1, j));
  }

  const TensorList& matrices_;
  size_t n_;
  std::vector<double> cost_;
  std::vector<size_t> split_;
};

Tensor multi_dot(const TensorList& tensors) {
  const size_t n = tensors.size();
  check(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  TensorList m = tensors;
  Dims sizes;
  for (size_t i = 0; i < n; ++i) {
    const bool end = i == 0 || i + 1 == n;
    check(m[i].dim() == 2 || (end && m[i].dim() == 1), "multi_dot(): tensor ", i, " must be ",
          end ? "1D or 2D" : "2D", " but got ", m[i].dim(), "D");
    check(m[i].dtype() == m[0].dtype(),
          "multi_dot(): all tensors must have the same dtype, but "
          "tensor ",
          i, " is ", m[i].dtype(), " and the first is ", m[0].dtype());
    check(m[i].device() == m[0].device(), "multi_dot(): all tensors must be on the same device");
  }
  if (m[0].dim() == 1) m[0] = unsqueeze(m[0], 0);
  else sizes.push_back(m[0].size(0));
  if (m[n - 1].dim() == 1) m[n - 1] = unsqueeze(m[n - 1], 1);
  else sizes.push_back(m[n - 1].size(1));
  for (size_t i = 1; i < n; ++i) {
    check(m[i - 1].size(1) == m[i].size(0), "multi_dot(): tensors ", i - 1, " and ", i,
          " with shapes ", to_string(m[i - 1].sizes()), " and ", to_string(m[i].sizes()),
          " cannot be multiplied");
  }
  return reshape(Chain(m).product(), sizes);
}

// ---- tensors as matrices ----

int64_t product_of(DimsRef sizes) { return numel_of(sizes); }

Tensor tensorinv(const Tensor& a, int64_t ind) {
  check(ind > 0 && ind <= a.dim(),
        "linalg.tensorinv: ind must lie between 1 and the number of "
        "dimensions of input, ",
        a.dim(), ", got ", ind);
  auto front = a.sizes().first(static_cast<size_t>(ind));
  auto back = a.sizes().subspan(static_cast<size_t>(ind));
  check(product_of(front) == product_of(back), "linalg.tensorinv: the product of the first ", ind,
        " sizes must equal that of the others, got shape ", to_string(a.sizes()));
  Dims sizes(back);
  for (int64_t n : front) sizes.push_back(n);
  const int64_t n = product_of(front);
  return reshape(op<"linalg_inv">(reshape(a, Dims{n, n})), sizes);
}

Tensor tensorsolve(const Tensor& a, const Tensor& b, std::optional<Dims> dims) {
  Tensor moved = a;
  if (dims) {
    Dims last;
    for (size_t i = 0; i < dims->size(); ++i)
      last.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(dims->size()));
    moved = op<"movedim">(a, *dims, last);
  }
  check(moved.dim() >= b.dim(),
        "linalg.tensorsolve: A must have at least as many dimensions as B, "
        "got shapes ",
        to_string(a.sizes()), " and ", to_string(b.sizes()));
  auto sizes = moved.sizes().subspan(static_cast<size_t>(b.dim()));
  const int64_t n = product_of(sizes);
  check(b.numel() == n && moved.numel() == n * n,
        "linalg.tensorsolve: prod(A.shape[B.ndim:]) must "
        "equal prod(B.shape), got shapes ",
        to_string(moved.sizes()), " and ", to_string(b.sizes()));
  return reshape(op<"linalg_solve">(reshape(moved, Dims{n, n}), reshape(b, Dims{n}), true),
                 Dims(sizes));
}

Tensor vander(const Tensor& self, std::optional<int64_t> columns) {
  Tensor x = self.dim() == 0 ? unsqueeze(self, 0) : self;
  check(x.dtype() != DType::Bool, "linalg.vander: x must not be of dtype bool");
  const int64_t n = columns.value_or(x.size(-1));
  check(n > 1, "linalg.vander: N must be greater than 1, got ", n);
  Dims sizes(x.sizes());
  sizes.push_back(n - 1);
  Tensor powers = op<"cumprod">(expand(unsqueeze(x, -1), sizes), -1);
  sizes.back() = 1;
  return op<"cat">(TensorList{full(sizes, Scalar(1), powers.options()), powers}, -1);
}

Tensor linalg_diagonal(const Tensor& a, int64_t offset, int64_t dim1, int64_t dim2) {
  return op<"diagonal">(a, offset, dim1, dim2);
}
Tensor linalg_matmul(const Tensor& self, const Tensor& other) { return matmul(self, other); }

const Define kFunctionsOps[] = {
    {"linalg_matrix_exp(self: Tensor) -> Tensor",
     "The exponential of square matrices (*, n, n), by scaling and squaring of a rational "
     "approximation (Higham, The scaling and squaring method for the matrix exponential revisited, "
     "2005).",
     kernel(matrix_exp_raw),
     {.backward = matrix_exp_backward,
      .saves = saves_arg(0),
      .forms = kFunction,
      .module = "linalg",
      .heavy = true,
      .vmap = vmap::leading(2)}},
    {"matrix_exp(self: Tensor) -> Tensor",
     "The same as `linalg.matrix_exp`.",
     kernel(matrix_exp),
     {.composite = true, .heavy = true}},
    {"linalg_matrix_power(self: Tensor, n: int) -> Tensor",
     "Square matrices (*, m, m) to the power n, by repeated squaring: the inverse's power where n "
     "is "
     "negative, the identity where it is 0.",
     kernel(matrix_power), kLinalg.with(OutDtype::Castable)},
    {"matrix_power(self: Tensor, n: int) -> Tensor", "The same as `linalg.matrix_power`.",
     kernel(matrix_power), kLinalgMethod.with(OutDtype::Castable)},
    {"linalg_multi_dot(tensors: Tensor[]) -> Tensor",
     "The product of two or more matrices, in the order of multiplications that is cheapest. The "
     "first and the last may be vectors.",
     kernel(multi_dot), kLinalg.with(Precision::Lower)},
    {"linalg_tensorinv(self: Tensor, ind: int = 2) -> Tensor",
     "The inverse of the map from the last dimensions to the first `ind` ones: "
     "tensordot(result, x, ind) undoes tensordot(self, x, self.dim() - ind). Shape: the last "
     "sizes, "
     "then the first.",
     kernel(tensorinv), kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"linalg_tensorsolve(self: Tensor, other: Tensor, dims: int[]? = None) -> Tensor",
     "X of tensordot(self, X, X.dim()) = other, after the dimensions `dims` of `self` have been "
     "moved "
     "to the end.",
     kernel(tensorsolve), kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"linalg_vander(x: Tensor, *, N: int? = None) -> Tensor",
     "Matrices whose rows hold the powers 0, 1, ..., N - 1 of the elements of vectors (*, n): "
     "shape "
     "(*, n, N), N = n unless it is given.",
     kernel(vander),
     {.forms = kFunction, .composite = true, .module = "linalg", .heavy = true}},
    {"linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor",
     "`diagonal`, by default of the last two dimensions.",
     kernel(linalg_diagonal),
     {.forms = kFunction, .composite = true, .module = "linalg", .heavy = true}},
    {"linalg_matmul(self: Tensor, other: Tensor) -> Tensor", "The same as `matmul`.",
     kernel(linalg_matmul), kLinalg.with(Precision::Lower)},
};

}  // namespace
}  // namespace taeda
