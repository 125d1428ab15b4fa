// Helpers of the reductions: shapes of results, expansion of a reduced gradient, and casts before
// reducing.
#pragma once

#include "kernels/reduce.h"
#include "ops/core/shape_util.h"

namespace taeda {

using OptDims = std::optional<DimsRef>;
using OptDType = std::optional<DType>;

inline uint64_t all_dims(int64_t ndim) { return ndim > 0 ? 2 * dim_bit(ndim - 1, ndim) - 1 : 0; }

// No dimensions named: all of them.
inline uint64_t reduced_mask(const OptDims& dims, int64_t ndim) {
  return dims && !dims->empty() ? dim_mask(*dims, ndim) & all_dims(ndim) : all_dims(ndim);
}

inline Dims reduced_sizes(DimsRef sizes, uint64_t mask, bool keepdim) {
  Dims out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!(mask >> i & 1)) out.push_back(sizes[i]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

inline int64_t reduced_count(DimsRef sizes, uint64_t mask) {
  int64_t n = 1;
  for (size_t i = 0; i < sizes.size(); ++i) n *= mask >> i & 1 ? sizes[i] : 1;
  return n;
}

inline void reduce(ReduceOp op, const Tensor& x, uint64_t mask, const ReduceResults& results) {
  need_arithmetic("reduce", x.dtype());
  need_arithmetic("reduce", results.dtype);
  kernels<ReduceKernels>(x.device())
      .reduce(op, {x.data(), x.dtype(), x.sizes(), x.strides(), mask}, results);
}

// A reduced tensor with the reduced dimensions restored as size 1.
inline Tensor restore_dims(const Tensor& g, DimsRef sizes, uint64_t mask, bool keepdim) {
  if (keepdim || mask == 0 || sizes.empty()) return g;
  return reshape(g, reduced_sizes(sizes, mask, true));
}

// The arguments of a reduction, as its derivative reads them.
struct Reduced {
  Dims sizes;
  uint64_t mask;
  bool keepdim;
  Dims dims() const {  // empty if all are reduced
    Dims d;
    for (size_t i = 0; mask != all_dims(static_cast<int64_t>(sizes.size())) && i < sizes.size();
         ++i) {
      if (mask >> i & 1) d.push_back(static_cast<int64_t>(i));
    }
    return d;
  }
  int64_t count() const { return reduced_count(sizes, mask); }
  Tensor restore(const Tensor& t) const { return restore_dims(t, sizes, mask, keepdim); }
  Tensor grow(const Tensor& t) const { return expand(restore(t), sizes); }
};
inline Reduced reduced_of(const Backward& b, int dim_arg = 1, int keepdim_arg = 2) {
  const Dims& s = b.sizes(0);
  auto dims = b.arg<std::optional<Dims>>(dim_arg);
  return {s, reduced_mask(dims ? OptDims(*dims) : std::nullopt, static_cast<int64_t>(s.size())),
          b.arg<bool>(keepdim_arg)};
}

inline Tensor as_dtype(const Tensor& g, DType d) { return g.dtype() == d ? g : to(g, d); }

// Whether an element is zero; false on the meta device.
inline bool has_zero(const Tensor& x) {
  if (x.is_meta() || x.numel() == 0) return false;
  GradMode off(false);
  return op<"any">(op<"eq">(x, Tensor(0))).item().to<bool>();
}

}  // namespace taeda
