// Views of a part: slices, selections, splits, diagonals, windows and arbitrary strides.
#include "base/checked.h"
#include "ops/shape_util.h"

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

// A step that overflows leads past every tensor: no second element uses it.
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

// ---- split ----

// Each piece is a tensor, which takes memory whatever it shows.
void check_pieces(const char* what, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 24;
  check(count <= kMost, what, "(): ", count, " pieces are too many; at most ", kMost,
        " tensors can be made by one call");
}

TensorList pieces(const Tensor& x, int64_t dim, DimsRef lengths) {
  TensorList out;
  out.reserve(lengths.size());
  Dims sizes(x.sizes());
  auto d = static_cast<size_t>(dim);
  int64_t stride = x.strides()[d], start = 0;
  for (int64_t n : lengths) {
    sizes[d] = n;
    out.push_back(make_view(x, sizes, x.strides(), x.offset() + (n > 0 ? start * stride : 0)));
    start += n;
  }
  return out;
}

Dims even_lengths(int64_t size, int64_t length) {
  Dims lengths;
  for (int64_t left = size; left > 0; left -= length) lengths.push_back(std::min(left, length));
  if (lengths.empty()) lengths.push_back(0);
  return lengths;
}

TensorList split_op(const Tensor& x, int64_t split_size, int64_t dim) {
  check(x.dim() > 0, "split expects at least a 1-dimensional tensor");
  check(split_size >= 0,
        "split expects split_size be non-negative, but got split_size=", split_size);
  int64_t d = wrap_dim(dim, x.dim()), size = at(x.sizes(), d);
  check(split_size > 0 || size == 0,
        "split_size can only be 0 if dimension size is 0, but got dimension size of ", size);
  split_size = std::max<int64_t>(split_size, 1);
  check_pieces("split", (size - 1) / split_size + 1);
  return pieces(x, d, even_lengths(size, split_size));
}
TensorList split_with_sizes_op(const Tensor& x, DimsRef split_sizes, int64_t dim) {
  check(x.dim() > 0, "split expects at least a 1-dimensional tensor");
  int64_t d = wrap_dim(dim, x.dim()), size = at(x.sizes(), d), total = 0;
  for (int64_t n : split_sizes) {
    check(
        n >= 0,
        "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=",
        to_string(split_sizes));
    total = checked_add(total, n);
  }
  check(total == size, "split_with_sizes expects split_sizes to sum exactly to ", size,
        " (input tensor's size at dimension ", d,
        "), but got split_sizes=", to_string(split_sizes));
  return pieces(x, d, split_sizes);
}
void join_pieces(Backward& b, size_t n, int64_t dim) {
  TensorList grads;
  for (size_t i = 0; i < n; ++i) grads.push_back(b.grad_or_zeros(static_cast<int>(i)));
  b.set(0, op<"cat">(std::move(grads), dim));
}
void split_backward(Backward& b) {
  int64_t dim = b.arg<int64_t>(2);
  const Dims& s = b.sizes(0);
  int64_t size = at(s, wrap_dim(dim, static_cast<int64_t>(s.size())));
  join_pieces(b, even_lengths(size, std::max<int64_t>(b.arg<int64_t>(1), 1)).size(), dim);
}
void split_with_sizes_backward(Backward& b) {
  join_pieces(b, b.arg<Dims>(1).size(), b.arg<int64_t>(2));
}

TensorList split_sizes_op(const Tensor& x, DimsRef sizes, int64_t dim) {
  return ops<"split_with_sizes">(x, sizes, dim);
}

