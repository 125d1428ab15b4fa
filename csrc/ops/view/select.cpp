// Views of a part: slices, selections, diagonals, windows and arbitrary strides.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/core/factory.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

// ---- slice, select, narrow ----

struct Span {
  int64_t start, length;
};

Span clamp_slice(int64_t size, std::optional<int64_t> start, std::optional<int64_t> end,
                 int64_t step) {
  check(step > 0, "slice step must be positive");
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size); };
  int64_t a = clamp(start.value_or(0)), b = std::max(clamp(end.value_or(INT64_MAX)), a);
  return {a, (b - a) / step + ((b - a) % step != 0)};
}

// stride * step. On overflow 0 will do: a second element would be outside any tensor.
int64_t stepped(int64_t stride, int64_t step) {
  int64_t r;
  return __builtin_mul_overflow(stride, step, &r) ? 0 : r;
}

Tensor slice_view(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  check(x.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  Span s = clamp_slice(x.sizes()[d], start, end, step);
  Dims sizes(x.sizes()), strides(x.strides());
  int64_t offset = x.offset() + (s.length > 0 ? s.start * strides[d] : 0);
  sizes[d] = s.length;
  strides[d] = stepped(strides[d], step);
  return make_view(x, sizes, strides, offset);
}
void slice_backward(Backward& b) {
  using I = std::optional<int64_t>;
  b.set(0, op<"_slice_backward">(b.grad(), b.sizes(0), b.arg<int64_t>(1), b.arg<I>(2), b.arg<I>(3),
                                 b.arg<int64_t>(4)));
}
Tensor slice_backward_op(const Tensor& g, DimsRef sizes, int64_t dim, std::optional<int64_t> start,
                         std::optional<int64_t> end, int64_t step) {
  Tensor out = raw_zeros(sizes, g.options());
  if (!g.is_meta()) copy_into(slice_view(out, dim, start, end, step), g);
  return out;
}
void slice_backward_backward(Backward& b) {
  using I = std::optional<int64_t>;
  b.set(0, op<"slice">(b.grad(), b.arg<int64_t>(2), b.arg<I>(3), b.arg<I>(4), b.arg<int64_t>(5)));
}

Tensor select_view(const Tensor& x, int64_t dim, int64_t index) {
  check<IndexError>(x.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  int64_t size = x.sizes()[d];
  check<IndexError>(index >= -size && index < size, "select(): index ", index,
                    " out of range for tensor of size ", to_string(x.sizes()), " at dimension ", d);
  Dims sizes(x.sizes()), strides(x.strides());
  int64_t offset = x.offset() + (index < 0 ? index + size : index) * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return make_view(x, sizes, strides, offset);
}
void select_backward(Backward& b) {
  b.set(0, op<"_select_backward">(b.grad(), b.sizes(0), b.arg<int64_t>(1), b.arg<int64_t>(2)));
}
Tensor select_backward_op(const Tensor& g, DimsRef sizes, int64_t dim, int64_t index) {
  Tensor out = raw_zeros(sizes, g.options());
  if (!g.is_meta()) copy_into(select_view(out, dim, index), g);
  return out;
}
void select_backward_backward(Backward& b) {
  b.set(0, op<"select">(b.grad(), b.arg<int64_t>(2), b.arg<int64_t>(3)));
}

Tensor narrow_op(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  check(x.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  check(length >= 0, "narrow(): length must be non-negative.");
  int64_t d = wrap_dim(dim, x.dim()), size = at(x.sizes(), d);
  check<IndexError>(start >= -size && start <= size,
                    "start out of range (expected to be in range of [", -size, ", ", size,
                    "], but got ", start, ")");
  if (start < 0) start += size;
  check(length <= size - start, "start (", start, ") + length (", length,
        ") exceeds dimension size (", size, ").");
  return op<"slice">(x, d, start, start + length, 1);
}

Tensor narrow_tensor(const Tensor& x, int64_t dim, const Tensor& start, int64_t length) {
  check(start.dim() == 0 && is_integral(start.dtype(), false),
        "start must be an 0-dim integral Tensor.");
  return narrow_op(x, dim, start.item().to_int(), length);
}

// ---- diagonal ----

Tensor diagonal_view(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t a = wrap_dim(dim1, x.dim()), b = wrap_dim(dim2, x.dim());
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Dims sizes(x.sizes()), strides(x.strides());
  int64_t rows = at(sizes, a), cols = at(sizes, b), row_stride = at(strides, a),
          col_stride = at(strides, b);
  int64_t n = offset >= 0 ? std::min(rows, cols - offset) : std::min(rows + offset, cols);
  n = std::max<int64_t>(n, 0);
  int64_t start = n == 0 ? 0 : offset >= 0 ? offset * col_stride : -offset * row_stride;
  sizes.erase(static_cast<size_t>(std::max(a, b)));
  sizes.erase(static_cast<size_t>(std::min(a, b)));
  strides.erase(static_cast<size_t>(std::max(a, b)));
  strides.erase(static_cast<size_t>(std::min(a, b)));
  sizes.push_back(n);
  strides.push_back(row_stride + col_stride);
  return make_view(x, sizes, strides, x.offset() + start);
}
void diagonal_backward(Backward& b) {
  b.set(0, op<"_diagonal_backward">(b.grad(), b.sizes(0), b.arg<int64_t>(1), b.arg<int64_t>(2),
                                    b.arg<int64_t>(3)));
}
Tensor diagonal_backward_op(const Tensor& g, DimsRef sizes, int64_t offset, int64_t dim1,
                            int64_t dim2) {
  Tensor out = raw_zeros(sizes, g.options());
  if (!g.is_meta()) copy_into(diagonal_view(out, offset, dim1, dim2), g);
  return out;
}
void diagonal_backward_backward(Backward& b) {
  b.set(0, op<"diagonal">(b.grad(), b.arg<int64_t>(2), b.arg<int64_t>(3), b.arg<int64_t>(4)));
}

// ---- unfold ----

Tensor unfold_view(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  auto d = static_cast<size_t>(wrap_dim(dim, x.dim()));
  int64_t have = x.dim() == 0 ? 1 : x.sizes()[d];
  check(size >= 0, "size is ", size, " but must be >= 0");
  check(size <= have, "maximum size for tensor at dimension ", d, " is ", have, " but size is ",
        size);
  check(step > 0, "step is ", step, " but must be > 0");
  Dims sizes(x.sizes()), strides(x.strides());
  sizes.push_back(size);
  strides.push_back(x.dim() == 0 ? 1 : x.strides()[d]);
  if (x.dim() > 0) {
    sizes[d] = (have - size) / step + 1;
    strides[d] = stepped(strides[d], step);
  }
  return make_view(x, sizes, strides, x.offset());
}
void unfold_backward(Backward& b) {
  b.set(0, op<"_unfold_backward">(b.grad(), b.sizes(0), b.arg<int64_t>(1), b.arg<int64_t>(2),
                                  b.arg<int64_t>(3)));
}
// Adds each window back to its source. If windows overlap, adds slices of them that do not.
Tensor unfold_backward_op(const Tensor& g, DimsRef sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor out = raw_zeros(sizes, g.options());
  if (g.is_meta()) return out;
  GradMode off(false);
  if (sizes.empty()) return size == 0 ? out : op<"reshape">(g, Dims{});
  auto d = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  int64_t windows = at(g.sizes(), d);
  for (int64_t i = 0; i < size; i += step) {
    const int64_t many = std::min(step, size - i);
    Tensor to =
        unfold_view(slice_view(out, d, i, i + (windows - 1) * step + many, 1), d, many, step);
    Tensor from = slice_view(g, g.dim() - 1, i, i + many, 1);
    if (i == 0) copy_into(to, from);
    else op<"add_">(to, from);
  }
  return out;
}
void unfold_backward_backward(Backward& b) {
  b.set(0, op<"unfold">(b.grad(), b.arg<int64_t>(2), b.arg<int64_t>(3), b.arg<int64_t>(4)));
}

// ---- as_strided ----

// The input's strides and offset are arguments because the derivative needs them (and not the
// input).
Tensor as_strided_op(const Tensor& x, DimsRef size, DimsRef stride, std::optional<int64_t> offset) {
  check(size.size() == stride.size(), "mismatch in length of strides and shape");
  return op<"_as_strided">(x, size, stride, offset.value_or(x.offset()), x.strides(), x.offset());
}
Tensor as_strided_view(const Tensor& x, DimsRef size, DimsRef stride, int64_t offset, DimsRef,
                       int64_t) {
  return make_view(x, size, stride, offset);
}

Tensor as_strided_in_place(const Tensor& x, DimsRef size, DimsRef stride,
                           std::optional<int64_t> offset) {
  check(size.size() == stride.size(), "mismatch in length of strides and shape");
  return op<"_as_strided_">(x, size, stride, offset.value_or(x.offset()), x.strides(), x.offset());
}
Tensor as_strided_here(const Tensor& x, DimsRef size, DimsRef stride, int64_t offset, DimsRef,
                       int64_t) {
  make_view(x, size, stride, offset);  // checks the bounds
  set_geometry(x, size, stride, offset);
  return x;
}

// The storage offset of every element, in row-major order, starting at `start`.
Tensor storage_offsets(DimsRef sizes, DimsRef strides, int64_t start, Device device) {
  const Tensor t = empty(Dims{numel_of(sizes)}, {DType::Int64, device});
  factory::tabulate(t, [&](int64_t i) {
    int64_t offset = start;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) offset += i % sizes[d] * strides[d];
    return offset;
  });
  return t;
}
int64_t reach_of(DimsRef sizes, DimsRef strides, int64_t offset) {
  for (size_t i = 0; i < sizes.size(); ++i)
    offset += sizes[i] > 0 ? (sizes[i] - 1) * strides[i] : 0;
  return offset + 1;
}

// True if no two elements of such a view share memory: each stride exceeds the extent of the
// smaller ones.
bool elements_are_distinct(DimsRef sizes, DimsRef strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) steps.emplace_back(strides[i], sizes[i]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (auto [step, size] : steps) {
    if (step <= reach) return false;
    reach += (size - 1) * step;
  }
  return true;
}

// Adds g to a view of `held` whose elements may overlap, in slices without overlap: every k-th
// index of a dimension whose stride is less than the extent of the smaller ones. Returns false,
// having done nothing, if that takes too many slices.
bool add_in_disjoint_slices(const Tensor& held, DimsRef size, DimsRef stride, int64_t start,
                            const Tensor& g) {
  const size_t dims = size.size();
  std::vector<size_t> order(dims);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return stride[a] < stride[b]; });
  Dims parts(dims, 1);
  int64_t reach = 0, count = 1;
  for (size_t d : order) {
    if (size[d] <= 1) continue;
    if (stride[d] == 0) return false;
    parts[d] = std::min(size[d], reach / stride[d] + 1);
    reach += (size[d] - 1) / parts[d] * parts[d] * stride[d];
    count *= parts[d];
    if (count > 64 && count > numel_of(size) / 4096) return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    Dims sizes(size), to(stride), from(g.strides());
    int64_t to_start = start, from_start = g.offset(), rest = i;
    for (size_t d = 0; d < dims; ++d) {
      const int64_t first = rest % parts[d];
      rest /= parts[d];
      sizes[d] = (sizes[d] - first + parts[d] - 1) / parts[d];
      to_start += first * to[d];
      from_start += first * from[d];
      to[d] *= parts[d];
      from[d] *= parts[d];
    }
    op<"add_">(make_view(held, sizes, to, to_start), make_view(g, sizes, from, from_start));
  }
  return true;
}

