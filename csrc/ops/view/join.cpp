// Joining tensors: cat, stack and their relatives.
#include "kernels/join.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

// A tensor of shape (0,) joins with anything and adds nothing.
bool is_skipped(DimsRef sizes) { return sizes.size() == 1 && sizes[0] == 0; }

DType common_dtype(const TensorList& tensors) {
  DType d = tensors[0].dtype();
  for (const Tensor& t : tensors) {
    if (t.dtype() != d) d = promote(d, t.dtype());
  }
  return d;
}

// Concatenates the pieces along `dim` of `out`.
void fill_joined(const Tensor& out, const TensorList& pieces, int64_t dim) {
  bool plain = out.is_contiguous();
  for (const Tensor& t : pieces) plain = plain && t.is_contiguous() && t.dtype() == out.dtype();
  if (plain) {
    int64_t rows = 1;
    for (int64_t d = 0; d < dim; ++d) rows *= at(out.sizes(), d);
    if (rows == 0) return;
    std::vector<JoinPiece> list;
    list.reserve(pieces.size());
    for (const Tensor& t : pieces) {
      if (t.numel() > 0) list.push_back({t.data(), t.nbytes() / static_cast<size_t>(rows)});
    }
    kernels<JoinKernels>(out.device()).join_rows(out.data(), list, rows);
    return;
  }
  int64_t start = 0;
  for (const Tensor& t : pieces) {
    int64_t n = at(t.sizes(), dim);
    if (t.numel() > 0) copy_into(raw_narrow(out, dim, start, n), t);
    start += n;
  }
}

bool all_channels_last(const TensorList& tensors) {
  for (const Tensor& t : tensors) {
    if (t.dim() != 4 || t.is_contiguous() || !t.is_contiguous(MemoryFormat::ChannelsLast))
      return false;
  }
  return true;
}

Tensor cat_op(const TensorList& tensors, int64_t dim) {
  check<ValueError>(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  size_t skipped = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i,
          ") cannot be concatenated");
    check(tensors[i].device() == tensors[0].device(),
          "Expected all tensors to be on the same device, but found at least two devices, ",
          tensors[0].device(), " and ", tensors[i].device(), "!");
    skipped += is_skipped(tensors[i].sizes());
  }
  TensorList others;
  if (skipped) {
    for (const Tensor& t : tensors)
      if (!is_skipped(t.sizes())) others.push_back(t);
  }
  const TensorList& pieces = skipped ? others : tensors;
  Options options{common_dtype(tensors), tensors[0].device()};
  if (pieces.empty()) {
    wrap_dim(dim, 1);
    return empty(Dims{0}, options);
  }
  const Tensor& first = pieces[0];
  int64_t d = wrap_dim(dim, first.dim());
  Dims sizes(first.sizes());
  for (size_t i = 1; i < pieces.size(); ++i) {
    const Tensor& t = pieces[i];
    check(t.dim() == first.dim(), "Tensors must have same number of dimensions: got ", first.dim(),
          " and ", t.dim());
    for (int64_t k = 0; k < first.dim(); ++k) {
      check(k == d || at(t.sizes(), k) == at(first.sizes(), k),
            "Sizes of tensors must match except in dimension ", d, ". Expected size ",
            at(first.sizes(), k), " but got size ", at(t.sizes(), k), " for tensor number ", i,
            " in the list.");
    }
    sizes[static_cast<size_t>(d)] += at(t.sizes(), d);
  }
  Tensor out = all_channels_last(pieces)
                   ? empty_strided(sizes, channels_last_strides(sizes), options)
                   : empty(sizes, options);
  if (!out.is_meta() && out.numel() > 0) fill_joined(out, pieces, d);
  return out;
}

void cat_backward(Backward& b) {
  const Tensor& g = b.grad();
  size_t n = b.list_size(0);
  int64_t start = 0;
  for (size_t j = 0; j < n; ++j) {
    const Dims& s = b.list_sizes(0, j);
    if (is_skipped(s)) {
      b.set_item(0, j, zeros(s, g.options()));
      continue;
    }
    const int64_t dim = wrap_dim(b.arg<int64_t>(1), std::ssize(s));
    b.set_item(0, j, narrow(g, dim, start, at(s, dim)));
    start += at(s, dim);
  }
}

