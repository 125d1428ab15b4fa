#include "ops/linalg/linalg.h"

#include "kernels/matrices.h"
#include "ops/reduce/util.h"

namespace taeda {

// ---- checks ----

void check_matrix(const char* what, const Tensor& a, const char* argument) {
  check(a.dim() >= 2, what, ": The input tensor ", argument,
        " must have at least 2 dimensions, got shape ", to_string(a.sizes()));
  check(is_inexact(a.dtype()), what, ": Expected a floating point or complex tensor as ", argument,
        ". Got ", a.dtype());
  check(!is_half(to_real(a.dtype())), what, ": Low precision dtypes not supported. Got ",
        a.dtype());
}

void check_square(const char* what, const Tensor& a, const char* argument) {
  check_matrix(what, a, argument);
  check(a.size(-1) == a.size(-2), what, ": ", argument,
        " must be batches of square matrices, but they are ", a.size(-2), " by ", a.size(-1),
        " matrices");
}

void check_same_dtype(const char* what, const Tensor& a, const Tensor& b, const char* a_name,
                      const char* b_name) {
  check(a.dtype() == b.dtype(), what, ": Expected ", a_name, " and ", b_name,
        " to have the same dtype, but found ", a_name, " of type ", a.dtype(), " and ", b_name,
        " of type ", b.dtype(), " instead");
  check(a.device() == b.device(), what, ": Expected ", a_name, " and ", b_name,
        " to be on the same device, but found ", a.device(), " and ", b.device());
}

namespace {

std::string place(const Tensor& batch, int64_t index) {
  return batch.dim() == 0 ? "" : str("(Batch element ", index, "): ");
}

}  // namespace

// The tensor in memory of its own where only its Python class knows the values.
static Tensor in_memory(const Tensor& t) {
  if (!t.is_placeholder()) return t;
  Tensor own = empty(t.sizes(), t.options());
  copy_into(own, t);
  return own;
}

void check_info(const char* what, const Tensor& info, std::string (*message)(int)) {
  if (info.is_meta()) return;
  check(info.dtype() == DType::Int32, what, ": the codes of failures must be int32, got ",
        info.dtype());
  Tensor plain = raw_contiguous(in_memory(info));
  const auto failure =
      kernels<LinalgKernels>(info.device()).find_failure(plain.numel(), plain.data_as<int32_t>());
  if (failure) fail<LinAlgError>(what, ": ", place(info, failure->matrix), message(failure->code));
}

void check_finite(const char* what, const Tensor& a) {
  if (a.is_meta() || a.numel() == 0) return;
  const Tensor known = in_memory(a);
  Tensor plain = raw_contiguous(is_complex(a.dtype()) ? raw_view_as_real(known) : known);
  const int64_t each = plain.numel() / std::max<int64_t>(numel_of(batch_sizes(a)), 1);
  const auto found = kernels<LinalgKernels>(a.device())
                         .find_not_finite(plain.dtype(), plain.numel(), plain.data());
  if (found) {
    fail<LinAlgError>(what, ": ", a.dim() == 2 ? "" : str("(Batch element ", *found / each, "): "),
                      "the input matrix contains non-finite values (NaN or infinity)");
  }
}

// ---- shapes ----

Dims join(DimsRef batch, std::initializer_list<int64_t> more) {
  Dims sizes(batch);
  for (int64_t n : more) sizes.push_back(n);
  return sizes;
}

std::pair<Tensor, Tensor> broadcast_batches(const char* what, const Tensor& a, const Tensor& b) {
  if (same(batch_sizes(a), batch_sizes(b))) return {a, b};
  Dims batch;
  try {
    batch = broadcast_sizes(batch_sizes(a), batch_sizes(b));
  } catch (const Error&) {
    fail(what, ": the batch dimensions of shapes ", to_string(a.sizes()), " and ",
         to_string(b.sizes()), " do not broadcast");
  }
  return {raw_expand(a, join(batch, {a.size(-2), a.size(-1)})),
          raw_expand(b, join(batch, {b.size(-2), b.size(-1)}))};
}

// ---- layout ----

namespace {

Dims column_strides(DimsRef sizes) {
  const size_t n = sizes.size();
  Dims strides(n);
  int64_t step = 1;
  for (size_t k = 0; k < n; ++k) {
    const size_t d = k == 0 ? n - 2 : k == 1 ? n - 1 : n - 1 - k;
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

}  // namespace

Tensor empty_column_major(DimsRef sizes, Options o) {
  return empty_strided(sizes, column_strides(sizes), o);
}

Tensor column_major_copy(const Tensor& a) {
  Tensor t = empty_column_major(a.sizes(), a.options());
  if (!a.is_meta()) copy_into(t, a);
  return t;
}

Tensor as_column_major(const Tensor& a) {
  return same(a.strides(), column_strides(a.sizes())) ? a : column_major_copy(a);
}

Tensor raw_transpose(const Tensor& a) {
  Dims sizes(a.sizes()), strides(a.strides());
  const size_t n = sizes.size();
  std::swap(sizes[n - 1], sizes[n - 2]);
  std::swap(strides[n - 1], strides[n - 2]);
  return raw_view(a, sizes, strides, a.offset());
}

Tensor raw_expand(const Tensor& a, DimsRef sizes) {
  return raw_view(a, sizes, broadcast_strides(a, sizes), a.offset());
}

void raw_identity(const Tensor& a) {
  if (a.is_meta() || a.numel() == 0) return;
  visit_inexact(a.dtype(), "linalg", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<MatrixKernels<T>>(a.device()).identity(lapack_shape(a), a.data_as<T>());
  });
}

// ---- dispatched ops ----

Tensor mT(const Tensor& a) { return transpose(a, -2, -1); }
Tensor adjoint(const Tensor& a) { return conj(mT(a)); }
Tensor tril(const Tensor& a, int64_t diagonal) { return op<"tril">(a, diagonal); }
Tensor triu(const Tensor& a, int64_t diagonal) { return op<"triu">(a, diagonal); }
Tensor diagonal_of(const Tensor& a) { return op<"diagonal">(a, 0, -2, -1); }
Tensor as_diagonal(const Tensor& values) { return op<"diag_embed">(values); }
Tensor identity(int64_t n, Options o) { return op<"eye">(n, o.dtype, o.device); }
Tensor real_part(const Tensor& a) { return op<"real">(a); }
Tensor triangular_solution(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  return op<"linalg_solve_triangular">(a, b, upper, left, unit);
}

}  // namespace taeda
