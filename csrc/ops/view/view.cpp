// Views: ops whose result has the same memory with other sizes and strides.
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

Tensor see(const Tensor& x, const Dims& sizes, const Dims& strides) {
  return make_view(x, sizes, strides, x.offset());
}

// ---- view ----

Tensor view_op(const Tensor& x, DimsRef size) {
  Dims sizes = infer_size(size, x.numel());
  Dims strides;
  check(view_strides(x.sizes(), x.strides(), sizes, &strides), "view(): view size ",
        to_string(sizes), " is not compatible with input tensor's size ", to_string(x.sizes()),
        " and stride ", to_string(x.strides()),
        ": its elements do not lie in that order. Use .reshape(...) instead.");
  return see(x, sizes, strides);
}

// The last dimension and all other strides change with the element size.
Tensor view_dtype_op(const Tensor& x, DType dtype) {
  auto from = static_cast<int64_t>(itemsize(x.dtype())), to = static_cast<int64_t>(itemsize(dtype));
  Dims sizes(x.sizes()), strides(x.strides());
  int64_t offset = x.offset();
  if (from != to) {
    auto changes = str(" to view ", x.dtype(), " as ", dtype, " (different element sizes)");
    check(x.dim() > 0, "self.dim() cannot be 0", changes);
    check(strides.back() == 1, "self.stride(-1) must be 1", changes, ", but got ", strides.back());
    size_t last = sizes.size() - 1;
    if (from > to) {
      int64_t ratio = from / to;
      for (size_t i = 0; i < last; ++i) strides[i] *= ratio;
      sizes[last] *= ratio;
      offset *= ratio;
    } else {
      int64_t ratio = to / from;
      check(sizes[last] % ratio == 0, "self.size(-1) must be divisible by ", ratio, changes,
            ", but got ", sizes[last]);
      check(offset % ratio == 0, "self.storage_offset() must be divisible by ", ratio, changes,
            ", but got ", offset);
      for (size_t i = 0; i < last; ++i) {
        check(strides[i] % ratio == 0, "self.stride(", i, ") must be divisible by ", ratio, changes,
              ", but got ", strides[i]);
        strides[i] /= ratio;
      }
      sizes[last] /= ratio;
      offset /= ratio;
    }
  }
  Tensor as_x = make_view(x, x.sizes(), x.strides(), x.offset());
  Tensor result = from_storage(x.storage(), sizes, strides, offset, dtype);
  TensorImpl *r = result.impl(), *v = as_x.impl();
  r->flags |= v->flags & (kIsView | kInference);
  r->base = v->base;
  r->own_version = v->own_version;
  return result;
}

Tensor view_as_op(const Tensor& x, const Tensor& other) { return op<"view">(x, other.sizes()); }

Tensor alias_op(const Tensor& x) { return make_view(x, x.sizes(), x.strides(), x.offset()); }
void alias_backward(Backward& b) { b.set(0, b.grad()); }

// ---- order of dimensions ----

Tensor permute_op(const Tensor& x, DimsRef dims) {
  size_t n = x.sizes().size();
  check(dims.size() == n, "permute(): dims must name every dimension of input once: expected ", n,
        " of them for an input of shape ", to_string(x.sizes()), ", but got ", to_string(dims));
  Dims sizes(n), strides(n);
  uint64_t seen = 0;
  for (size_t i = 0; i < n; ++i) {
    int64_t d = wrap_dim(dims[i], x.dim());
    const uint64_t bit = dim_bit(d, x.dim());
    check(!(seen & bit), "permute(): duplicate dims are not allowed, got ", to_string(dims));
    seen |= bit;
    sizes[i] = x.sizes()[static_cast<size_t>(d)];
    strides[i] = x.strides()[static_cast<size_t>(d)];
  }
  return see(x, sizes, strides);
}

void permute_backward(Backward& b) {
  const auto& dims = b.arg<Dims>(1);
  Dims inverse(dims.size());
  auto n = static_cast<int64_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<size_t>(wrap_dim(dims[i], n))] = static_cast<int64_t>(i);
  b.set(0, permute(b.grad(), inverse));
}

struct Geometry {
  Dims sizes, strides;
};

