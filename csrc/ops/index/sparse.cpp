// Products of matrices in compressed sparse row format with dense ones, for taeda.sparse.
#include "kernels/sparse.h"

#include "autograd/backward.h"
#include "ops/core/half.h"

namespace taeda {
namespace {

DType product_dtype(DType d) {
  if (is_half(d)) return DType::Float32;
  if (d == DType::Complex32) return DType::Complex64;
  return is_inexact(d) ? d : DType::Int64;
}

template <class F> void visit_product(DType d, F&& f) {
  if (d == DType::Int64) f(static_cast<int64_t*>(nullptr));
  else if (d == DType::Float32) f(static_cast<float*>(nullptr));
  else if (d == DType::Float64) f(static_cast<double*>(nullptr));
  else if (d == DType::Complex64) f(static_cast<cfloat*>(nullptr));
  else f(static_cast<cdouble*>(nullptr));
}

void check_indices(const char* what, const char* name, const Tensor& t) {
  check(t.dim() == 1 && (t.dtype() == DType::Int64 || t.dtype() == DType::Int32), what,
        "(): ", name, " must be a vector of int64 or int32, got ", t.dtype(), " of shape ",
        to_string(t.sizes()));
}

void check_rows(const char* what, const Tensor& start, const Tensor& column) {
  check_indices(what, "crow_indices", start);
  check_indices(what, "col_indices", column);
  check(start.numel() >= 1, what, "(): crow_indices must not be empty");
}

[[noreturn]] void invalid(const char* what) {
  fail<IndexError>(what, "(): the sparse matrix's indices are out of bounds or out of order");
}

CsrRows rows_of(const Tensor& start, const Tensor& column, int64_t columns) {
  return {start.numel() - 1, columns, column.numel(), start.data_as<int64_t>(),
          column.data_as<int64_t>()};
}

Tensor csr_mm(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense) {
  const char* what = "_csr_mm";
  check_rows(what, crow, col);
  check(dense.dim() == 2, what, "(): dense must be a matrix, got shape ", to_string(dense.sizes()));
  if (values.defined()) {
    check(values.dim() == 1 && values.numel() == col.numel(), what,
          "(): values must be a vector of ", col.numel(), " elements, got shape ",
          to_string(values.sizes()));
    check(values.dtype() == dense.dtype(), "expected scalar type ", values.dtype(), " but found ",
          dense.dtype());
  }
  const DType compute = product_dtype(dense.dtype());
  Tensor out = empty(Dims{crow.numel() - 1, dense.size(1)}, {compute, dense.device()});
  if (out.is_meta()) return finished(out, dense.dtype());
  Tensor start = prepared(crow, DType::Int64), column = prepared(col, DType::Int64);
  Tensor v = values.defined() ? prepared(values, compute) : Tensor(), x = prepared(dense, compute);
  const CsrRows m = rows_of(start, column, x.size(0));
  visit_product(compute, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    if (!kernels<SparseKernels<T>>(out.device())
             .product(m, v.defined() ? v.data_as<T>() : nullptr, x.data_as<T>(), x.size(1),
                      out.data_as<T>()))
      invalid(what);
  });
  return finished(out, dense.dtype());
}

Tensor csr_inner(const Tensor& crow, const Tensor& col, const Tensor& a, const Tensor& b) {
  const char* what = "_csr_inner";
  check_rows(what, crow, col);
  check(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(1) && a.size(0) == crow.numel() - 1,
        what, "(): shapes ", to_string(a.sizes()), " and ", to_string(b.sizes()),
        " do not fit a sparse matrix of ", crow.numel() - 1, " rows");
  check(a.dtype() == b.dtype(), "expected scalar type ", a.dtype(), " but found ", b.dtype());
  const DType compute = product_dtype(a.dtype());
  Tensor out = empty(col.sizes(), {compute, a.device()});
  if (out.is_meta()) return finished(out, a.dtype());
  Tensor start = prepared(crow, DType::Int64), column = prepared(col, DType::Int64);
  Tensor x = prepared(a, compute), y = prepared(b, compute);
  const CsrRows m = rows_of(start, column, y.size(0));
  visit_product(compute, [&](auto* tag) {
    using T = std::remove_pointer_t<decltype(tag)>;
    if (!kernels<SparseKernels<T>>(out.device())
             .inner(m, x.data_as<T>(), y.data_as<T>(), x.size(1), out.data_as<T>()))
      invalid(what);
  });
  return finished(out, a.dtype());
}

TensorList group_rows(const Tensor& index, int64_t size) {
  check_indices("_group_rows", "index", index);
  check(size >= 0, "_group_rows(): size must not be negative, got ", size);
  check(size < INT64_MAX, "_group_rows(): size is too large");
  const Options options{DType::Int64, index.device()};
  Tensor start = empty(Dims{size + 1}, options), order = empty(index.sizes(), options);
  if (!order.is_meta()) {
    Tensor i = prepared(index, DType::Int64);
    if (!kernels<CsrKernels>(order.device())
             .group_rows(i.numel(), i.data_as<int64_t>(), size, start.data_as<int64_t>(),
                         order.data_as<int64_t>()))
      invalid("_group_rows");
  }
  return {start, order};
}

Tensor csr_rows(const Tensor& crow, const Tensor& col) {
  check_rows("_csr_rows", crow, col);
  Tensor row = empty(col.sizes(), {DType::Int64, col.device()});
  if (row.is_meta()) return row;
  Tensor start = prepared(crow, DType::Int64), column = prepared(col, DType::Int64);
  if (!kernels<CsrKernels>(row.device())
           .expand_rows(rows_of(start, column, 0), row.data_as<int64_t>()))
    invalid("_csr_rows");
  return row;
}

// The transposed matrix with the given values, or ones, times `x`.
Tensor transposed_mm(const Tensor& crow, const Tensor& col, const Tensor& values, int64_t columns,
                     const Tensor& x) {
  TensorList grouped = ops<"_group_rows">(col, columns);
  Tensor row = op<"index_select">(op<"_csr_rows">(crow, col), int64_t{0}, grouped[1]);
  Tensor v = values.defined() ? op<"index_select">(values, int64_t{0}, grouped[1]) : Tensor();
  return op<"_csr_mm">(grouped[0], row, v, x);
}

void csr_mm_backward(Backward& b) {
  Tensor crow = b.arg<Tensor>(0), col = b.arg<Tensor>(1);
  if (b.needs(2)) b.set(2, op<"_csr_inner">(crow, col, b.grad(), op<"conj">(b.arg<Tensor>(3))));
  if (b.needs(3)) {
    Tensor values = b.arg<Tensor>(2);
    if (values.defined()) values = op<"conj">(values);
    b.set(3, transposed_mm(crow, col, values, b.sizes(3)[0], b.grad()));
  }
}

void csr_inner_backward(Backward& b) {
  Tensor crow = b.arg<Tensor>(0), col = b.arg<Tensor>(1);
  if (b.needs(2)) b.set(2, op<"_csr_mm">(crow, col, b.grad(), op<"conj">(b.arg<Tensor>(3))));
  if (b.needs(3))
    b.set(3, transposed_mm(crow, col, b.grad(), b.sizes(3)[0], op<"conj">(b.arg<Tensor>(2))));
}

constexpr uint32_t kSavesAll = saves_arg(0) | saves_arg(1) | saves_arg(2) | saves_arg(3);

const Define sparse_ops[] = {
    {"_csr_mm(crow: Tensor, col: Tensor, values: Tensor?, dense: Tensor) -> Tensor",
     "The product of a matrix in compressed rows, of `values` (nnz) in the columns `col` (nnz), "
     "row i from `crow[i]` on, with `dense` (columns, n): (rows, n). Columns may come in any order "
     "and more than once. Without `values` they are ones.",
     kernel(csr_mm),
     {.backward = csr_mm_backward, .saves = kSavesAll, .forms = kFunction, .heavy = true}},
    {"_csr_inner(crow: Tensor, col: Tensor, a: Tensor, b: Tensor) -> Tensor",
     "The elements of `a @ b.T` at the stored positions of a matrix in compressed rows: (nnz).",
     kernel(csr_inner),
     {.backward = csr_inner_backward, .saves = kSavesAll, .forms = kFunction, .heavy = true}},
    {"_group_rows(index: Tensor, size: int) -> (starts: Tensor, order: Tensor)",
     "Numbers in [0, size) sorted by counting: `order` brings them in order, and those equal to i "
     "begin at `starts[i]`, which has size + 1 elements.",
     kernel(group_rows),
     {.forms = kFunction}},
    {"_csr_rows(crow: Tensor, col: Tensor) -> Tensor",
     "The row of each element of a matrix in compressed rows.",
     kernel(csr_rows),
     {.forms = kFunction}},
};

}  // namespace
}  // namespace taeda
