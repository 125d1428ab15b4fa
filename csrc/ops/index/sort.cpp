// Order: sort, argsort, topk, kthvalue, median, searchsorted, bucketize.
#include "kernels/sort.h"

#include "ops/index/util.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

SortLines lines_of(const Tensor& x, int64_t dim, DimsRef out_strides, int64_t k) {
  SortLines l;
  if (x.dim() == 0) {
    l.n = l.k = 1;
    l.x_stride = l.out_stride = 1;
    return l;
  }
  l.n = at(x.sizes(), dim);
  l.x_stride = at(x.strides(), dim);
  l.k = k;
  l.out_stride = at(out_strides, dim);
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d == dim) continue;
    l.outer.push_back(at(x.sizes(), d));
    l.x_strides.push_back(at(x.strides(), d));
    l.out_strides.push_back(at(out_strides, d));
  }
  return l;
}

// The derivative of every op here with (values, indices): scatters the gradient of the values to
// the indices.
void scatter_gradient(Backward& b, int64_t dim, bool keepdim) {
  const Dims& s = b.sizes(0);
  if (s.empty()) return b.set(0, b.grad());
  Tensor g = keepdim ? b.grad() : unsqueeze(b.grad(), dim),
         positions = keepdim ? b.out(1) : unsqueeze(b.out(1), dim);
  b.set(0, op<"scatter">(zeros(s, g.options()), dim, positions, g));
}

// ---- sort ----

TensorList sort_op(const Tensor& x, int64_t dim, bool descending, bool) {
  check(!is_complex(x.dtype()), " Sort does not support complex dtypes on CPU");
  int64_t d = wrap_dim(dim, x.dim());
  Tensor values = empty(x.sizes(), x.options()),
         indices = empty(x.sizes(), {DType::Int64, x.device()});
  if (x.is_meta() || x.numel() == 0) return {values, indices};
  need_arithmetic("sort", x.dtype());
  auto l = lines_of(x, d, values.strides(), x.dim() ? at(x.sizes(), d) : 1);
  kernels<SortKernels>(x.device())
      .sort(x.data(), values.data(), indices.data_as<int64_t>(), l, x.dtype(), descending, true);
  return {values, indices};
}
void sort_backward(Backward& b) { scatter_gradient(b, b.arg<int64_t>(1), true); }

TensorList sort_stable(const Tensor& x, std::optional<bool> stable, int64_t dim, bool descending) {
  return ops<"sort">(x, dim, descending, stable.value_or(false));
}
Tensor argsort_op(const Tensor& x, int64_t dim, bool descending, bool stable) {
  return ops<"sort">(x, dim, descending, stable)[1];
}
Tensor msort_op(const Tensor& x) { return ops<"sort">(x, 0, false, true)[0]; }

TensorList topk_op(const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted) {
  int64_t d = wrap_dim(dim, x.dim()), n = x.dim() ? at(x.sizes(), d) : 1;
  check(k >= 0 && k <= n, "selected index k out of range: ", k, " of ", n, " elements along dim ",
        d);
  check(!is_complex(x.dtype()), "topk does not support complex dtypes on CPU");
  check(x.dtype() != DType::Bool, "topk does not support bool dtypes on CPU");
  Dims sizes(x.sizes());
  if (x.dim()) sizes[static_cast<size_t>(d)] = k;
  Tensor values = empty(sizes, x.options()), indices = empty(sizes, {DType::Int64, x.device()});
  if (x.is_meta() || values.numel() == 0 || k == 0) return {values, indices};
  need_arithmetic("topk", x.dtype());
  kernels<SortKernels>(x.device())
      .sort(x.data(), values.data(), indices.data_as<int64_t>(),
            lines_of(x, d, values.strides(), k), x.dtype(), largest, sorted);
  return {values, indices};
}
void topk_backward(Backward& b) { scatter_gradient(b, b.arg<int64_t>(2), true); }

// ---- one element of each row ----

