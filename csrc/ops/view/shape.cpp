// Shape ops that may copy: reshape, roll, flip, and composites of views.
#include "base/checked.h"
#include "kernels/pointwise.h"
#include "ops/core/shape_util.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

// ---- reshape and flatten ----

Tensor reshape_op(const Tensor& x, DimsRef shape) {
  Dims sizes = infer_size(shape, x.numel()), strides;
  if (view_strides(x.sizes(), x.strides(), sizes, &strides)) return op<"view">(x, sizes);
  return op<"_reshape_copy">(x, sizes);
}
Tensor reshape_copy(const Tensor& x, DimsRef sizes) {
  Tensor out = empty(sizes, x.options());
  if (!x.is_meta()) copy_into(raw_view(out, x.sizes(), contiguous_strides(x.sizes()), 0), x);
  return out;
}
Tensor reshape_as_op(const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); }

Tensor flatten_op(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  int64_t a = wrap_dim(start_dim, x.dim()), b = wrap_dim(end_dim, x.dim());
  check(a <= b, "flatten() has invalid args: start_dim cannot come after end_dim, but got ",
        start_dim, " and ", end_dim, " for a tensor of ", x.dim(), " dimensions");
  if (x.dim() == 0) return reshape(x, Dims{1});
  if (a == b) return x;
  Dims sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d < a || d > b) {
      sizes.push_back(at(x.sizes(), d));
    } else {
      joined = checked_mul(joined, at(x.sizes(), d));
      if (d == b) sizes.push_back(joined);
    }
  }
  return reshape(x, sizes);
}
Tensor ravel_op(const Tensor& x) { return reshape(x, Dims{-1}); }

Tensor unflatten_op(const Tensor& x, int64_t dim, DimsRef sizes) {
  int64_t d = wrap_dim(dim, x.dim());
  check(!sizes.empty(), "unflatten: sizes must be non-empty");
  int64_t size = x.size(d), known = 1, holes = 0;
  for (int64_t s : sizes) {
    if (s == -1) ++holes;
    else known = checked_mul(known, s);
  }
  check(holes <= 1, "unflatten: only one dimension can be inferred, got sizes ", to_string(sizes));
  check(holes ? known != 0 && size % known == 0 : known == size, "unflatten: Provided sizes ",
        to_string(sizes), " don't multiply up to the size of dim ", d, " (", size,
        ") in the input tensor");
  Dims out;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != d) {
      out.push_back(at(x.sizes(), i));
      continue;
    }
    for (int64_t s : sizes) out.push_back(s == -1 ? size / known : s);
  }
  return op<"view">(x, out);
}

Tensor broadcast_to_op(const Tensor& x, DimsRef size) { return expand(x, size); }
TensorList broadcast_tensors_op(const TensorList& tensors) {
  Dims sizes;
  for (const Tensor& t : tensors) sizes = broadcast_sizes(sizes, t.sizes());
  TensorList out;
  for (const Tensor& t : tensors) out.push_back(expand(t, sizes));
  return out;
}

Tensor atleast_1d_op(const Tensor& x) { return x.dim() == 0 ? reshape(x, Dims{1}) : x; }
Tensor atleast_2d_op(const Tensor& x) {
  if (x.dim() == 0) return reshape(x, Dims{1, 1});
  return x.dim() == 1 ? unsqueeze(x, 0) : x;
}
Tensor atleast_3d_op(const Tensor& x) {
  if (x.dim() == 0) return reshape(x, Dims{1, 1, 1});
  if (x.dim() == 1) return unsqueeze(unsqueeze(x, 0), -1);
  return x.dim() == 2 ? unsqueeze(x, -1) : x;
}

template <OpName Name> TensorList each_of(const TensorList& tensors) {
  TensorList out;
  for (const Tensor& t : tensors) out.push_back(op<Name>(t));
  return out;
}

// ---- roll and flip ----

