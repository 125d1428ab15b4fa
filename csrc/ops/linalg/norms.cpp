// Norms of matrices and vectors, condition numbers, products of vectors.
#include <cmath>
#include <limits>

#include "ops/linalg/linalg.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

// ---- matrix norms ----

// The two matrix dimensions, normalised to be non-negative and distinct.
std::pair<int64_t, int64_t> matrix_dims(const char* what, const Tensor& a, DimsRef dims) {
  check(a.dim() >= 2, what, ": The input tensor A must have at least 2 dimensions, got shape ",
        to_string(a.sizes()));
  check(dims.size() == 2, what, ": dim must be a 2-tuple. Got ", to_string(dims));
  const int64_t rows = wrap_dim(dims[0], a.dim(), what), cols = wrap_dim(dims[1], a.dim(), what);
  check(rows != cols, what, ": dims must be different. Got ", to_string(dims));
  return {rows, cols};
}

Tensor norm_input(const char* what, const Tensor& a, OptDType dtype) {
  check(is_inexact(a.dtype()), what, ": Expected a floating point or complex tensor as input. Got ",
        a.dtype());
  if (!dtype) return a;
  check(is_inexact(*dtype) && is_complex(*dtype) == is_complex(a.dtype()), what, ": dtype must be ",
        is_complex(a.dtype()) ? "complex" : "floating point", " for an input of ", a.dtype(),
        ", got ", *dtype);
  return to(a, *dtype);
}

// The largest (or smallest) along `dim`; 0 if there is none.
Tensor extreme(const Tensor& x, int64_t dim, bool largest, bool keepdim) {
  if (largest && x.size(dim) == 0) return op<"sum">(x, Dims{dim}, keepdim);
  return largest ? op<"amax">(x, Dims{dim}, keepdim) : op<"amin">(x, Dims{dim}, keepdim);
}

Tensor singular_values(const Tensor& a, int64_t rows, int64_t cols) {
  return op<"linalg_svdvals">(op<"movedim">(a, Dims{rows, cols}, Dims{-2, -1}));
}
// Restores the two reduced dimensions as size 1 for keepdim.
Tensor restore(Tensor x, int64_t rows, int64_t cols, bool keepdim) {
  if (!keepdim) return x;
  return unsqueeze(unsqueeze(x, std::min(rows, cols)), std::max(rows, cols));
}

Tensor matrix_norm(const Tensor& a_in, Scalar ord, DimsRef dims, bool keepdim, OptDType dtype) {
  const char* what = "linalg.matrix_norm";
  Tensor a = norm_input(what, a_in, dtype);
  auto [rows, cols] = matrix_dims(what, a, dims);
  check(!ord.is_complex(), what, ": the order must be a real number");
  const double p = ord.to_double(), size = std::abs(p);
  check(size == 1 || size == 2 || std::isinf(size), what, ": Order ", p, " not supported.");
  if (size == 2)
    return restore(extreme(singular_values(a, rows, cols), -1, p > 0, false), rows, cols, keepdim);
  int64_t summed = size == 1 ? rows : cols, other = size == 1 ? cols : rows;
  Tensor sums = op<"linalg_vector_norm">(a, Scalar(1.0), Dims{summed}, true);
  Tensor most = extreme(sums, other, p > 0, true);
  if (keepdim) return most;
  return squeeze(squeeze(most, std::max(rows, cols)), std::min(rows, cols));
}

Tensor matrix_norm_named(const Tensor& a_in, const std::string& ord, DimsRef dims, bool keepdim,
                         OptDType dtype) {
  const char* what = "linalg.matrix_norm";
  Tensor a = norm_input(what, a_in, dtype);
  check(ord == "fro" || ord == "nuc", what, ": Order ", ord, " not supported.");
  auto [rows, cols] = matrix_dims(what, a, dims);
  if (ord == "fro") return op<"linalg_vector_norm">(a, Scalar(2.0), Dims{rows, cols}, keepdim);
  return restore(sum(singular_values(a, rows, cols), Dims{-1}), rows, cols, keepdim);
}

Tensor nuclear_norm(const Tensor& a, OptDims dims, bool keepdim) {
  Dims all;
  for (int64_t d = 0; d < a.dim(); ++d) all.push_back(d);
  return matrix_norm_named(a, "nuc", dims ? Dims(*dims) : all, keepdim, std::nullopt);
}

void check_norm_dims(const Tensor& a, const OptDims& dims, bool has_order) {
  if (dims) {
    check(dims->size() == 1 || dims->size() == 2,
          "linalg.norm: If dim is specified, it must be of "
          "length 1 or 2. Got ",
          to_string(*dims));
  } else if (has_order) {
    check(a.dim() == 1 || a.dim() == 2,
          "linalg.norm: If dim is not specified but ord is, the input "
          "must be 1D or 2D. Got ",
          a.dim(), "D.");
  }
}

Tensor linalg_norm(const Tensor& a, std::optional<Scalar> ord, OptDims dims, bool keepdim,
                   OptDType dtype) {
  check_norm_dims(a, dims, ord.has_value());
  if (ord && ((dims && dims->size() == 2) || (!dims && a.dim() == 2))) {
    Dims both = dims ? Dims(*dims) : Dims{0, 1};
    return matrix_norm(a, *ord, both, keepdim, dtype);
  }
  std::optional<Dims> kept;
  if (dims) kept = Dims(*dims);
  return op<"linalg_vector_norm">(a, ord.value_or(Scalar(2.0)), kept, keepdim, dtype);
}
Tensor linalg_norm_named(const Tensor& a, const std::string& ord, OptDims dims, bool keepdim,
                         OptDType dtype) {
  check_norm_dims(a, dims, true);
  Dims both = dims ? Dims(*dims) : Dims{0, 1};
  return matrix_norm_named(a, ord, both, keepdim, dtype);
}