Geometry transposed(const Tensor& x, int64_t a, int64_t b) {
  a = wrap_dim(a, x.dim());
  b = wrap_dim(b, x.dim());
  Geometry g{Dims(x.sizes()), Dims(x.strides())};
  if (a != b) {
    std::swap(g.sizes[static_cast<size_t>(a)], g.sizes[static_cast<size_t>(b)]);
    std::swap(g.strides[static_cast<size_t>(a)], g.strides[static_cast<size_t>(b)]);
  }
  return g;
}

Tensor transpose_op(const Tensor& x, int64_t a, int64_t b) {
  Geometry g = transposed(x, a, b);
  return see(x, g.sizes, g.strides);
}
Tensor transpose_in_place(const Tensor& x, int64_t a, int64_t b) {
  Geometry g = transposed(x, a, b);
  set_geometry(x, g.sizes, g.strides, x.offset());
  return x;
}
void transpose_backward(Backward& b) {
  b.set(0, transpose(b.grad(), b.arg<int64_t>(1), b.arg<int64_t>(2)));
}

int64_t matrix_dim(const Tensor& x) {
  check(x.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", x.dim(), "D");
  return x.dim() == 2 ? 1 : 0;
}
Tensor t_op(const Tensor& x) { return transpose_op(x, 0, matrix_dim(x)); }
Tensor t_in_place(const Tensor& x) { return transpose_in_place(x, 0, matrix_dim(x)); }
void t_backward(Backward& b) { b.set(0, op<"t">(b.grad())); }

Tensor swap_op(const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); }