Tensor stack_op(const TensorList& tensors, int64_t dim) {
  check(!tensors.empty(), "stack expects a non-empty TensorList");
  const Tensor& first = tensors[0];
  auto d = static_cast<size_t>(wrap_dim(dim, first.dim() + 1));
  TensorList pieces;
  pieces.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    check(same(t.sizes(), first.sizes()), "stack expects each tensor to be equal size, but got ",
          to_string(first.sizes()), " at entry 0 and ", to_string(t.sizes()), " at entry ", i);
    Dims sizes(t.sizes()), strides(t.strides());
    sizes.insert(d, 1);
    strides.insert(d, 1);
    pieces.push_back(raw_view(t, sizes, strides, t.offset()));
  }
  Dims sizes(first.sizes());
  sizes.insert(d, static_cast<int64_t>(tensors.size()));
  Tensor out = empty(sizes, {common_dtype(tensors), first.device()});
  if (!out.is_meta() && out.numel() > 0) fill_joined(out, pieces, static_cast<int64_t>(d));
  return out;
}

void stack_backward(Backward& b) {
  TensorList grads = ops<"unbind">(b.grad(), b.arg<int64_t>(1));
  for (size_t j = 0; j < grads.size(); ++j) b.set_item(0, j, grads[j]);
}

Tensor concat_op(const TensorList& tensors, int64_t dim) { return op<"cat">(tensors, dim); }

template <OpName AtLeast> TensorList lifted(const TensorList& tensors, const char* what) {
  check(!tensors.empty(), what, " expects a non-empty TensorList");
  TensorList out;
  for (const Tensor& t : tensors) out.push_back(op<AtLeast>(t));
  return out;
}
Tensor hstack_op(const TensorList& tensors) {
  TensorList list = lifted<"atleast_1d">(tensors, "hstack");
  return op<"cat">(list, list[0].dim() == 1 ? 0 : 1);
}
Tensor vstack_op(const TensorList& tensors) {
  return op<"cat">(lifted<"atleast_2d">(tensors, "vstack"), 0);
}
Tensor dstack_op(const TensorList& tensors) {
  return op<"cat">(lifted<"atleast_3d">(tensors, "dstack"), 2);
}
Tensor column_stack_op(const TensorList& tensors) {
  check(!tensors.empty(), "column_stack expects a non-empty TensorList");
  TensorList columns;
  for (const Tensor& t : tensors)
    columns.push_back(t.dim() <= 1 ? reshape(t, Dims{t.numel(), 1}) : t);
  return op<"cat">(std::move(columns), 1);
}

Tensor block_diag_op(const TensorList& tensors) {
  check(!tensors.empty(), "torch.block_diag(): expected a non-empty list of Tensors");
  TensorList blocks;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(tensors[i].dim() <= 2,
          "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i, " has ",
          tensors[i].dim(), " dimensions");
    check(tensors[i].device() == tensors[0].device(),
          "torch.block_diag(): input tensors must all be on the same device. Input 0 is on ",
          tensors[0].device(), " and input ", i, " is on ", tensors[i].device());
    blocks.push_back(op<"atleast_2d">(tensors[i]));
  }
  const DType dtype = common_dtype(blocks);
  for (Tensor& t : blocks) t = to(t, dtype);
  return op<"_block_diag">(blocks);
}