// Accumulates the gradient in a buffer that represents the storage: result elements that share
// memory add up, and input elements that share memory split the gradient evenly.
void as_strided_backward(Backward& b) {
  const Dims in_sizes = b.sizes(0), size = b.arg<Dims>(1), stride = b.arg<Dims>(2),
             in_stride = b.arg<Dims>(4);
  int64_t offset = b.arg<int64_t>(3), in_offset = b.arg<int64_t>(5),
          base = std::min(offset, in_offset);
  int64_t n =
      std::max(reach_of(size, stride, offset), reach_of(in_sizes, in_stride, in_offset)) - base;
  const Tensor& g = b.grad();
  const bool plain = !modes.grad && modes.always == 0 && !(g.flags() & modes.watched);
  if (plain && elements_are_distinct(in_sizes, in_stride)) {
    const bool whole = in_offset == base && n == numel_of(in_sizes) &&
                       same(in_stride, contiguous_strides(in_sizes));
    Tensor held = raw_zeros(whole ? in_sizes : Dims{n}, g.options());
    const bool distinct = elements_are_distinct(size, stride);
    if (!g.is_meta() && distinct) copy_into(make_view(held, size, stride, offset - base), g);
    if (g.is_meta() || distinct || add_in_disjoint_slices(held, size, stride, offset - base, g)) {
      b.set(0, whole ? held : raw_clone(make_view(held, in_sizes, in_stride, in_offset - base)));
      return;
    }
  }
  Tensor to = storage_offsets(size, stride, offset - base, g.device());
  Tensor from = storage_offsets(in_sizes, in_stride, in_offset - base, g.device());
  Tensor held = op<"index_add">(zeros(Dims{n}, g.options()), 0, to, reshape(g, Dims{-1}));
  Tensor grad = op<"index_select">(held, 0, from);
  if (!is_dense_nonoverlapping(in_sizes, in_stride)) {
    Tensor one = full(Dims{from.numel()}, Scalar(1.0), g.options());
    Tensor count = op<"index_add">(zeros(Dims{n}, g.options()), 0, from, one);
    grad = grad / op<"index_select">(count, 0, from);
  }
  b.set(0, reshape(grad, in_sizes));
}