Tensor roll_one(const Tensor& x, int64_t shift, int64_t dim) {
  int64_t size = x.size(dim);
  Tensor out = empty(x.sizes(), x.options());
  if (x.is_meta() || x.numel() == 0) return out;
  shift = ((shift % size) + size) % size;
  dim = wrap_dim(dim, x.dim());
  copy_into(raw_narrow(out, dim, shift, size - shift), raw_narrow(x, dim, 0, size - shift));
  if (shift) copy_into(raw_narrow(out, dim, 0, shift), raw_narrow(x, dim, size - shift, shift));
  return out;
}
Tensor roll_op(const Tensor& x, DimsRef shifts, DimsRef dims) {
  check(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    Tensor flat = raw_contiguous(x);
    flat = raw_view(flat, Dims{x.numel()}, Dims{1}, flat.offset());
    flat = roll_one(flat, shifts[0], 0);
    return raw_view(flat, x.sizes(), contiguous_strides(x.sizes()), 0);
  }
  check(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: ", shifts.size(),
        ", dims:", dims.size());
  Tensor out = x;
  for (size_t i = 0; i < shifts.size(); ++i) out = roll_one(out, shifts[i], dims[i]);
  return out;
}
void roll_backward(Backward& b) {
  Dims back = b.arg<Dims>(1), dims = b.arg<Dims>(2);
  const Dims& sizes = b.sizes(0);
  for (size_t i = 0; i < back.size(); ++i) {
    const int64_t n = dims.empty()
                          ? numel_of(sizes)
                          : at(sizes, wrap_dim(dims[i], static_cast<int64_t>(sizes.size())));
    back[i] = n ? -(back[i] % n) : 0;
  }
  b.set(0, op<"roll">(b.grad(), back, dims));
}

