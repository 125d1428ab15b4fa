// The views' copying forms: the same elements in memory of their own.
#include <algorithm>

#include "ops/core/shape_util.h"

namespace taeda {
namespace {

Tensor copied(const Tensor& view) { return op<"clone">(view, MemoryFormat::Contiguous); }
TensorList copied(TensorList views) {
  for (Tensor& v : views) v = copied(v);
  return views;
}

Tensor expand_copy(const Tensor& x, const Dims& size, bool implicit) {
  return copied(op<"expand">(x, size, implicit));
}
Tensor diagonal_copy(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return copied(op<"diagonal">(x, offset, dim1, dim2));
}
Tensor alias_copy(const Tensor& x) { return copied(x); }
Tensor as_strided_copy(const Tensor& x, const Dims& size, const Dims& stride,
                       std::optional<int64_t> offset) {
  return copied(op<"as_strided">(x, size, stride, offset));
}
Tensor narrow_copy(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  check(dim < std::max<int64_t>(x.dim(), 1), "narrow_copy(): Expected dim < ", x.dim(), ", got ",
        dim);
  return copied(narrow(x, dim, start, length));
}
Tensor view_copy(const Tensor& x, const Dims& size) { return copied(op<"view">(x, size)); }
Tensor view_dtype_copy(const Tensor& x, DType dtype) {
  static const Op& as_dtype = *overloads("view")[1];
  Value args[] = {x, dtype};
  return copied(std::get<Tensor>(call(as_dtype, args)));
}
Tensor permute_copy(const Tensor& x, const Dims& dims) { return copied(permute(x, dims)); }
TensorList split_copy(const Tensor& x, int64_t size, int64_t dim) {
  return copied(ops<"split">(x, size, dim));
}
TensorList split_with_sizes_copy(const Tensor& x, const Dims& sizes, int64_t dim) {
  return copied(ops<"split_with_sizes">(x, sizes, dim));
}
TensorList unbind_copy(const Tensor& x, int64_t dim) { return copied(ops<"unbind">(x, dim)); }
Tensor unfold_copy(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  return copied(op<"unfold">(x, dim, size, step));
}
Tensor squeeze_all_copy(const Tensor& x) { return copied(op<"squeeze">(x)); }
Tensor squeeze_copy(const Tensor& x, int64_t dim) { return copied(squeeze(x, dim)); }
Tensor squeeze_dims_copy(const Tensor& x, const Dims& dims) {
  Tensor out = x;
  Dims wrapped;
  for (int64_t d : dims) wrapped.push_back(wrap_dim(d, x.dim()));
  std::sort(wrapped.begin(), wrapped.end(), std::greater<>());
  for (int64_t d : wrapped) out = squeeze(out, d);
  return copied(out);
}
Tensor unsqueeze_copy(const Tensor& x, int64_t dim) { return copied(unsqueeze(x, dim)); }
Tensor transpose_copy(const Tensor& x, int64_t a, int64_t b) { return copied(transpose(x, a, b)); }
Tensor t_copy(const Tensor& x) { return copied(op<"t">(x)); }
Tensor slice_copy(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return copied(op<"slice">(x, dim, start, end, step));
}
Tensor select_copy(const Tensor& x, int64_t dim, int64_t index) {
  return copied(op<"select">(x, dim, index));
}
Tensor detach_copy(const Tensor& x) { return copied(op<"detach">(x)); }
Tensor view_as_real_copy(const Tensor& x) { return copied(op<"view_as_real">(x)); }
Tensor view_as_complex_copy(const Tensor& x) { return copied(op<"view_as_complex">(x)); }

TensorList unsafe_chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  return copied(ops<"chunk">(x, chunks, dim));
}
TensorList unsafe_split(const Tensor& x, int64_t size, int64_t dim) {
  return copied(ops<"split">(x, size, dim));
}

constexpr Traits kCopy{.forms = kFunction | kOut, .composite = true};
constexpr Traits kCopies{.forms = kFunction | kOut, .composite = true};
constexpr Traits kPieces{.forms = kPublic, .composite = true};

const Define kCopyOps[] = {
    {"expand_copy(self: Tensor, size: int[], *, implicit: bool = False) -> Tensor",
     "A copy of `expand`.", kernel(expand_copy), kCopy},
    {"diagonal_copy(self: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor",
     "A copy of `diagonal`.", kernel(diagonal_copy), kCopy},
    {"alias_copy(self: Tensor) -> Tensor", "A contiguous copy.", kernel(alias_copy), kCopy},
    {"as_strided_copy(self: Tensor, size: int[], stride: int[], storage_offset: int? = None) -> "
     "Tensor",
     "A copy of `as_strided`.", kernel(as_strided_copy), kCopy},
    {"narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor",
     "A copy of `narrow`.",
     kernel(narrow_copy),
     {.forms = kPublic | kOut, .composite = true}},
    {"view_copy(self: Tensor, size: int[]) -> Tensor", "A copy of `view`.", kernel(view_copy),
     kCopy},
    {"view_copy(self: Tensor, dtype: dtype) -> Tensor", "A copy of `view` as another dtype.",
     kernel(view_dtype_copy), kCopy},
    {"permute_copy(self: Tensor, dims: int[]) -> Tensor", "A copy of `permute`.",
     kernel(permute_copy), kCopy},
    {"split_copy(self: Tensor, split_size: int, dim: int = 0) -> Tensor[]", "Copies of `split`.",
     kernel(split_copy), kCopies},
    {"split_with_sizes_copy(self: Tensor, split_sizes: int[], dim: int = 0) -> Tensor[]",
     "Copies of `split_with_sizes`.", kernel(split_with_sizes_copy), kCopies},
    {"unbind_copy(self: Tensor, dim: int = 0) -> Tensor[]", "Copies of `unbind`.",
     kernel(unbind_copy), kCopies},
    {"unfold_copy(self: Tensor, dimension: int, size: int, step: int) -> Tensor",
     "A copy of `unfold`.", kernel(unfold_copy), kCopy},
    {"squeeze_copy(self: Tensor) -> Tensor", "A copy of `squeeze`.", kernel(squeeze_all_copy),
     kCopy},
    {"squeeze_copy(self: Tensor, dim: int) -> Tensor", "A copy of `squeeze`.", kernel(squeeze_copy),
     kCopy},
    {"squeeze_copy(self: Tensor, dim: int[]) -> Tensor", "A copy of `squeeze`.",
     kernel(squeeze_dims_copy), kCopy},
    {"unsqueeze_copy(self: Tensor, dim: int) -> Tensor", "A copy of `unsqueeze`.",
     kernel(unsqueeze_copy), kCopy},
    {"transpose_copy(self: Tensor, dim0: int, dim1: int) -> Tensor", "A copy of `transpose`.",
     kernel(transpose_copy), kCopy},
    {"t_copy(self: Tensor) -> Tensor", "A copy of `t`.", kernel(t_copy), kCopy},
    {"slice_copy(self: Tensor, dim: int = 0, start: int? = None, end: int? = None, step: int = 1) "
     "-> Tensor",
     "A copy of a slice along `dim`.", kernel(slice_copy), kCopy},
    {"select_copy(self: Tensor, dim: int, index: int) -> Tensor", "A copy of `select`.",
     kernel(select_copy), kCopy},
    {"detach_copy(self: Tensor) -> Tensor", "A copy without history.", kernel(detach_copy), kCopy},
    {"view_as_real_copy(self: Tensor) -> Tensor", "A copy of `view_as_real`.",
     kernel(view_as_real_copy), kCopy},
    {"view_as_complex_copy(self: Tensor) -> Tensor", "A copy of `view_as_complex`.",
     kernel(view_as_complex_copy), kCopy},
    {"unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> Tensor[]",
     "The pieces of `chunk`, each in memory of its own: they may be changed in place.",
     kernel(unsafe_chunk), kPieces},
    {"unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> Tensor[]",
     "The pieces of `split`, each in memory of its own: they may be changed in place.",
     kernel(unsafe_split), kPieces},
    {"unsafe_split_with_sizes(self: Tensor, split_sizes: int[], dim: int = 0) -> Tensor[]",
     "The pieces of `split_with_sizes`, each in memory of its own: they may be changed in place.",
     kernel(split_with_sizes_copy), kPieces},
};

}  // namespace
}  // namespace taeda