// The view of one block within the last two dimensions of t.
Tensor block_of(const Tensor& t, int64_t top, int64_t left, const Dims& sizes) {
  const int64_t row = std::ssize(sizes) - 2;
  return narrow(narrow(t, row, top, at(sizes, row)), row + 1, left, at(sizes, row + 1));
}
Tensor blocks_op(const TensorList& blocks) {
  check(!blocks.empty() && blocks[0].dim() >= 2, "_block_diag(): expected matrices");
  Dims sizes(blocks[0].sizes());
  const size_t row = sizes.size() - 2;
  sizes[row] = sizes[row + 1] = 0;
  for (const Tensor& t : blocks) {
    bool fits = t.dim() == blocks[0].dim() && t.dtype() == blocks[0].dtype() &&
                t.device() == blocks[0].device();
    for (size_t d = 0; fits && d < row; ++d) fits = t.sizes()[d] == sizes[d];
    check(fits, "_block_diag(): the blocks must agree but for the size of their matrices");
    sizes[row] += t.size(-2);
    sizes[row + 1] += t.size(-1);
  }
  Tensor out = raw_zeros(sizes, blocks[0].options());
  if (out.is_meta()) return out;
  int64_t top = 0, left = 0;
  for (const Tensor& t : blocks) {
    const Tensor rows = raw_narrow(out, static_cast<int64_t>(row), top, t.size(-2));
    if (t.numel()) copy_into(raw_narrow(rows, static_cast<int64_t>(row) + 1, left, t.size(-1)), t);
    top += t.size(-2);
    left += t.size(-1);
  }
  return out;
}
void blocks_backward(Backward& b) {
  const Tensor& g = b.grad();
  int64_t top = 0, left = 0;
  for (size_t j = 0; j < b.list_size(0); ++j) {
    const Dims& s = b.list_sizes(0, j);
    b.set_item(0, j, block_of(g, top, left, s));
    top += s[s.size() - 2];
    left += s[s.size() - 1];
  }
}

constexpr Traits kConcat{.forms = kFunction | kOut,
                         .composite = true,
                         .out_memory = {.disjoint = 0b1},
                         .out_dtype = OutDtype::Castable};
constexpr Traits kStack{.forms = kFunction | kOut,
                        .composite = true,
                        .whole_list = true,
                        .out_memory = {.disjoint = 0b1},
                        .out_dtype = OutDtype::Castable};

const Define kJoinOps[] = {
    {"cat(tensors: Tensor[], dim: int = 0) -> Tensor",
     "The tensors behind one another along `dim`. All other sizes must agree, but tensors of shape "
     "(0,) are skipped; the "
     "dtype is the promoted one.",
     kernel(cat_op),
     {.backward = cat_backward,
      .forms = kFunction | kOut,
      .autocast = Precision::Widest,
      .out_memory = {.disjoint = 0b1},
      .out_dtype = OutDtype::Castable}},
    {"concat(tensors: Tensor[], dim: int = 0) -> Tensor", "The same as `cat`.", kernel(concat_op),
     kConcat},
    {"concatenate(tensors: Tensor[], dim: int = 0) -> Tensor", "The same as `cat`.",
     kernel(concat_op), kConcat},
    {"stack(tensors: Tensor[], dim: int = 0) -> Tensor",
     "The tensors, all of one shape, side by side along a new dimension `dim`.",
     kernel(stack_op),
     {.backward = stack_backward,
      .forms = kFunction | kOut,
      .autocast = Precision::Widest,
      .out_memory = {.disjoint = 0b1},
      .out_dtype = OutDtype::Castable}},
    {"hstack(tensors: Tensor[]) -> Tensor",
     "`cat` along dimension 1, or 0 for tensors of at most one dimension.", kernel(hstack_op),
     kStack},
    {"vstack(tensors: Tensor[]) -> Tensor", "`cat` along dimension 0 of what `atleast_2d` gives.",
     kernel(vstack_op), kStack},
    {"row_stack(tensors: Tensor[]) -> Tensor", "The same as `vstack`.", kernel(vstack_op), kStack},
    {"dstack(tensors: Tensor[]) -> Tensor", "`cat` along dimension 2 of what `atleast_3d` gives.",
     kernel(dstack_op), kStack},
    {"column_stack(tensors: Tensor[]) -> Tensor",
     "`cat` along dimension 1, where vectors count as columns.", kernel(column_stack_op), kStack},
    {"block_diag(tensors: Tensor[]) -> Tensor",
     "A matrix with the given matrices along its diagonal, zeros elsewhere.",
     kernel(block_diag_op),
     {.forms = kFunction, .composite = true}},
    {"_block_diag(tensors: Tensor[]) -> Tensor",
     "The same for matrices of one dtype in the last two dimensions; all others are equal.",
     kernel(blocks_op),
     {.backward = blocks_backward}},
};

}  // namespace
}  // namespace taeda