// ---- scatters: a copy of `self` in which a view has been replaced ----

Tensor replaced(const Tensor& x, const Tensor& src, const Tensor& copy, const Tensor& part) {
  check(same(part.sizes(), src.sizes()),
        "expected src to have a size equal to the slice of self. src size = ",
        to_string(src.sizes()), ", slice size = ", to_string(part.sizes()));
  if (!x.is_meta()) copy_into(part, src);
  return copy;
}
Tensor slice_scatter_op(const Tensor& x, const Tensor& src, int64_t dim,
                        std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  Tensor copy = raw_clone(x);
  return replaced(x, src, copy, slice_view(copy, dim, start, end, step));
}
void slice_scatter_backward(Backward& b) {
  using I = std::optional<int64_t>;
  const Tensor& g = b.grad();
  int64_t dim = b.arg<int64_t>(2), step = b.arg<int64_t>(5);
  if (b.needs(0)) {
    b.set(0, op<"slice_scatter">(g, zeros(b.sizes(1), g.options()), dim, b.arg<I>(3), b.arg<I>(4),
                                 step));
  }
  b.set(1, op<"slice">(g, dim, b.arg<I>(3), b.arg<I>(4), step));
}

Tensor as_strided_scatter_op(const Tensor& x, const Tensor& src, const Dims& size,
                             const Dims& stride, std::optional<int64_t> offset) {
  Tensor copy = empty_like(x);  // keeps a dense layout
  copy_into(copy, x);
  const int64_t start =
      offset.value_or(x.offset()) - (same(copy.strides(), x.strides()) ? x.offset() : 0);
  return replaced(x, src, copy, make_view(copy, size, stride, start));
}
void as_strided_scatter_backward(Backward& b) {
  const Dims size = b.arg<Dims>(2), stride = b.arg<Dims>(3);
  auto offset = b.arg<std::optional<int64_t>>(4);
  Tensor g = contiguous(b.grad());
  if (b.needs(0)) {
    b.set(0, op<"as_strided_scatter">(g, zeros(b.sizes(1), g.options()), size, stride, offset));
  }
  b.set(1, op<"as_strided">(g, size, stride, offset));
}
Tensor select_scatter_op(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  Tensor copy = raw_clone(x);
  return replaced(x, src, copy, select_view(copy, dim, index));
}
void select_scatter_backward(Backward& b) {
  const Tensor& g = b.grad();
  int64_t dim = b.arg<int64_t>(2), index = b.arg<int64_t>(3);
  if (b.needs(0)) b.set(0, op<"select_scatter">(g, zeros(b.sizes(1), g.options()), dim, index));
  b.set(1, op<"select">(g, dim, index));
}
Tensor diagonal_scatter_op(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1,
                           int64_t dim2) {
  Tensor copy = raw_clone(x);
  return replaced(x, src, copy, diagonal_view(copy, offset, dim1, dim2));
}
void diagonal_scatter_backward(Backward& b) {
  const Tensor& g = b.grad();
  int64_t offset = b.arg<int64_t>(2), dim1 = b.arg<int64_t>(3), dim2 = b.arg<int64_t>(4);
  if (b.needs(0))
    b.set(0, op<"diagonal_scatter">(g, zeros(b.sizes(1), g.options()), offset, dim1, dim2));
  b.set(1, op<"diagonal">(g, offset, dim1, dim2));
}

