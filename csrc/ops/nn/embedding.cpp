// Rows of a table by index.
#include "kernels/embedding.h"

#include <cmath>

#include "autograd/backward.h"
#include "kernels/scatter.h"
#include "ops/core/half.h"
#include "ops/index/util.h"

namespace taeda {
namespace {

void check_indices(const char* what, const Tensor& indices) {
  check(indices.dtype() == DType::Int64 || indices.dtype() == DType::Int32, what,
        "(): Expected tensor for argument 'indices' to have one of the following scalar types: "
        "Long, Int; but got ",
        indices.dtype(), " instead");
}

// The indices as contiguous int64, each within [0, rows).
Tensor checked_rows(const char* what, const Tensor& indices, int64_t rows) {
  return inside(prepared(indices, DType::Int64), 0, rows, [&](int64_t bad) {
    fail<IndexError>("index out of range in self: ", what, "() got index ", bad, " for a table of ",
                     rows, " rows");
  });
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/) {
  check(weight.dim() == 2, "'weight' must be 2-D");
  check_indices("embedding", indices);
  Dims sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  Tensor out = empty(sizes, weight.options());
  if (out.is_meta() || out.numel() == 0) {
    if (!out.is_meta() && !indices.is_meta()) checked_rows("embedding", indices, weight.size(0));
    return out;
  }
  Tensor idx = checked_rows("embedding", indices, weight.size(0)),
         table = prepared(weight, weight.dtype());
  kernels<ScatterKernels>(weight.device())
      .take_rows(idx.numel(), weight.size(1) * static_cast<int64_t>(weight.itemsize()),
                 table.data(), idx.data_as<int64_t>(), out.data());
  return out;
}

// Sums of the rows selected by the last dimension of the indices.
Tensor embedding_sums(const Tensor& weight, const Tensor& indices) {
  check(weight.dim() == 2, "embedding_bag(): weight must be 2-D, got shape ",
        to_string(weight.sizes()));
  check(indices.dim() > 0, "embedding_bag(): expected indices of one dimension at least");
  check_indices("embedding_bag", indices);
  const int64_t size = indices.size(-1), width = weight.size(1);
  Dims sizes(indices.sizes());
  sizes.back() = width;
  Tensor out = empty(sizes, weight.options());
  if (out.is_meta() || indices.is_meta()) return out;
  if (out.numel() == 0) {
    checked_rows("embedding_bag", indices, weight.size(0));
    return out;
  }
  const Tensor idx = kept_inside(prepared(indices, DType::Int64), 0, weight.size(0)),
               table = prepared(weight, weight.dtype());
  visit_floating(weight.dtype(), "embedding_bag", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool right = kernels<EmbeddingKernels<T>>(table.device())
                           .sum_rows(out.numel() / width, size, weight.size(0), width,
                                     table.data_as<T>(), idx.data_as<int64_t>(), out.data_as<T>());
    if (right) return;
    checked_rows("embedding_bag", idx, weight.size(0));  // says which
    fail<IndexError>("embedding_bag(): indices changed while they were read");
  });
  return out;
}

void embedding_sums_backward(Backward& b) {
  Tensor indices = b.arg<Tensor>(1);
  Dims sizes(indices.sizes());
  sizes.push_back(b.sizes(0)[1]);
  b.set(0, op<"embedding_dense_backward">(expand(unsqueeze(b.grad(), -2), sizes), indices,
                                          b.sizes(0)[0], -1));
}

// Adds each row of grad to its row of the table's gradient; padding_idx is skipped.
Tensor embedding_dense_backward(const Tensor& grad, const Tensor& indices, int64_t rows,
                                int64_t padding_idx) {
  const int64_t width = grad.size(-1);
  DType compute = compute_dtype(grad.dtype(), "embedding_backward");
  check(grad.numel() == indices.numel() * width,
        "embedding_dense_backward(): expected grad_output to have one row for each of the ",
        indices.numel(), " indices, but its shape is ", to_string(grad.sizes()));
  if (grad.numel() == 0) return zeros(Dims{rows, width}, grad.options());
  Tensor out = empty(Dims{rows, width}, {compute, grad.device()});
  if (out.is_meta()) return finished(out, grad.dtype());
  Tensor g = prepared(grad, compute), idx = checked_rows("embedding_backward", indices, rows);
  visit_floating(compute, "embedding_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<EmbeddingKernels<T>>(g.device())
        .add_rows(idx.numel(), rows, width, g.data_as<T>(), idx.data_as<int64_t>(), padding_idx,
                  out.data_as<T>());
  });
  return finished(out, grad.dtype());
}

void embedding_backward(Backward& b) {
  b.set(0, op<"embedding_dense_backward">(b.grad(), b.arg<Tensor>(1), b.sizes(0)[0],
                                          b.arg<int64_t>(2)));
}

void embedding_dense_second(Backward& b) {
  Tensor indices = b.arg<Tensor>(1);
  int64_t padding = b.arg<int64_t>(3);
  Tensor g = op<"embedding">(b.grad(), indices, padding);
  if (padding >= 0) {
    Tensor keep = to(op<"ne">(indices, Tensor(Scalar(padding))), g.dtype());
    g = g * unsqueeze(keep, -1);
  }
  b.set(0, g);
}

// Scales the rows used by `indices` down to max_norm, in place.
Tensor embedding_renorm_(const Tensor& self, const Tensor& indices, double max_norm,
                         double norm_type) {
  check(self.dim() == 2, "'weight' must be 2-D");
  check_indices("embedding_renorm_", indices);
  if (self.is_meta() || indices.is_meta()) return self;
  Tensor idx = checked_rows("embedding_renorm_", indices, self.size(0));
  DType compute = compute_dtype(self.dtype(), "embedding_renorm_");
  Tensor table = prepared(self, compute);
  visit_floating(compute, "embedding_renorm_", [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels<EmbeddingKernels<T>>(table.device())
        .shorten_rows(idx.numel(), self.size(0), self.size(1), idx.data_as<int64_t>(), max_norm,
                      norm_type, table.data_as<T>());
  });
  if (!table.is(self)) copy_into(self, table);
  return self;
}

const Define embedding_ops[] = {
    {"embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor",
     "Rows of `weight` (V, E) at `indices` (*), int64 or int32: (*, E). The row at `padding_idx` "
     "gets no gradient.",
     kernel(embedding),
     {.backward = embedding_backward, .saves = saves_arg(1), .forms = kFunction}},
    {"_embedding_sums(weight: Tensor, indices: Tensor) -> Tensor",
     "The sums of the rows of `weight` (V, E), float32 or float64, at `indices` (*, N) over their "
     "last dimension: (*, E).",
     kernel(embedding_sums),
     {.backward = embedding_sums_backward, .saves = saves_arg(1), .forms = kFunction}},
    {"embedding_dense_backward(grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int) "
     "-> Tensor",
     "Gradient of embedding with respect to its table.",
     kernel(embedding_dense_backward),
     {.backward = embedding_dense_second, .saves = saves_arg(1), .forms = 0}},
    {"embedding_renorm_(self!: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> "
     "Tensor",
     "Scales the rows at `indices` whose norm is above `max_norm` down to it.",
     kernel(embedding_renorm_),
     {.forms = kFunction}},
};

}  // namespace
}  // namespace taeda