Tensor movedim_ints(const Tensor& x, DimsRef source, DimsRef destination) {
  check(source.size() == destination.size(),
        "movedim: Invalid source or destination dims: source (", to_string(source),
        " dims) should contain the same number of dims as destination (", to_string(destination),
        " dims)");
  size_t n = x.sizes().size();
  auto wrap_all = [&](DimsRef dims, const char* which, uint64_t* seen) {
    Dims out;
    for (int64_t d : dims) {
      int64_t w = wrap_dim(d, x.dim());
      check(!(*seen >> w & 1), "movedim: repeated dim in `", which, "` (", to_string(dims), ")");
      *seen |= uint64_t(1) << w;
      out.push_back(w);
    }
    return out;
  };
  uint64_t from_seen = 0, to_seen = 0;
  Dims from = wrap_all(source, "source", &from_seen),
       to = wrap_all(destination, "destination", &to_seen);
  if (n == 0) return op<"alias">(x);
  Dims order(n, -1);
  for (size_t i = 0; i < from.size(); ++i) order[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;
  for (int64_t& o : order) {
    if (o >= 0) continue;
    while (from_seen >> next & 1) ++next;
    o = next++;
  }
  return permute(x, order);
}

// ---- expand, squeeze, unsqueeze ----

Tensor expand_op(const Tensor& x, DimsRef size, bool) {
  size_t n = x.sizes().size();
  check(size.size() >= n, "expand(torch.", x.dtype(), "Tensor{", to_string(x.sizes()),
        "}, size=", to_string(size), "): the number of sizes provided (", size.size(),
        ") must be greater or equal to the number of dimensions in the tensor (", n, ")");
  Dims sizes(size), strides(size.size());
  size_t lead = size.size() - n;
  for (size_t i = size.size(); i-- > 0;) {
    int64_t old = i < lead ? 1 : x.sizes()[i - lead];
    if (size[i] == -1) {
      check(i >= lead,
            "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing "
            "dimension ",
            i);
      sizes[i] = old;
    }
    if (i >= lead && old == sizes[i]) {
      strides[i] = x.strides()[i - lead];
      continue;
    }
    check(old == 1, "The expanded size of the tensor (", sizes[i],
          ") must match the existing size (", old, ") at non-singleton dimension ", i,
          ".  Target sizes: ", to_string(size), ".  Tensor sizes: ", to_string(x.sizes()));
    strides[i] = i < lead && sizes[i] == 1 ? contiguous_strides(sizes)[i] : 0;
  }
  return see(x, sizes, strides);
}
void expand_backward(Backward& b) { b.set(0, sum_to(b.grad(), b.sizes(0))); }
Tensor expand_as_op(const Tensor& x, const Tensor& other) { return expand(x, other.sizes()); }

// The geometry without those dimensions of size 1 that `chosen` selects.
template <class F> Geometry squeezed(const Tensor& x, F&& chosen) {
  Geometry g;
  for (size_t i = 0; i < x.sizes().size(); ++i) {
    if (x.sizes()[i] == 1 && chosen(i)) continue;
    g.sizes.push_back(x.sizes()[i]);
    g.strides.push_back(x.strides()[i]);
  }
  return g;
}
template <class F> Tensor squeeze_view(const Tensor& x, F&& chosen) {
  Geometry g = squeezed(x, chosen);
  return see(x, g.sizes, g.strides);
}
template <class F> Tensor squeeze_here(const Tensor& x, F&& chosen) {
  Geometry g = squeezed(x, chosen);
  set_geometry(x, g.sizes, g.strides, x.offset());
  return x;
}
auto every_dim() {
  return [](size_t) { return true; };
}
auto one_dim(const Tensor& x, int64_t dim) {
  return [d = static_cast<size_t>(wrap_dim(dim, x.dim()))](size_t i) { return i == d; };
}
auto these_dims(const Tensor& x, DimsRef dims) {
  return [mask = dim_mask(dims, x.dim())](size_t i) { return (mask >> i & 1) != 0; };
}
Tensor squeeze_all(const Tensor& x) { return squeeze_view(x, every_dim()); }
Tensor squeeze_dim(const Tensor& x, int64_t dim) { return squeeze_view(x, one_dim(x, dim)); }
Tensor squeeze_dims(const Tensor& x, DimsRef dims) { return squeeze_view(x, these_dims(x, dims)); }
Tensor squeeze_all_in_place(const Tensor& x) { return squeeze_here(x, every_dim()); }
Tensor squeeze_dim_in_place(const Tensor& x, int64_t dim) {
  return squeeze_here(x, one_dim(x, dim));
}
Tensor squeeze_dims_in_place(const Tensor& x, DimsRef dims) {
  return squeeze_here(x, these_dims(x, dims));
}

Geometry unsqueezed(const Tensor& x, int64_t dim) {
  auto d = static_cast<size_t>(wrap_dim(dim, x.dim() + 1));
  Geometry g{Dims(x.sizes()), Dims(x.strides())};
  int64_t stride = d < g.sizes.size() ? g.sizes[d] * g.strides[d] : 1;
  g.sizes.insert(d, 1);
  g.strides.insert(d, stride);
  return g;
}
Tensor unsqueeze_op(const Tensor& x, int64_t dim) {
  Geometry g = unsqueezed(x, dim);
  return see(x, g.sizes, g.strides);
}
Tensor unsqueeze_in_place(const Tensor& x, int64_t dim) {
  Geometry g = unsqueezed(x, dim);
  set_geometry(x, g.sizes, g.strides, x.offset());
  return x;
}

// ---- ops ----

const Define kViewOps[] = {
    {"view(self: Tensor, size: int[]) -> Tensor",
     "The same elements under another shape, without a copy. One entry of `size` may be -1 and is "
     "then worked out. "
     "RuntimeError where the strides of `self` do not allow it; `reshape` copies in that case.",
     kernel(view_op),
     {.backward = reshape_backward, .forms = kMethod, .view = true}},
    {"view(self: Tensor, dtype: dtype) -> Tensor",
     "The same bytes read as `dtype`. Where the element sizes differ, the last dimension grows or "
     "shrinks accordingly.",
     kernel(view_dtype_op),
     {.forms = kMethod, .view = true, .non_differentiable = 1}},
    {"view_as(self: Tensor, other: Tensor) -> Tensor",
     "`self.view(other.size())`.",
     kernel(view_as_op),
     {.forms = kMethod, .composite = true}},
    {"alias(self: Tensor) -> Tensor",
     "A view of all of `self`.",
     kernel(alias_op),
     {.backward = alias_backward, .forms = 0, .view = true, .vmap = vmap::direct}},
    {"permute(self: Tensor, dims: int[]) -> Tensor",
     "A view with the dimensions in the order `dims`: dimension i of the result is dimension "
     "dims[i] of `self`.",
     kernel(permute_op),
     {.backward = permute_backward, .view = true}},
    {"transpose(self: Tensor, dim0: int, dim1: int) -> Tensor",
     "A view with dimensions `dim0` and `dim1` exchanged.",
     kernel(transpose_op),
     {.backward = transpose_backward, .view = true}},
    {"transpose_(self!: Tensor, dim0: int, dim1: int) -> Tensor",
     "`transpose` applied to `self` itself.",
     kernel(transpose_in_place),
     {.backward = transpose_backward, .forms = kMethod}},
    {"t(self: Tensor) -> Tensor",
     "The transpose of a matrix, as a view; tensors of 0 or 1 dimensions stay as they are.",
     kernel(t_op),
     {.backward = t_backward, .view = true}},
    {"t_(self!: Tensor) -> Tensor",
     "`t` applied to `self` itself.",
     kernel(t_in_place),
     {.backward = t_backward, .forms = kMethod}},
    {"swapaxes(self: Tensor, axis0: int, axis1: int) -> Tensor",
     "The same as `transpose`.",
     kernel(swap_op),
     {.composite = true}},
    {"swapdims(self: Tensor, dim0: int, dim1: int) -> Tensor",
     "The same as `transpose`.",
     kernel(swap_op),
     {.composite = true}},
    {"movedim(self: Tensor, source: int[1], destination: int[1]) -> Tensor",
     "A view in which each dimension of `source` is at the position given by `destination`; the "
     "others keep their "
     "order.",
     kernel(movedim_ints),
     {.composite = true}},
    {"moveaxis(self: Tensor, source: int[1], destination: int[1]) -> Tensor",
     "The same as `movedim`.",
     kernel(movedim_ints),
     {.composite = true}},
    {"expand(self: Tensor, size: int[], *, implicit: bool = False) -> Tensor",
     "A view in which dimensions of size 1 are repeated to `size` without a copy. -1 keeps a size; "
     "new dimensions may be "
     "added in front.",
     kernel(expand_op),
     {.backward = expand_backward, .forms = kMethod, .view = true}},
    {"expand_as(self: Tensor, other: Tensor) -> Tensor",
     "`self.expand(other.size())`.",
     kernel(expand_as_op),
     {.forms = kMethod, .composite = true}},
    {"squeeze(self: Tensor) -> Tensor",
     "A view without the dimensions of size 1.",
     kernel(squeeze_all),
     {.backward = reshape_backward, .view = true}},
    {"squeeze(self: Tensor, dim: int) -> Tensor",
     "A view without dimension `dim` where its size is 1.",
     kernel(squeeze_dim),
     {.backward = reshape_backward, .view = true}},
    {"squeeze(self: Tensor, dim: int[]) -> Tensor",
     "A view without those dimensions of `dim` whose size is 1.",
     kernel(squeeze_dims),
     {.backward = reshape_backward, .view = true}},
    {"squeeze_(self!: Tensor) -> Tensor",
     "`squeeze` applied to `self` itself.",
     kernel(squeeze_all_in_place),
     {.backward = reshape_backward, .forms = kMethod}},
    {"squeeze_(self!: Tensor, dim: int) -> Tensor",
     "`squeeze` applied to `self` itself.",
     kernel(squeeze_dim_in_place),
     {.backward = reshape_backward, .forms = kMethod}},
    {"squeeze_(self!: Tensor, dim: int[]) -> Tensor",
     "`squeeze` applied to `self` itself.",
     kernel(squeeze_dims_in_place),
     {.backward = reshape_backward, .forms = kMethod}},
    {"unsqueeze(self: Tensor, dim: int) -> Tensor",
     "A view with a new dimension of size 1 at position `dim`.",
     kernel(unsqueeze_op),
     {.backward = reshape_backward, .view = true}},
    {"unsqueeze_(self!: Tensor, dim: int) -> Tensor",
     "`unsqueeze` applied to `self` itself.",
     kernel(unsqueeze_in_place),
     {.backward = reshape_backward, .forms = kMethod}},
};

}  // namespace
}  // namespace taeda