// ---- condition ----

// Of square matrices: |A| |A^-1|, infinite where there is no inverse.
template <class F> Tensor condition(const Tensor& a, F&& norm) {
  check_square("linalg.cond", a);
  TensorList inverse = ops<"linalg_inv_ex">(a, false);
  Tensor c = norm(a) * norm(inverse[0]);
  Tensor infinity = full(Dims{}, Scalar(std::numeric_limits<double>::infinity()), c.options());
  return where(inverse[1] > Tensor(0), infinity, c);
}

Tensor cond(const Tensor& a, std::optional<Scalar> p) {
  check_matrix("linalg.cond", a);
  const double ord = p ? p->to_double() : 2, size = std::abs(ord);
  check(size == 1 || size == 2 || std::isinf(size), "linalg.cond got an invalid norm type: ", ord);
  if (a.numel() == 0) return zeros(batch_sizes(a), {to_real(a.dtype()), a.device()});
  if (size != 2) {
    return condition(a, [&](const Tensor& x) {
      return op<"linalg_norm">(x, Value(*p), Dims{-2, -1}, false, std::nullopt);
    });
  }
  Tensor s = op<"linalg_svdvals">(a);
  Tensor most = op<"select">(s, -1, 0), least = op<"select">(s, -1, s.size(-1) - 1);
  return ord > 0 ? most / least : least / most;
}
Tensor cond_named(const Tensor& a, const std::string& p) {
  check_matrix("linalg.cond", a);
  check(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  if (a.numel() == 0) return zeros(batch_sizes(a), {to_real(a.dtype()), a.device()});
  return condition(a, [&](const Tensor& x) {
    return matrix_norm_named(x, p, Dims{-2, -1}, false, std::nullopt);
  });
}

// ---- products of vectors ----

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  check_same_dtype("linalg.vecdot", x, y, "x", "y");
  return sum(conj(x) * y, Dims{dim});
}

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  const char* what = "linalg.cross";
  check(self.dim() == other.dim(), what, ": inputs must have the same number of dimensions, got ",
        to_string(self.sizes()), " and ", to_string(other.sizes()));
  const int64_t d = wrap_dim(dim, self.dim(), what);
  check(self.size(d) == 3 && other.size(d) == 3, what, ": inputs dimension ", dim,
        " must have length 3. Got ", self.size(d), " and ", other.size(d));
  return op<"cross">(self, other, d);
}

constexpr Traits kNorm = kLinalg.with(kFloat32OnCuda).with(OutDtype::Exact);

const Define kNormsOps[] = {
    {"linalg_matrix_norm(self: Tensor, ord: Scalar, dim: int[] = [-2, -1], keepdim: bool = False, "
     "*, "
     "dtype: dtype? = None) -> Tensor",
     "Norms of the matrices that the two dimensions `dim` span. 2 and -2: the largest and the "
     "smallest singular value; 1 and -1: the largest and smallest sum of sizes of a column; inf "
     "and "
     "-inf: of a row.",
     kernel(matrix_norm), kNorm},
    {"linalg_matrix_norm(self: Tensor, ord: str = 'fro', dim: int[] = [-2, -1], keepdim: bool = "
     "False, *, dtype: dtype? = None) -> Tensor",
     "'fro': the root of the sum of squares; 'nuc': the sum of the singular values.",
     kernel(matrix_norm_named), kNorm},
    {"linalg_norm(self: Tensor, ord: Scalar? = None, dim: int[1]? = None, keepdim: bool = False, "
     "*, "
     "dtype: dtype? = None) -> Tensor",
     "A vector norm over one dimension, a matrix norm over two. Without `dim`, of a vector or a "
     "matrix; without `ord` too, the 2-norm of all elements.",
     kernel(linalg_norm), kNorm},
    {"linalg_norm(self: Tensor, ord: str, dim: int[1]? = None, keepdim: bool = False, *, dtype: "
     "dtype? = None) -> Tensor",
     "The matrix norms 'fro' and 'nuc'.", kernel(linalg_norm_named), kNorm},
    {"nuclear_norm(self: Tensor, dim: int[2]? = None, keepdim: bool = False) -> Tensor",
     "The sum of the singular values: `linalg.matrix_norm` of order 'nuc'.",
     kernel(nuclear_norm),
     {.forms = kFunction | kOut, .composite = true, .autocast = kFloat32OnCuda}},
    {"linalg_cond(self: Tensor, p: Scalar? = None) -> Tensor",
     "The condition number in a matrix norm: 2 (the largest singular value over the smallest) "
     "unless "
     "`p` is given; -2, the inverse of that. With 1, -1, inf, -inf, 'fro' and 'nuc', for square "
     "matrices, the norm times that of the inverse: infinite where there is none.",
     kernel(cond), kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"linalg_cond(self: Tensor, p: str) -> Tensor", "", kernel(cond_named),
     kLinalg.with(kFloat32OnCpu).with(OutDtype::Castable)},
    {"linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor",
     "Inner products along `dim`, the first vector conjugated. The other dimensions broadcast.",
     kernel(vecdot), kLinalg.with(Precision::Lower)},
    {"linalg_cross(self: Tensor, other: Tensor, *, dim: int = -1) -> Tensor",
     "Vector products of the vectors of length 3 along `dim`. The other dimensions broadcast.",
     kernel(linalg_cross), kLinalg.with(OutMemory{.disjoint = 0b11}).with(kWidestOnCuda)},
};

}  // namespace
}  // namespace taeda