TensorList chunk_op(const Tensor& x, int64_t chunks, int64_t dim) {
  check(x.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  check(chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  int64_t size = x.size(dim), length = size / chunks + (size % chunks != 0);
  check_pieces("chunk", length ? size / length : chunks);
  if (length == 0) return ops<"split_with_sizes">(x, Dims(static_cast<size_t>(chunks), 0), dim);
  return ops<"split">(x, length, dim);
}

void check_tensor_split(const Tensor& x) {
  check(x.dim() > 0,
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with ", x.dim(),
        " dims");
}
TensorList tensor_split_sections(const Tensor& x, int64_t sections, int64_t dim) {
  check_tensor_split(x);
  check(sections > 0, "number of sections must be larger than 0, got ", sections);
  check_pieces("tensor_split", sections);
  int64_t size = x.size(dim);
  Dims lengths;
  for (int64_t i = 0; i < sections; ++i) lengths.push_back(size / sections + (i < size % sections));
  return ops<"split_with_sizes">(x, lengths, dim);
}
TensorList tensor_split_indices(const Tensor& x, DimsRef indices, int64_t dim) {
  check_tensor_split(x);
  TensorList out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(op<"slice">(x, dim, start, end, 1));
    start = end;
  }
  out.push_back(op<"slice">(x, dim, start, std::nullopt, 1));
  return out;
}
TensorList tensor_split_tensor(const Tensor& x, const Tensor& sections, int64_t dim) {
  check(sections.dtype() == DType::Int64,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got ",
        sections.dtype());
  check(sections.dim() <= 1,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
        "one-dimensional tensor, but got a "
        "tensor with ",
        sections.dim(), " dims");
  check(!sections.is_meta(), "tensor_split: the split points cannot be read from a meta tensor");
  if (sections.dim() == 0) return tensor_split_sections(x, sections.item().to_int(), dim);
  Tensor flat = raw_contiguous(sections);
  return tensor_split_indices(
      x, DimsRef(flat.data_as<int64_t>(), static_cast<size_t>(flat.numel())), dim);
}
// The dimension that hsplit, vsplit and dsplit cut: named by the op.
template <int Dim> int64_t xsplit_dim(const Tensor& x) {
  constexpr const char* names[] = {"vsplit", "hsplit", "dsplit"};
  constexpr int64_t least[] = {2, 1, 3};
  check(x.dim() >= least[Dim], names[Dim], " requires a tensor with at least ", least[Dim],
        " dimension but got a tensor with ", x.dim(), " dimensions!");
  return Dim == 1 && x.dim() == 1 ? 0 : Dim;
}
template <int Dim> TensorList xsplit_sections(const Tensor& x, int64_t sections) {
  int64_t dim = xsplit_dim<Dim>(x);
  check(sections != 0 && x.size(dim) % sections == 0, "attempted to split along dimension ", dim,
        ", but the size of the dimension ", x.size(dim), " is not divisible by the split_size ",
        sections, "!");
  return ops<"tensor_split">(x, sections, dim);
}
template <int Dim> TensorList xsplit_indices(const Tensor& x, DimsRef indices) {
  return tensor_split_indices(x, indices, xsplit_dim<Dim>(x));
}

TensorList unbind_op(const Tensor& x, int64_t dim) {
  int64_t d = wrap_dim(dim, x.dim()), n = x.size(d);
  Dims sizes(x.sizes()), strides(x.strides());
  int64_t step = at(strides, d);
  sizes.erase(static_cast<size_t>(d));
  strides.erase(static_cast<size_t>(d));
  check_pieces("unbind", n);
  TensorList out;
  out.reserve(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    out.push_back(make_view(x, sizes, strides, x.offset() + i * step));
  return out;
}
void unbind_backward(Backward& b) {
  const Dims& s = b.sizes(0);
  int64_t dim = b.arg<int64_t>(1), n = at(s, wrap_dim(dim, static_cast<int64_t>(s.size())));
  if (n == 0) return b.set(0, zeros(s, b.options(0)));
  TensorList grads;
  for (int64_t i = 0; i < n; ++i) grads.push_back(b.grad_or_zeros(static_cast<int>(i)));
  b.set(0, op<"stack">(std::move(grads), dim));
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
// Adds each window back to where it came from. Windows may overlap, so one element of the window at
// a time.
Tensor unfold_backward_op(const Tensor& g, DimsRef sizes, int64_t dim, int64_t size, int64_t step) {
  Tensor out = raw_zeros(sizes, g.options());
  if (g.is_meta()) return out;
  GradMode off(false);
  if (sizes.empty()) return size == 0 ? out : op<"reshape">(g, Dims{});
  auto d = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  int64_t windows = at(g.sizes(), d);
  for (int64_t i = 0; i < size; ++i) {
    Tensor to = slice_view(out, d, i, i + (windows - 1) * step + 1, step);
    op<"add_">(to, select_view(g, g.dim() - 1, i));
  }
  return out;
}
void unfold_backward_backward(Backward& b) {
  b.set(0, op<"unfold">(b.grad(), b.arg<int64_t>(2), b.arg<int64_t>(3), b.arg<int64_t>(4)));
}

// ---- as_strided ----

// The input's own strides and offset travel as arguments: the derivative needs them, and only them.
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
  make_view(x, size, stride, offset);  // which checks the bounds
  set_geometry(x, size, stride, offset);
  return x;
}

// Storage places of every element, row-major, relative to `first`.
Tensor places(DimsRef sizes, DimsRef strides, int64_t start, Device device) {
  int64_t n = numel_of(sizes);
  Tensor t = empty(Dims{n}, {DType::Int64, device});
  if (t.is_meta()) return t;
  auto* p = t.data_as<int64_t>();
  Dims i(sizes.size());
  for (int64_t k = 0, at_place = start; k < n; ++k) {
    p[k] = at_place;
    for (size_t d = sizes.size(); d-- > 0;) {
      at_place += strides[d];
      if (++i[d] < sizes[d]) break;
      at_place -= strides[d] * sizes[d];
      i[d] = 0;
    }
  }
  return t;
}
int64_t reach_of(DimsRef sizes, DimsRef strides, int64_t offset) {
  for (size_t i = 0; i < sizes.size(); ++i)
    offset += sizes[i] > 0 ? (sizes[i] - 1) * strides[i] : 0;
  return offset + 1;
}

// The gradient is gathered in a stand-in for the storage: results that share an element add up
// there, and arguments that share one share its gradient evenly.
void as_strided_backward(Backward& b) {
  const Dims in_sizes = b.sizes(0), size = b.arg<Dims>(1), stride = b.arg<Dims>(2),
             in_stride = b.arg<Dims>(4);
  int64_t offset = b.arg<int64_t>(3), in_offset = b.arg<int64_t>(5),
          base = std::min(offset, in_offset);
  int64_t n =
      std::max(reach_of(size, stride, offset), reach_of(in_sizes, in_stride, in_offset)) - base;
  const Tensor& g = b.grad();
  Tensor to = places(size, stride, offset - base, g.device());
  Tensor from = places(in_sizes, in_stride, in_offset - base, g.device());
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
  Tensor copy = empty_like(x);  // a dense layout stays as it is
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

const Define kOps[] = {
    {"slice(self: Tensor, dim: int = 0, start: int? = None, end: int? = None, step: int = 1) -> "
     "Tensor",
     "A view of the elements start, start + step, ... before `end` along `dim`, clamped as "
     "Python's slices are.",
     kernel(slice_view),
     {.backward = slice_backward, .forms = 0, .view = true}},
    {"_slice_backward(grad: Tensor, sizes: int[], dim: int, start: int?, end: int?, step: int) -> "
     "Tensor",
     "Zeros of shape `sizes` with `grad` at the slice.",
     kernel(slice_backward_op),
     {.backward = slice_backward_backward}},
    {"select(self: Tensor, dim: int, index: int) -> Tensor",
     "A view of what stands at place `index` of dimension `dim`, without that dimension.",
     kernel(select_view),
     {.backward = select_backward, .view = true}},
    {"_select_backward(grad: Tensor, sizes: int[], dim: int, index: int) -> Tensor",
     "Zeros of shape `sizes` with `grad` at the selected place.",
     kernel(select_backward_op),
     {.backward = select_backward_backward}},
    {"narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor",
     "A view of `length` places of dimension `dim`, from `start` on.",
     kernel(narrow_op),
     {.composite = true}},
    {"narrow(self: Tensor, dim: int, start: Tensor, length: int) -> Tensor",
     "The same, with `start` in a zero-dim tensor of integers.",
     kernel(narrow_tensor),
     {.composite = true}},
    {"split(self: Tensor, split_size_or_sections: int, dim: int = 0) -> Tensor[]",
     "Views of consecutive pieces of that length along `dim`; the last may be shorter.",
     kernel(split_op),
     {.backward = split_backward, .view = true}},
    {"split(self: Tensor, split_size_or_sections: int[], dim: int = 0) -> Tensor[]",
     "Views of consecutive pieces of the given lengths, which must add up to the size of `dim`.",
     kernel(split_sizes_op),
     {.composite = true}},
    {"split_with_sizes(self: Tensor, split_sizes: int[], dim: int = 0) -> Tensor[]",
     "Views of consecutive pieces of the given lengths, which must add up to the size of `dim`.",
     kernel(split_with_sizes_op),
     {.backward = split_with_sizes_backward, .view = true}},
    {"chunk(self: Tensor, chunks: int, dim: int = 0) -> Tensor[]",
     "Views of at most `chunks` pieces of equal length along `dim`; the last may be shorter.",
     kernel(chunk_op),
     {.composite = true}},
    {"tensor_split(self: Tensor, sections: int, dim: int = 0) -> Tensor[]",
     "Views of `sections` pieces along `dim` whose lengths differ by at most one.",
     kernel(tensor_split_sections),
     {.composite = true}},
    {"tensor_split(self: Tensor, indices: int[], dim: int = 0) -> Tensor[]",
     "Views of the pieces between the given places of `dim`.",
     kernel(tensor_split_indices),
     {.composite = true}},
    {"tensor_split(self: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0) -> Tensor[]",
     "As above, with the number of sections or the places in a CPU tensor of int64.",
     kernel(tensor_split_tensor),
     {.composite = true}},
    {"hsplit(self: Tensor, sections: int) -> Tensor[]",
     "`tensor_split` of the columns into equal pieces.",
     kernel(xsplit_sections<1>),
     {.composite = true}},
    {"hsplit(self: Tensor, indices: int[]) -> Tensor[]",
     "`tensor_split` of the columns.",
     kernel(xsplit_indices<1>),
     {.composite = true}},
    {"vsplit(self: Tensor, sections: int) -> Tensor[]",
     "`tensor_split` of the rows into equal pieces.",
     kernel(xsplit_sections<0>),
     {.composite = true}},
    {"vsplit(self: Tensor, indices: int[]) -> Tensor[]",
     "`tensor_split` of the rows.",
     kernel(xsplit_indices<0>),
     {.composite = true}},
    {"dsplit(self: Tensor, sections: int) -> Tensor[]",
     "`tensor_split` of dimension 2 into equal pieces.",
     kernel(xsplit_sections<2>),
     {.composite = true}},
    {"dsplit(self: Tensor, indices: int[]) -> Tensor[]",
     "`tensor_split` of dimension 2.",
     kernel(xsplit_indices<2>),
     {.composite = true}},
    {"unbind(self: Tensor, dim: int = 0) -> Tensor[]",
     "Views of each place of dimension `dim`, without it.",
     kernel(unbind_op),
     {.backward = unbind_backward, .view = true}},
    {"diagonal(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
     "A view of the diagonals of the matrices that `dim1` and `dim2` span, as a new last "
     "dimension. A positive `offset` "
     "lies above the main diagonal.",
     kernel(diagonal_view),
     {.backward = diagonal_backward, .view = true}},
    {"_diagonal_backward(grad: Tensor, sizes: int[], offset: int, dim1: int, dim2: int) -> Tensor",
     "Zeros of shape `sizes` with `grad` on the diagonal.",
     kernel(diagonal_backward_op),
     {.backward = diagonal_backward_backward}},
    {"unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor",
     "A view of all windows of length `size` along `dimension`, `step` apart; the window is a new "
     "last dimension.",
     kernel(unfold_view),
     {.backward = unfold_backward, .forms = kMethod, .view = true}},
    {"_unfold_backward(grad: Tensor, sizes: int[], dim: int, size: int, step: int) -> Tensor",
     "The sum of the windows `grad`, each where it came from.",
     kernel(unfold_backward_op),
     {.backward = unfold_backward_backward}},
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
     {.backward = slice_scatter_backward, .forms = kPublic | kOut}},
    {"select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor",
     "A copy of `self` in which `src` stands at place `index` of dimension `dim`.",
     kernel(select_scatter_op),
     {.backward = select_scatter_backward}},
    {"diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) "
     "-> Tensor",
     "A copy of `self` with `src` on its diagonal.",
     kernel(diagonal_scatter_op),
     {.backward = diagonal_scatter_backward}},
};

}  // namespace
}  // namespace taeda