Tensor flip_op(const Tensor& x, DimsRef dims) {
  uint64_t mask = dim_mask(dims, x.dim());
  Tensor out = empty_like(x);
  if (x.is_meta() || x.numel() == 0) return out;
  Dims strides(x.strides());
  int64_t first = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    if (!(mask >> i & 1)) continue;
    first += (x.sizes()[i] - 1) * strides[i];
    strides[i] = -strides[i];
  }
  kernels<PointwiseKernels>(x.device()).copy(Plan(out, x, strides, first));
  return out;
}
void flip_backward(Backward& b) { b.set(0, op<"flip">(b.grad(), b.arg<Dims>(1))); }
Tensor fliplr_op(const Tensor& x) {
  check(x.dim() >= 2, "Input must be >= 2-d.");
  return op<"flip">(x, Dims{1});
}
Tensor flipud_op(const Tensor& x) {
  check(x.dim() >= 1, "Input must be >= 1-d.");
  return op<"flip">(x, Dims{0});
}
Tensor rot90_op(const Tensor& x, int64_t k, DimsRef dims) {
  check(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
  check(x.dim() >= 2, "expected total dims >= 2, but got total dims = ", x.dim());
  int64_t a = wrap_dim(dims[0], x.dim()), b = wrap_dim(dims[1], x.dim());
  check(a != b, "expected rotation dims to be different, but got dim0 = ", dims[0],
        " and dim1 = ", dims[1]);
  switch (((k % 4) + 4) % 4) {
    case 1: return transpose(op<"flip">(x, Dims{b}), a, b);
    case 2: return op<"flip">(x, Dims{a, b});
    case 3: return transpose(op<"flip">(x, Dims{a}), a, b);
    default: return clone(x);
  }
}

// ---- diag ----

Tensor diag_embed_op(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t a = wrap_dim(dim1, x.dim() + 1), b = wrap_dim(dim2, x.dim() + 1);
  check(a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  int64_t n = checked_add(x.size(-1), offset < 0 ? checked_mul(offset, -1) : offset);
  Dims sizes(x.sizes());
  sizes.pop_back();
  sizes.insert(static_cast<size_t>(std::min(a, b)), n);
  sizes.insert(static_cast<size_t>(std::max(a, b)), n);
  return op<"_diagonal_backward">(x, sizes, offset, a, b);
}
Tensor diag_op(const Tensor& x, int64_t diagonal) {
  check(x.dim() == 1 || x.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", x.dim(), "D");
  if (x.dim() == 1) return diag_embed_op(x, diagonal, 0, 1);
  return clone(op<"diagonal">(x, diagonal, 0, 1));
}
Tensor diagflat_op(const Tensor& x, int64_t offset) {
  return diag_op(reshape(x, Dims{-1}), offset);
}

// ---- grids ----

TensorList meshgrid_op(const TensorList& tensors, std::optional<std::string> indexing) {
  check(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  bool xy = indexing.value_or("ij") == "xy";
  check(xy || indexing.value_or("ij") == "ij",
        "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ",
        indexing.value_or(""));
  Dims sizes;
  for (const Tensor& t : tensors) {
    check(t.dim() <= 1,
          "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t.dim(), "D");
    check(t.dtype() == tensors[0].dtype(),
          "torch.meshgrid expects all tensors to have the same dtype");
    sizes.push_back(t.numel());
  }
  size_t n = tensors.size();
  bool swap = xy && n >= 2;
  if (swap) std::swap(sizes[0], sizes[1]);
  TensorList out;
  for (size_t i = 0; i < n; ++i) {
    size_t place = swap && i < 2 ? 1 - i : i;
    Dims shape(n, 1);
    shape[place] = tensors[i].numel();
    out.push_back(expand(op<"view">(reshape(tensors[i], Dims{-1}), shape), sizes));
  }
  return out;
}

// ---- elements between channels and space ----

void check_spatial(const char* what, const Tensor& x, int64_t factor) {
  check(x.dim() >= 3, what, " expects input to have at least 3 dimensions, but got input with ",
        x.dim(), " dimension(s)");
  check(factor > 0, what, " expects a positive factor, but got ", factor);
}

// Views x as (lead, *parts), permutes the parts, and returns (lead, *sizes).
Tensor shuffled(const Tensor& x, std::initializer_list<int64_t> parts,
                std::initializer_list<int64_t> order, std::initializer_list<int64_t> sizes) {
  const Dims lead(x.sizes().first(x.sizes().size() - 3));
  const auto n = static_cast<int64_t>(lead.size());
  Dims split(lead), moved, result(lead);
  for (int64_t d = 0; d < n; ++d) moved.push_back(d);
  for (int64_t s : parts) split.push_back(s);
  for (int64_t d : order) moved.push_back(n + d);
  for (int64_t s : sizes) result.push_back(s);
  const Tensor moved_parts = reshape(permute(reshape(x, split), moved), result);
  const MemoryFormat format = x.memory_format();
  const bool is_view = moved_parts.storage() == x.storage();
  return is_view || format != MemoryFormat::Contiguous ? op<"clone">(moved_parts, format)
                                                       : moved_parts;
}

Tensor pixel_shuffle(const Tensor& x, int64_t upscale_factor) {
  check_spatial("pixel_shuffle", x, upscale_factor);
  const int64_t r = upscale_factor, c = x.size(-3), h = x.size(-2), w = x.size(-1);
  check(r <= INT32_MAX && c % (r * r) == 0,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=",
        c, " is not divisible by the square of ", r);
  const int64_t fewer = c / (r * r);
  return shuffled(x, {fewer, r, r, h, w}, {0, 3, 1, 4, 2}, {fewer, h * r, w * r});
}

Tensor pixel_unshuffle(const Tensor& x, int64_t downscale_factor) {
  check_spatial("pixel_unshuffle", x, downscale_factor);
  const int64_t r = downscale_factor, c = x.size(-3), h = x.size(-2), w = x.size(-1);
  check(h % r == 0 && w % r == 0,
        "pixel_unshuffle expects height and width to be divisible by downscale_factor, but ", h,
        " x ", w, " is not divisible by ", r);
  return shuffled(x, {c, h / r, r, w / r, r}, {0, 2, 4, 1, 3}, {c * r * r, h / r, w / r});
}

const Define kShapeOps[] = {
    {"reshape(self: Tensor, shape: int[]) -> Tensor",
     "The same elements under another shape: a view where the strides allow it, else a copy. One "
     "entry may be -1.",
     kernel(reshape_op),
     {.composite = true}},
    {"_reshape_copy(self: Tensor, shape: int[]) -> Tensor",
     "A contiguous copy of shape `shape`.",
     kernel(reshape_copy),
     {.backward = reshape_backward}},
    {"reshape_as(self: Tensor, other: Tensor) -> Tensor",
     "`self.reshape(other.size())`.",
     kernel(reshape_as_op),
     {.forms = kMethod, .composite = true}},
    {"flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor",
     "Joins the dimensions from `start_dim` to `end_dim` into one. A zero-dim tensor becomes one "
     "of shape (1,).",
     kernel(flatten_op),
     {.composite = true}},
    {"ravel(self: Tensor) -> Tensor",
     "All elements in one dimension.",
     kernel(ravel_op),
     {.composite = true}},
    {"unflatten(self: Tensor, dim: int, sizes: int[]) -> Tensor",
     "A view in which dimension `dim` is cut into `sizes`; one entry may be -1.",
     kernel(unflatten_op),
     {.composite = true}},
    {"broadcast_to(self: Tensor, size: int[]) -> Tensor",
     "The same as `self.expand(size)`.",
     kernel(broadcast_to_op),
     {.composite = true}},
    {"broadcast_tensors(tensors: Tensor[]) -> Tensor[]",
     "Views of all tensors, expanded to their common shape.",
     kernel(broadcast_tensors_op),
     {.forms = kFunction, .composite = true}},
    {"atleast_1d(self: Tensor) -> Tensor",
     "`self`, as shape (1,) where it has no dimensions.",
     kernel(atleast_1d_op),
     {.forms = kFunction, .composite = true}},
    {"atleast_2d(self: Tensor) -> Tensor",
     "`self` with dimensions of size 1 put in front until it has two.",
     kernel(atleast_2d_op),
     {.forms = kFunction, .composite = true}},
    {"atleast_3d(self: Tensor) -> Tensor",
     "`self` with dimensions of size 1 added until it has three: (1, n, 1), (m, n, 1).",
     kernel(atleast_3d_op),
     {.forms = kFunction, .composite = true}},
    {"atleast_1d(tensors: Tensor[]) -> Tensor[]",
     "The same for each tensor.",
     kernel(each_of<"atleast_1d">),
     {.forms = kFunction, .composite = true}},
    {"atleast_2d(tensors: Tensor[]) -> Tensor[]",
     "The same for each tensor.",
     kernel(each_of<"atleast_2d">),
     {.forms = kFunction, .composite = true}},
    {"atleast_3d(tensors: Tensor[]) -> Tensor[]",
     "The same for each tensor.",
     kernel(each_of<"atleast_3d">),
     {.forms = kFunction, .composite = true}},
    {"roll(self: Tensor, shifts: int[1], dims: int[1] = []) -> Tensor",
     "Moves elements by `shifts` positions along `dims`; what leaves at the end returns at the "
     "start. "
     "Without `dims`, of the "
     "flattened tensor.",
     kernel(roll_op),
     {.backward = roll_backward, .format_of = 0b1}},
    {"flip(self: Tensor, dims: int[]) -> Tensor",
     "A copy with the order reversed along `dims`.",
     kernel(flip_op),
     {.backward = flip_backward, .vmap = vmap::along}},
    {"fliplr(self: Tensor) -> Tensor",
     "A copy with the columns (dimension 1) reversed.",
     kernel(fliplr_op),
     {.composite = true}},
    {"flipud(self: Tensor) -> Tensor",
     "A copy with the rows (dimension 0) reversed.",
     kernel(flipud_op),
     {.composite = true}},
    {"rot90(self: Tensor, k: int = 1, dims: int[] = [0, 1]) -> Tensor",
     "A copy rotated `k` times by 90 degrees in the plane of `dims`, from the first towards the "
     "second.",
     kernel(rot90_op),
     {.composite = true}},
    {"diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor",
     "Zeros with the last dimension of `self` on the diagonal of the new dimensions `dim1` and "
     "`dim2`.",
     kernel(diag_embed_op),
     {.composite = true}},
    {"diag(self: Tensor, diagonal: int = 0) -> Tensor",
     "Of a vector, the square matrix with it on a diagonal; of a matrix, a copy of that diagonal.",
     kernel(diag_op),
     {.forms = kPublic | kOut, .composite = true}},
    {"diagflat(self: Tensor, offset: int = 0) -> Tensor",
     "`diag` of the flattened tensor.",
     kernel(diagflat_op),
     {.composite = true}},
    {"meshgrid(tensors: Tensor[], *, indexing: str? = None) -> Tensor[]",
     "Of n vectors, n tensors of n dimensions that hold the coordinates of their grid. "
     "indexing='xy' exchanges the "
     "first two dimensions.",
     kernel(meshgrid_op),
     {.forms = kFunction, .composite = true}},
    {"pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor",
     "Moves channels into space: (*, C r^2, H, W) becomes (*, C, H r, W r) (Shi et al. 2016).",
     kernel(pixel_shuffle),
     {.forms = kFunction, .composite = true}},
    {"pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor",
     "Moves space into channels, which undoes `pixel_shuffle`: (*, C, H r, W r) becomes (*, C r^2, "
     "H, W).",
     kernel(pixel_unshuffle),
     {.forms = kFunction, .composite = true}},
};

}  // namespace
}  // namespace taeda
