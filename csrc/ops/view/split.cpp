// Views of consecutive pieces: split, chunk and unbind.
#include "base/checked.h"
#include "ops/core/memory.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

// Limits the number of pieces: each is a tensor object, which takes memory even if it is empty.
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
  return tensor_split_indices(x, host_values<int64_t>(sections), dim);
}
// The dimension split by hsplit, vsplit and dsplit.
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

// ---- ops ----

const Define kSplitOps[] = {
    {"split(self: Tensor, split_size_or_sections: int, dim: int = 0) -> Tensor[]",
     "Views of consecutive pieces of that length along `dim`; the last may be shorter.",
     kernel(split_op),
     {.backward = split_backward, .view = true, .vmap = vmap::strictly_along}},
    {"split(self: Tensor, split_size_or_sections: int[], dim: int = 0) -> Tensor[]",
     "Views of consecutive pieces of the given lengths, which must add up to the size of `dim`.",
     kernel(split_sizes_op),
     {.composite = true}},
    {"split_with_sizes(self: Tensor, split_sizes: int[], dim: int = 0) -> Tensor[]",
     "Views of consecutive pieces of the given lengths, which must add up to the size of `dim`.",
     kernel(split_with_sizes_op),
     {.backward = split_with_sizes_backward, .view = true, .vmap = vmap::strictly_along}},
    {"chunk(self: Tensor, chunks: int, dim: int = 0) -> Tensor[]",
     "Views of at most `chunks` pieces of equal length along `dim`; the last may be shorter.",
     kernel(chunk_op),
     {.composite = true}},
    {"tensor_split(self: Tensor, sections: int, dim: int = 0) -> Tensor[]",
     "Views of `sections` pieces along `dim` whose lengths differ by at most one.",
     kernel(tensor_split_sections),
     {.composite = true}},
    {"tensor_split(self: Tensor, indices: int[], dim: int = 0) -> Tensor[]",
     "Views of the pieces between the given indices of `dim`.",
     kernel(tensor_split_indices),
     {.composite = true}},
    {"tensor_split(self: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0) -> Tensor[]",
     "As above, with the number of sections or the indices in a CPU tensor of int64.",
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
     {.backward = unbind_backward, .view = true, .vmap = vmap::strictly_along}},
};

}  // namespace
}  // namespace taeda
