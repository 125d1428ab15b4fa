// Building blocks that PyTorch names: gradients of pooling, softmax and dropout as ops of their
// own, segments, masked indexing.
#include <limits>

#include "ops/core/memory.h"
#include "ops/index/util.h"
#include "ops/reduce/util.h"

namespace taeda {
namespace {

// The indices determine the result; the window arguments are not needed.
Tensor max_pool2d_backward(const Tensor& grad, const Tensor& self, const Dims&, const Dims&,
                           const Dims&, const Dims&, bool, const Tensor& indices) {
  return op<"_scatter_pool">(grad, indices, self.sizes(), 2);
}
void max_pool2d_second(Backward& b) {
  if (b.needs(0)) b.set(0, op<"_gather_pool">(b.grad(), b.arg<Tensor>(7), 2));
  if (b.needs(1)) b.set(1, zeros(b.sizes(1), b.options(1)));
}

Tensor softmax_backward_data(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  return to(op<"_softmax_backward">(grad, output, dim), dtype);
}

// Softmax that gives zeros for a row of minus infinities.
Tensor safe_softmax(const Tensor& self, int64_t dim, OptDType dtype) {
  Tensor x = dtype ? to(self, *dtype) : self;
  Tensor nothing = x == Tensor(-std::numeric_limits<double>::infinity());
  Tensor empty_row = op<"all">(nothing, Dims{dim}, true);
  // Mask before and after: NaN times a zero gradient would be NaN.
  return where(empty_row, Tensor(0), op<"softmax">(where(empty_row, Tensor(0), x), dim));
}

Tensor scaled_by_mask(const Tensor& grad, const Tensor& mask, double scale) {
  return grad * (to(mask, grad.dtype()) * scale);
}

// ---- indexing under a mask: masked-out elements may have any index ----

TensorList held_inside(const Tensor& self, const TensorList& indices) {
  TensorList out;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& index = indices[i];
    if (!index.defined()) {
      out.push_back(index);
      continue;
    }
    const int64_t size = self.size(static_cast<int64_t>(i));
    out.push_back(op<"clamp">(index, Tensor(Scalar(-size)), Tensor(Scalar(size - 1))));
  }
  return out;
}
Tensor masked_index(const Tensor& self, const Tensor& mask, const TensorList& indices,
                    Scalar fill) {
  Tensor taken = op<"index">(self, held_inside(self, indices));
  return op<"masked_fill">(taken, !mask, Tensor(fill));
}
Tensor masked_index_accumulate(const Tensor& self, const Tensor& mask, const TensorList& indices,
                               const Tensor& values) {
  Tensor kept = op<"masked_fill">(values, !mask, Tensor(0));
  return op<"index_put">(self, held_inside(self, indices), kept, true);
}

// ---- chunk_cat ----

// Pads each tensor along `dim` to a multiple of `chunks`, splits it into chunks, and concatenates
// the flattened chunks.
Tensor chunk_cat(const TensorList& tensors, int64_t dim, int64_t chunks) {
  check(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  check(chunks > 0, "_chunk_cat expects positive num_chunks, got ", chunks);
  const int64_t d = wrap_dim(dim, tensors[0].dim());
  TensorList parts;
  for (const Tensor& t : tensors) {
    check(t.dim() > d, "_chunk_cat expects all tensors to have more than ", d, " dimensions");
    check(t.numel() > 0, "_chunk_cat expects non-empty tensors");
    const int64_t n = t.size(d), each = (n + chunks - 1) / chunks;
    Dims missing(t.sizes());
    missing[static_cast<size_t>(d)] = each * chunks - n;
    Tensor whole = t;
    if (each * chunks != n) {
      const Tensor rest = zeros(missing, t.options());
      whole = op<"cat">(TensorList{t, rest}, d);
    }
    Dims sizes;
    for (int64_t i = 0; i < d; ++i) sizes.push_back(t.size(i));
    sizes.push_back(chunks);
    sizes.push_back(-1);
    parts.push_back(reshape(whole, sizes));
  }
  return op<"cat">(std::move(parts), d + 1);
}

// ---- segment_reduce ----

// The segment number of each element along `axis`, (..., n); elements in no segment get the number
// of segments.
Tensor segment_of(const Tensor& lengths, const Tensor& offsets, int64_t n, bool unsafe) {
  const Tensor& given = lengths.defined() ? lengths : offsets;
  const auto row = host_values<int64_t>(index_values(given));
  const int64_t width = given.size(-1), lines = width ? given.numel() / width : 0;
  const int64_t segments = lengths.defined() ? width : width - 1;
  Dims sizes(given.sizes());
  sizes.back() = n;
  std::vector<int64_t> out(static_cast<size_t>(numel_of(sizes)), segments);
  auto line = out.begin();
  auto value = row.begin();
  for (int64_t l = 0; l < lines; ++l, line += n, value += width) {
    int64_t begin = lengths.defined() ? 0 : *value;
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t end = lengths.defined() ? begin + value[s] : value[s + 1];
      check(begin >= 0 && begin <= end, "segment_reduce(): lengths contains negative value!");
      check(end <= n, "segment_reduce(): Expected all rows of lengths along axis to sum to ",
            "data.size(axis) = ", n, ", but one exceeds it");
      std::fill(line + begin, line + end, s);
      begin = end;
    }
    check(unsafe || offsets.defined() || begin == n,
          "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) = ",
          n, " when !unsafe.");
  }
  return from_host(out, sizes, given.device());
}

Tensor segment_reduce(const Tensor& data, const std::string& reduce, const Tensor& lengths,
                      const Tensor& indices, const Tensor& offsets, int64_t axis, bool unsafe,
                      std::optional<Scalar> initial) {
  const char* what = "segment_reduce(): ";
  check(!indices.defined(), what, "indices based reduction is not supported yet.");
  check(lengths.defined() != offsets.defined(), what,
        "Either lengths or offsets must be defined, and not both.");
  check(
      reduce == "sum" || reduce == "mean" || reduce == "max" || reduce == "min" || reduce == "prod",
      what, "reduce must be one of max, mean, min, sum or prod, got ", reduce);
  const int64_t d = wrap_dim(axis, data.dim());
  const Tensor& given = lengths.defined() ? lengths : offsets;
  check(given.dim() == d + 1, what, "lengths (or offsets) must have ", d + 1,
        " dimensions for axis ", d, ", got ", given.dim());
  check(is_index_dtype(given.dtype()), what, "lengths (or offsets) must be int32 or int64, got ",
        given.dtype());
  check(given.size(-1) > 0, what, "lengths (or offsets) must not be empty");
  Tensor counts = lengths.defined() ? lengths : op<"diff">(offsets);
  const int64_t segments = counts.size(-1);
  Tensor segment = segment_of(lengths, offsets, data.size(d), unsafe);

  // (..., segments, rest of data); the same for the counts and the numbers of the segments
  Dims sizes(data.sizes()), ones(data.sizes()), flat(data.sizes());
  sizes[static_cast<size_t>(d)] = segments + 1;
  for (size_t i = static_cast<size_t>(d) + 1; i < flat.size(); ++i) ones[i] = flat[i] = 1;
  ones[static_cast<size_t>(d)] = segments;
  Tensor to_segment = expand(reshape(segment, flat), data.sizes());
  Tensor number = reshape(to(counts, data.dtype()), ones);

  const bool extreme = reduce == "max" || reduce == "min";
  const double inf = std::numeric_limits<double>::infinity();
  const Scalar none = reduce == "max"    ? Scalar(-inf)
                      : reduce == "min"  ? Scalar(inf)
                      : reduce == "prod" ? Scalar(1)
                                         : Scalar(0);
  Tensor start = full(sizes, initial.value_or(none), data.options());
  const std::string how = extreme ? "a" + reduce : reduce == "mean" ? std::string("sum") : reduce;
  Tensor out = op<"scatter_reduce">(start, d, to_segment, data, how, true);
  out = narrow(out, d, 0, segments);
  if (reduce != "mean") return out;
  Tensor means = out / number;
  return initial ? where(number == Tensor(0), Tensor(*initial), means) : means;
}

const Define kPrimitivesOps[] = {
    {"max_pool2d_with_indices_backward(grad: Tensor, self: Tensor, kernel_size: int[2], stride: "
     "int[2], padding: int[2], dilation: int[2], ceil_mode: bool, indices: Tensor) -> Tensor",
     "The gradient of max_pool2d: `grad` at the positions of the maxima.",
     kernel(max_pool2d_backward),
     {.backward = max_pool2d_second, .saves = saves_arg(7), .forms = 0, .vmap = vmap::folded(2)}},
    {"_softmax_backward_data(grad: Tensor, output: Tensor, dim: int, input_dtype: dtype) -> Tensor",
     "The gradient of softmax from its result.",
     kernel(softmax_backward_data),
     {.composite = true}},
    {"_safe_softmax(self: Tensor, dim: int, dtype: dtype? = None) -> Tensor",
     "softmax, but zeros for a row of minus infinities.",
     kernel(safe_softmax),
     {.composite = true}},
    {"native_dropout_backward(grad: Tensor, mask: Tensor, scale: float) -> Tensor",
     "The gradient of dropout from its mask.",
     kernel(scaled_by_mask),
     {.forms = 0, .composite = true}},
    {"_unsafe_masked_index(self: Tensor, mask: Tensor, indices: Tensor?[], fill: Scalar) -> Tensor",
     "`self[indices]` where the mask is set, `fill` elsewhere, whatever the indices are there.",
     kernel(masked_index),
     {.composite = true}},
    {"_unsafe_masked_index_put_accumulate(self: Tensor, mask: Tensor, indices: Tensor?[], values: "
     "Tensor) -> Tensor",
     "`self` with those `values` added at `indices` for which the mask is set.",
     kernel(masked_index_accumulate),
     {.composite = true}},
    {"_chunk_cat(tensors: Tensor[], dim: int, num_chunks: int) -> Tensor",
     "Each tensor cut along `dim` into `num_chunks` chunks (filled up with zeros), chunks of the "
     "same number joined.",
     kernel(chunk_cat),
     {.forms = kFunction | kOut, .composite = true, .out_dtype = OutDtype::Castable}},
    {"segment_reduce(data: Tensor, reduce: str, *, lengths: Tensor? = None, indices: Tensor? = "
     "None, offsets: Tensor? = None, axis: int = 0, unsafe: bool = False, initial: Scalar? = None) "
     "-> Tensor",
     "Reduces consecutive segments along `axis`, of the given `lengths` or between `offsets`: by "
     "'sum', 'mean', 'max', 'min' or 'prod', beginning with `initial`.",
     kernel(segment_reduce),
     {.forms = kFunction, .composite = true, .vmap = vmap::one_by_one}},
};

}  // namespace
}  // namespace taeda