TensorList selected(const char* what, const Tensor& x, int64_t dim, bool keepdim, Select how,
                    int64_t rank) {
  int64_t d = wrap_dim(dim, x.dim());
  uint64_t mask = dim_bit(d, x.dim()) & all_dims(x.dim());
  check<IndexError>(x.dim() == 0 || at(x.sizes(), d) > 0, what, "(): Expected reduction dim ", d,
                    " to have non-zero size.");
  Dims kept = reduced_sizes(x.sizes(), mask, true);
  Tensor values = empty(reduced_sizes(x.sizes(), mask, keepdim), x.options());
  Tensor indices = empty(values.sizes(), {DType::Int64, x.device()});
  if (x.is_meta() || values.numel() == 0) return {values, indices};
  kernels<SelectKernels>(x.device())
      .select(x.data(), values.data(), indices.data_as<int64_t>(),
              lines_of(x, d, contiguous_strides(kept), 1), x.dtype(), how, rank);
  return {values, indices};
}

void check_ordered(const char* kernel_name, DType d) {
  if (is_complex(d) || d == DType::Bool || is_storage_only(d)) unsupported_dtype(kernel_name, d);
}

TensorList kthvalue_op(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  int64_t d = wrap_dim(dim, x.dim()), n = x.dim() ? at(x.sizes(), d) : 1;
  check<IndexError>(n > 0, "kthvalue(): Expected reduction dim ", d, " to have non-zero size.");
  check(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension ", d);
  check_ordered("kthvalue_cpu", x.dtype());
  return selected("kthvalue", x, dim, keepdim, Select::Rank, k - 1);
}
void kthvalue_backward(Backward& b) { scatter_gradient(b, b.arg<int64_t>(2), b.arg<bool>(3)); }

TensorList median_dim(const Tensor& x, int64_t dim, bool keepdim) {
  check_ordered("median_out", x.dtype());
  return selected("median", x, dim, keepdim, Select::Median, 0);
}
TensorList nanmedian_dim(const Tensor& x, int64_t dim, bool keepdim) {
  check_ordered("nanmedian_out", x.dtype());
  return selected("nanmedian", x, dim, keepdim, Select::NanMedian, 0);
}
void median_dim_backward(Backward& b) { scatter_gradient(b, b.arg<int64_t>(1), b.arg<bool>(2)); }

Tensor median_of_all(const Tensor& x, Select how) {
  check_ordered("median_cpu", x.dtype());
  Tensor out = empty(Dims{}, x.options());
  if (x.is_meta()) return out;
  if (x.numel() == 0) {
    copy_into(out, is_floating(x.dtype()) ? raw_cast(Tensor(Scalar(__builtin_nan(""))), x.dtype())
                                          : raw_cast(Tensor(Scalar(0)), x.dtype()));
    return out;
  }
  Tensor flat = raw_contiguous(x);
  return selected("median", raw_view(flat, Dims{x.numel()}, Dims{1}, flat.offset()), 0, false, how,
                  0)[0];
}
Tensor median_all(const Tensor& x) { return median_of_all(x, Select::Median); }
Tensor nanmedian_all(const Tensor& x) { return median_of_all(x, Select::NanMedian); }
void median_all_backward(Backward& b) {
  Tensor x = b.arg<Tensor>(0), y = b.out();
  Tensor hit = where(op<"isnan">(y), op<"isnan">(x), op<"eq">(x, y));
  Tensor mask = to(hit, y.dtype());
  b.set(0, b.grad() * (mask / op<"sum">(mask)));
}

// ---- searchsorted ----

Tensor search(const Tensor& sequence, const Tensor& values, bool out_int32, bool right,
              const Tensor& sorter) {
  // On the sequence's device: the values may come from a Python number.
  Tensor out = empty(values.sizes(), {DType::Int64, sequence.device()});
  if (!out.is_meta() && out.numel() > 0) {
    DType d = promote(sequence.dtype(), values.dtype());
    need_arithmetic("searchsorted", d);
    Tensor s = raw_contiguous(raw_cast(sequence, d));
    Tensor v = raw_to(sequence.device(), raw_contiguous(raw_cast(values, d)));
    Tensor order = sorter.defined() ? raw_contiguous(sorter) : Tensor();
    int64_t length = sequence.size(-1),
            lines = sequence.dim() == 1 ? 1 : sequence.numel() / std::max<int64_t>(length, 1);
    int64_t per_line = lines == 1 ? values.numel() : values.size(-1);
    if (length == 0) copy_into(out, raw_zeros(out.sizes(), out.options()));
    else
      kernels<SearchKernels>(out.device())
          .search(s.data(), order.defined() ? order.data_as<int64_t>() : nullptr, v.data(),
                  out.data_as<int64_t>(), lines, length, per_line, d, right);
  }
  return out_int32 ? raw_cast(out, DType::Int32) : out;
}

Tensor searchsorted_tensor(const Tensor& sequence, const Tensor& values, bool out_int32, bool right,
                           const std::optional<std::string>& side, const Tensor& sorter) {
  const char* what = "torch.searchsorted(): ";
  check(!side || *side == "left" || *side == "right", what,
        "side can only be 'left' or 'right' but got ", side.value_or(""));
  check(!(side && *side == "left" && right), what,
        "side and right can't be set to opposites, got side of left while right was True");
  check(sequence.dim() > 0, what,
        "input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(0)");
  check(values.dim() > 0 || sequence.dim() == 1, what,
        "input value can be a scalar only when boundaries tensor dimension is 1, but we got "
        "boundaries tensor dim(",
        sequence.dim(), ") and input value's dim(", values.dim(), ") numel(", values.numel(), ")");
  bool fits = sequence.dim() == 1 || sequence.dim() == values.dim();
  for (int64_t d = 0; fits && sequence.dim() > 1 && d + 1 < sequence.dim(); ++d) {
    fits = at(sequence.sizes(), d) == at(values.sizes(), d);
  }
  check(fits, what,
        "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
        "and input value tensor "
        "must match, but we got boundaries tensor ",
        to_string(sequence.sizes()), " and input value tensor ", to_string(values.sizes()));
  if (sorter.defined()) {
    check(same(sorter.sizes(), sequence.sizes()), what,
          "boundary and sorter must have the same size, but got boundary tensor ",
          to_string(sequence.sizes()), "and got sorter tensor ", to_string(sorter.sizes()));
    check(sorter.dtype() == DType::Int64, what,
          "sorter must be a tensor of long dtype but got dtype ", sorter.dtype());
    check<IndexError>(
        sorter.is_meta() || !find_outside(raw_contiguous(sorter), 0, sequence.size(-1)), what,
        "sorter index out of range");
  }
  return search(sequence, values, out_int32, right || (side && *side == "right"), sorter);
}
Tensor searchsorted_scalar(const Tensor& sequence, Scalar value, bool out_int32, bool right,
                           const std::optional<std::string>& side, const Tensor& sorter) {
  Tensor v(value);
  if (!is_complex(v.dtype()) && is_floating(sequence.dtype())) v = raw_cast(v, sequence.dtype());
  return searchsorted_tensor(sequence, v, out_int32, right, side, sorter);
}
Tensor bucketize_tensor(const Tensor& x, const Tensor& boundaries, bool out_int32, bool right) {
  check(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
        boundaries.dim(), ")");
  return search(boundaries, x, out_int32, right, Tensor());
}
Tensor bucketize_scalar(Scalar x, const Tensor& boundaries, bool out_int32, bool right) {
  Tensor v(x);
  if (is_floating(boundaries.dtype())) v = raw_cast(v, boundaries.dtype());
  return bucketize_tensor(v, boundaries, out_int32, right);
}

// ---- ops ----

const Define kSortOps[] = {
    {"sort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> "
     "(values: Tensor, indices: "
     "Tensor)",
     "The elements in order along `dim`, and where each stood (int64). Equal elements keep their "
     "order, whatever `stable` "
     "says. NaN counts as the largest.",
     kernel(sort_op),
     {.backward = sort_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .format_of = 0b1,
      .vmap = vmap::along,
      .out_memory = {.same_or_disjoint = 0b1, .results = 0b1}}},
    {"sort(self: Tensor, *, stable: bool?, dim: int = -1, descending: bool = False) -> (values: "
     "Tensor, indices: Tensor)",
     "The same, with `stable` by name.",
     kernel(sort_stable),
     {.composite = true, .out_memory = {.same_or_disjoint = 0b1, .results = 0b1}}},
    {"argsort(self: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> "
     "Tensor",
     "The indices that `sort` returns.",
     kernel(argsort_op),
     {.composite = true}},
    {"msort(self: Tensor) -> Tensor",
     "The elements in order along dimension 0.",
     kernel(msort_op),
     {.forms = kPublic | kOut, .composite = true, .out_memory = {.same_or_disjoint = 0b1}}},
    {"topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> "
     "(values: Tensor, indices: "
     "Tensor)",
     "The `k` largest (or smallest) elements along `dim`, in order if `sorted`, and where they "
     "stand (int64).",
     kernel(topk_op),
     {.backward = topk_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::along,
      .out_memory = {.same_or_disjoint = 0b1}}},
    {"kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> (values: Tensor, "
     "indices: Tensor)",
     "The k-th smallest element along `dim`, counted from 1, and where it stands.",
     kernel(kthvalue_op),
     {.backward = kthvalue_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::along,
      .out_memory = {.disjoint = 0b1, .results = 0b1}}},
    {"median(self: Tensor) -> Tensor",
     "The middle element in order, the lower one of two. NaN where there is one, or nothing.",
     kernel(median_all),
     {.backward = median_all_backward,
      .saves = saves_arg(0) | saves_out(),
      .vmap = vmap::reduction}},
    {"median(self: Tensor, dim: int, keepdim: bool = False) -> (values: Tensor, indices: Tensor)",
     "The middle element along `dim` in order, the lower one of two, and where it stands.",
     kernel(median_dim),
     {.backward = median_dim_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::reduction}},
    {"nanmedian(self: Tensor) -> Tensor",
     "`median` of the elements that are not NaN.",
     kernel(nanmedian_all),
     {.backward = median_all_backward,
      .saves = saves_arg(0) | saves_out(),
      .vmap = vmap::reduction}},
    {"nanmedian(self: Tensor, dim: int, keepdim: bool = False) -> (values: Tensor, indices: "
     "Tensor)",
     "`median` along `dim` of the elements that are not NaN.",
     kernel(nanmedian_dim),
     {.backward = median_dim_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::reduction}},
    {"searchsorted(sorted_sequence: Tensor, self: Tensor, *, out_int32: bool = False, right: bool "
     "= False, side: str? = "
     "None, sorter: Tensor? = None) -> Tensor",
     "Where each value would have to be inserted to keep the last dimension of `sorted_sequence` "
     "in order: before equal "
     "elements, or after them if `right`.",
     kernel(searchsorted_tensor),
     {.forms = kFunction | kOut, .non_differentiable = 1}},
    {"searchsorted(sorted_sequence: Tensor, self: Scalar, *, out_int32: bool = False, right: bool "
     "= False, side: str? = "
     "None, sorter: Tensor? = None) -> Tensor",
     "The same, of one number.",
     kernel(searchsorted_scalar),
     {.forms = kFunction, .non_differentiable = 1}},
    {"bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) "
     "-> Tensor",
     "The number of the interval between `boundaries` (a vector in order) that each element lies "
     "in.",
     kernel(bucketize_tensor),
     {.forms = kFunction | kOut, .non_differentiable = 1}},
    {"bucketize(self: Scalar, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) "
     "-> Tensor",
     "The same, of one number.",
     kernel(bucketize_scalar),
     {.forms = kFunction, .non_differentiable = 1}},
};

}  // namespace
}  // namespace taeda