// ---- ops ----

const Define kSelectOps[] = {
    {"slice(self: Tensor, dim: int = 0, start: int? = None, end: int? = None, step: int = 1) -> "
     "Tensor",
     "A view of the elements start, start + step, ... before `end` along `dim`, clamped as "
     "Python's slices are.",
     kernel(slice_view),
     {.backward = slice_backward, .forms = 0, .view = true, .vmap = vmap::strictly_along}},
    {"_slice_backward(grad: Tensor, sizes: int[], dim: int, start: int?, end: int?, step: int) -> "
     "Tensor",
     "Zeros of shape `sizes` with `grad` at the slice.",
     kernel(slice_backward_op),
     {.backward = slice_backward_backward, .vmap = vmap::strictly_along}},
    {"select(self: Tensor, dim: int, index: int) -> Tensor",
     "A view of the slice at `index` of dimension `dim`, without that dimension.",
     kernel(select_view),
     {.backward = select_backward, .view = true, .vmap = vmap::strictly_along}},
    {"_select_backward(grad: Tensor, sizes: int[], dim: int, index: int) -> Tensor",
     "Zeros of shape `sizes` with `grad` at the selected index.",
     kernel(select_backward_op),
     {.backward = select_backward_backward, .vmap = vmap::strictly_along}},
    {"narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor",
     "A view of `length` indices of dimension `dim`, from `start` on.",
     kernel(narrow_op),
     {.composite = true}},
    {"narrow(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor",
     "The same, with `start` in a zero-dim tensor of integers.",
     kernel(narrow_tensor),
     {.composite = true}},
    {"diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
     "A view of the diagonals of the matrices that `dim1` and `dim2` span, as a new last "
     "dimension. A positive `offset` "
     "lies above the main diagonal.",
     kernel(diagonal_view),
     {.backward = diagonal_backward, .view = true, .vmap = vmap::strictly_along}},
    {"_diagonal_backward(grad: Tensor, sizes: int[], offset: int, dim1: int, dim2: int) -> Tensor",
     "Zeros of shape `sizes` with `grad` on the diagonal.",
     kernel(diagonal_backward_op),
     {.backward = diagonal_backward_backward, .vmap = vmap::strictly_along}},
    {"unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor",
     "A view of all windows of length `size` along `dimension`, `step` apart; the window is a new "
     "last dimension.",
     kernel(unfold_view),
     {.backward = unfold_backward, .forms = kMethod, .view = true, .vmap = vmap::along}},
    {"_unfold_backward(grad: Tensor, sizes: int[], dim: int, size: int, step: int) -> Tensor",
     "The sum of the windows `grad`, each where it came from.",
     kernel(unfold_backward_op),
     {.backward = unfold_backward_backward, .vmap = vmap::along}},
    {"as_strided(self: Tensor, size: int[], stride: int[], storage_offset: int? = None) -> Tensor",
     "A view of the storage of `self` with any sizes, strides and offset that stay inside it.",
     kernel(as_strided_op),
     {.composite = true}},
    {"_as_strided(self: Tensor, size: int[], stride: int[], storage_offset: int, self_stride: "
     "int[], self_offset: int) "
     "-> Tensor",
     "`as_strided`, told the geometry of `self`.",
     kernel(as_strided_view),
     {.backward = as_strided_backward, .view = true}},
    {"as_strided_(self!: Tensor, size: int[], stride: int[], storage_offset: int? = None) -> "
     "Tensor",
     "`as_strided` applied to `self` itself.",
     kernel(as_strided_in_place),
     {.composite = true}},
    {"_as_strided_(self!: Tensor, size: int[], stride: int[], storage_offset: int, self_stride: "
     "int[], self_offset: int) -> Tensor",
     "`as_strided_`, told the geometry of `self`.",
     kernel(as_strided_here),
     {.backward = as_strided_backward}},
    {"as_strided_scatter(self: Tensor, src: Tensor, size: int[], stride: int[], storage_offset: "
     "int? = None) -> Tensor",
     "A copy of `self` whose view `as_strided(size, stride, storage_offset)` is `src`.",
     kernel(as_strided_scatter_op),
     {.backward = as_strided_scatter_backward, .forms = kPublic | kOut}},
    {"slice_scatter(self: Tensor, src: Tensor, dim: int = 0, start: int? = None, end: int? = None, "
     "step: int = 1) "
     "-> Tensor",
     "A copy of `self` whose slice along `dim` is `src`.",
     kernel(slice_scatter_op),
     {.backward = slice_scatter_backward, .forms = kPublic | kOut, .vmap = vmap::strictly_along}},
    {"select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor",
     "A copy of `self` in which `src` is at index `index` of dimension `dim`.",
     kernel(select_scatter_op),
     {.backward = select_scatter_backward, .vmap = vmap::strictly_along}},
    {"diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) "
     "-> Tensor",
     "A copy of `self` with `src` on its diagonal.",
     kernel(diagonal_scatter_op),
     {.backward = diagonal_scatter_backward, .vmap = vmap::strictly_along}},
};

}  // namespace
}  // namespace taeda
