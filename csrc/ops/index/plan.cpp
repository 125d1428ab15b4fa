#include "ops/index/plan.h"

namespace taeda {
namespace {

// Whether the `count` dimensions of x from `first` on can be traversed with one stride.
bool is_one_run(const Tensor& x, size_t first, size_t count) {
  for (size_t d = first + 1; d < first + count; ++d) {
    if (x.strides()[d - 1] != x.strides()[d] * x.sizes()[d]) return false;
  }
  return true;
}

}  // namespace

Indexed resolve(const Tensor& x, const TensorList& indices) {
  Indexed r;
  r.device = x.device();
  const bool alone =
      std::count_if(indices.begin(), indices.end(), [](auto& i) { return i.defined(); }) == 1;
  size_t d = 0, n = x.sizes().size();
  auto take = [&](const Tensor& index) {
    check<IndexError>(d < n, "too many indices for tensor of dimension ", n);
    r.sizes.push_back(x.sizes()[d]);
    r.strides.push_back(x.strides()[d]);
    r.index.push_back(index);
    ++d;
  };
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      take(index);
      continue;
    }
    DType t = index.dtype();
    check<IndexError>(is_index_dtype(t) || t == DType::Bool || t == DType::UInt8,
                      "tensors used as indices must be long, int, byte or bool tensors");
    if (is_index_dtype(t)) {
      take(raw_cast(index, DType::Int64));
      continue;
    }
    check<NotImplemented>(
        !index.is_meta(),
        "index: how many elements a mask selects cannot be known on the meta device");
    if (index.dim() == 0) {  // a new dimension, kept or dropped
      bool on = index.item().to<bool>();
      Tensor zero = raw_zeros(Dims{on ? 1 : 0}, {DType::Int64, index.device()});
      r.sizes.push_back(1);
      r.strides.push_back(0);
      r.index.push_back(zero);
      continue;
    }
    for (int64_t k = 0; k < index.dim(); ++k) {
      size_t at_dim = d + static_cast<size_t>(k);
      check<IndexError>(at_dim < n, "too many indices for tensor of dimension ", n);
      check<IndexError>(x.sizes()[at_dim] == at(index.sizes(), k), "The shape of the mask ",
                        to_string(index.sizes()), " at index ", k,
                        " does not match the shape of the indexed tensor ", to_string(x.sizes()),
                        " at index ", at_dim);
    }
    const auto k = static_cast<size_t>(index.dim());
    if (alone && is_one_run(x, d, k)) {
      r.sizes.push_back(index.numel());
      r.strides.push_back(x.strides()[d + k - 1]);
      r.index.push_back(mask_flat_indices(index));
      d += k;
      continue;
    }
    for (const Tensor& p : mask_indices(index)) take(p);
  }
  while (d < n) take(Tensor());
  return r;
}

IndexPlan plan_of(const Indexed& r, bool compute) {
  IndexPlan p;
  size_t n = r.sizes.size(), first = n, last = 0, used = 0;
  Dims shape;
  std::string shapes;
  for (size_t d = 0; d < n; ++d) {
    if (!r.index[d].defined()) continue;
    first = std::min(first, d);
    last = d;
    ++used;
    shapes += (used > 1 ? ", " : "") + to_string(r.index[d].sizes());
  }
  for (size_t d = 0; d < n; ++d) {
    if (!r.index[d].defined()) continue;
    try {
      shape = broadcast_sizes(shape, r.index[d].sizes());
    } catch (const Error&) {
      fail<IndexError>(
          "shape mismatch: indexing tensors could not be broadcast together with shapes ", shapes);
    }
  }
  bool adjacent = used == 0 || last - first + 1 == used;
  Dims before, after;  // dimensions that stay
  for (size_t d = 0; d < n; ++d) {
    if (r.index[d].defined()) continue;
    (adjacent && d < first ? before : after).push_back(static_cast<int64_t>(d));
  }
  for (int64_t d : before) p.result.push_back(at(r.sizes, d));
  for (int64_t s : shape) p.result.push_back(s);
  for (int64_t d : after) p.result.push_back(at(r.sizes, d));
  if (!compute) return p;

  IndexLayout& l = p.layout;
  l.count = numel_of(shape);
  Dims flat = contiguous_strides(p.result);
  // Coalesced with the previous dimension if both sides allow it.
  auto add_outer = [&](int64_t size, int64_t stride, int64_t flat_stride) {
    if (size == 1) return;
    if (!l.outer.empty() && l.outer_strides.back() == stride * size &&
        l.outer_flat.back() == flat_stride * size) {
      l.outer.back() *= size;
      l.outer_strides.back() = stride;
      l.outer_flat.back() = flat_stride;
      return;
    }
    l.outer.push_back(size);
    l.outer_strides.push_back(stride);
    l.outer_flat.push_back(flat_stride);
  };
  size_t f = 0;
  for (int64_t d : before) add_outer(at(r.sizes, d), at(r.strides, d), flat[f++]);
  f += shape.size();
  IndexLayout behind;
  std::swap(l.outer, behind.outer);
  std::swap(l.outer_strides, behind.outer_strides);
  std::swap(l.outer_flat, behind.outer_flat);
  int64_t after_count = 1;
  for (int64_t d : after) {
    after_count *= at(r.sizes, d);
    add_outer(at(r.sizes, d), at(r.strides, d), flat[f++]);
  }
  if (!l.outer.empty()) {
    l.run = l.outer.back();
    l.run_stride = l.outer_strides.back();
    l.run_flat = l.outer_flat.back();
    l.outer.pop_back();
    l.outer_strides.pop_back();
    l.outer_flat.pop_back();
  }
  for (size_t i = 0; i < behind.outer.size(); ++i) {
    l.outer.insert(i, behind.outer[i]);
    l.outer_strides.insert(i, behind.outer_strides[i]);
    l.outer_flat.insert(i, behind.outer_flat[i]);
  }
  l.count_flat = after_count;
  if (numel_of(p.result) == 0 && l.count == 0) return p;

  // One index of elements, none of them from the end: they are the offsets.
  if (const Tensor& only = used == 1 ? r.index[first] : Tensor();
      only.defined() && r.strides[first] == 1 && only.is_contiguous() && l.count > 0 &&
      !tells_later(r.device) && !find_outside(only, 0, r.sizes[first])) {
    p.offsets = only;
    l.offsets = only.data_as<int64_t>();
    return p;
  }
  const Options options{DType::Int64, r.device};
  p.offsets = used == 0 ? raw_zeros(Dims{l.count}, options) : empty(Dims{l.count}, options);
  l.offsets = p.offsets.data_as<int64_t>();
  for (size_t d = 0; d < n; ++d) {
    if (!r.index[d].defined()) continue;
    int64_t size = r.sizes[d], stride = r.strides[d];
    Tensor index = r.index[d];
    if (!same(index.sizes(), shape)) {
      index = raw_view(index, shape, broadcast_strides(index, shape), index.offset());
    }
    check<IndexError>(size > 0 || l.count == 0, "index is out of bounds for dimension ", d,
                      " with size 0");
    index = inside(raw_contiguous(index), -size, size, [&](int64_t bad) {
      fail<IndexError>("index ", bad, " is out of bounds for dimension ", d, " with size ", size);
    });
    kernels<IndexKernels>(r.device).add_offsets(index.data_as<int64_t>(), l.count, size, stride,
                                                d == first, p.offsets.data_as<int64_t>());
  }
  return p;
}

}  // namespace taeda
