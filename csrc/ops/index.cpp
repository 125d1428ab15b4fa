// Reading and writing with tensors as indices: index, index_put, index_select, index_add,
// index_copy, index_fill, take.
#include "ops/copy.h"
#include "ops/index_util.h"

namespace taeda {
namespace {

// ---- the geometry of x[i, :, j] ----

// Indices ready for a kernel: for each dimension of (sizes, strides) an int64 tensor or nothing.
struct Indexed {
  Dims sizes, strides;
  TensorList index;
};

// Whether the `count` dimensions of x from `first` on can be walked with one stride.
bool is_one_run(const Tensor& x, size_t first, size_t count) {
  for (size_t d = first + 1; d < first + count; ++d) {
    if (x.strides()[d - 1] != x.strides()[d] * x.sizes()[d]) return false;
  }
  return true;
}

Indexed resolve(const Tensor& x, const TensorList& indices) {
  Indexed r;
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
    check(index.device() == x.device() || !index.is_meta(),
          "indices should be either on cpu or on the same device as the indexed tensor (",
          x.device(), "), but got one on ", index.device());
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
      r.index.push_back(mask_flat_places(index));
      d += k;
      continue;
    }
    for (const Tensor& p : mask_places(index)) take(p);
  }
  while (d < n) take(Tensor());
  return r;
}

struct Plan {
  cpu::IndexLayout layout;
  Tensor places;  // owns the layout's offsets
  Dims result;    // shape of the flat side
};

// `compute` is false for meta tensors: then only the shape is worked out.
Plan plan_of(const Indexed& r, bool compute) {
  Plan p;
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

  cpu::IndexLayout& l = p.layout;
  l.count = numel_of(shape);
  Dims flat = contiguous_strides(p.result);
  // Joined with the dimension before where both sides allow it.
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
  cpu::IndexLayout behind;
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

  p.places = empty(Dims{l.count}, {DType::Int64, {}});
  auto* offsets = p.places.data_as<int64_t>();
  if (used == 0) offsets[0] = 0;
  for (size_t d = 0; d < n; ++d) {
    if (!r.index[d].defined()) continue;
    int64_t size = r.sizes[d], stride = r.strides[d];
    Tensor index = r.index[d];
    if (!same(index.sizes(), shape)) {
      index = raw_view(index, shape, broadcast_strides(index, shape), index.offset());
    }
    index = raw_contiguous(index);
    check<IndexError>(size > 0 || l.count == 0, "index is out of bounds for dimension ", d,
                      " with size 0");
    if (auto bad = find_outside(index, -size, size)) {
      fail<IndexError>("index ", *bad, " is out of bounds for dimension ", d, " with size ", size);
    }
    cpu::add_offsets(index.data_as<int64_t>(), l.count, size, stride, d == first, offsets);
  }
  l.places = offsets;
  return p;
}

// ---- index ----

// Elements of a dense vector, each place read once. Nothing where that is not what is asked for,
// or where an index is wrong, of which the long way tells.
Tensor elements_of(const Tensor& x, const TensorList& indices) {
  if (x.dim() != 1 || x.strides()[0] != 1 || x.is_meta() || indices.size() != 1) return {};
  const Tensor& index = indices[0];
  if (!index.defined() || index.dtype() != DType::Int64 || index.is_meta() || !x.numel() ||
      !index.is_contiguous())
    return {};
  Tensor out = empty(index.sizes(), x.options());
  const bool good = cpu::take_elements(out.data(), x.data(), index.data_as<int64_t>(),
                                       index.numel(), x.numel(), x.dtype());
  return good ? out : Tensor();
}

// The bytes of one mask over all of a contiguous x, if that is all that is asked for.
Tensor whole_mask(const Tensor& x, const TensorList& indices) {
  if (indices.size() != 1 || !x.is_contiguous() || x.is_meta() || x.dim() == 0) return {};
  const Tensor& mask = indices[0];
  if (!mask.defined() || mask.dtype() != DType::Bool || mask.is_meta() ||
      !same(mask.sizes(), x.sizes()))
    return {};
  return raw_contiguous(mask);
}

Tensor index_op(const Tensor& x, const TensorList& indices) {
  if (Tensor out = elements_of(x, indices); out.defined()) return out;
  if (const Tensor mask = whole_mask(x, indices); mask.defined()) {
    const auto* bytes = mask.data_as<uint8_t>();
    const int64_t total = cpu::count_true(bytes, mask.numel());
    Tensor out = empty(Dims{total}, x.options());
    cpu::take_true(x.data(), bytes, mask.numel(), out.data(), total, x.dtype());
    return out;
  }
  Plan p = plan_of(resolve(x, indices), !x.is_meta());
  Tensor out = empty(p.result, x.options());
  if (!x.is_meta() && out.numel() > 0) cpu::index_read(out.data(), x.data(), p.layout, x.dtype());
  return out;
}
void index_backward(Backward& b) {
  b.set(0, op<"_index_backward">(b.grad(), b.arg<TensorList>(1), b.sizes(0)));
}

Tensor index_backward_op(const Tensor& g, const TensorList& indices, DimsRef sizes) {
  Tensor out = raw_zeros(sizes, g.options());
  if (g.is_meta() || g.numel() == 0) return out;
  if (const Tensor mask = whole_mask(out, indices);
      mask.defined() && g.dim() == 1 &&
      g.numel() == cpu::count_true(mask.data_as<uint8_t>(), mask.numel())) {
    cpu::put_true(out.data(), mask.data_as<uint8_t>(), mask.numel(), raw_contiguous(g).data(),
                  g.numel(), g.dtype());
    return out;
  }
  Plan p = plan_of(resolve(out, indices), true);
  check(same(g.sizes(), p.result), "index_backward(): grad of shape ", to_string(g.sizes()),
        " does not fit an indexing result of shape ", to_string(p.result));
  Tensor flat = raw_contiguous(g);
  cpu::index_accumulate(out.data(), flat.data(), p.layout, g.dtype());
  return out;
}
void index_backward_backward(Backward& b) { b.set(0, op<"index">(b.grad(), b.arg<TensorList>(1))); }

// ---- index_put ----

Value index_put_op(Call& c) {
  const auto& self = Unpack<Tensor>::get(c.args[0]);
  const auto& indices = std::get<TensorList>(c.args[1]);
  Tensor values = Unpack<Tensor>::get(c.args[2]);
  bool accumulate = std::get<bool>(c.args[3]);
  check(values.device() == self.device() || (values.dim() == 0 && !values.is_meta()),
        "index_put_(): Expected values to be on the same device as self (", self.device(),
        "), but got ", values.device());
  check(values.dtype() == self.dtype() || values.is_wrapped_number(),
        "Index put requires the source and destination dtypes match, got ", self.dtype(),
        " for the destination and ", values.dtype(), " for the source.");
  Tensor out = target_of(c, self);
  Plan p = plan_of(resolve(out, indices), !self.is_meta());
  bool fits = true;
  try {
    fits = same(broadcast_sizes(values.sizes(), p.result), p.result);
  } catch (const Error&) {
    fits = false;
  }
  check(fits, "shape mismatch: value tensor of shape ", to_string(values.sizes()),
        " cannot be broadcast to indexing result of shape ", to_string(p.result));
  if (self.is_meta() || numel_of(p.result) == 0) return out;
  values = raw_cast(apart_from(values, out), self.dtype());
  if (values.numel() == 1) {
    p.layout.run_flat = p.layout.count_flat = 0;
    for (int64_t& s : p.layout.outer_flat) s = 0;
  } else {
    values = raw_contiguous(
        raw_view(values, p.result, broadcast_strides(values, p.result), values.offset()));
  }
  if (accumulate) cpu::index_accumulate(out.data(), values.data(), p.layout, out.dtype());
  else cpu::index_write(out.data(), values.data(), p.layout, out.dtype());
  return out;
}
void index_put_backward(Backward& b) {
  const Tensor& g = b.grad();
  auto indices = b.arg<TensorList>(1);
  if (b.needs(0)) {
    b.set(0, b.arg<bool>(3) ? g : op<"index_put">(g, indices, zeros(Dims{}, g.options()), false));
  }
  if (b.needs(2)) b.set(2, sum_to(op<"index">(g, indices), b.sizes(2)));
}

// ---- along one dimension ----

// A zero-dim tensor counts as one of shape (1,).
Tensor at_least_vector(const Tensor& x) {
  return x.dim() > 0 ? x : raw_view(x, Dims{1}, Dims{1}, x.offset());
}

TensorList only_dim(const Tensor& index, int64_t dim) {
  TensorList list(static_cast<size_t>(dim));
  list.push_back(index);
  return list;
}

// The layout for `index`, which must lie within the dimension; negative indices do not count from
// the end here.
Plan line_plan(const Tensor& x, int64_t dim, const Tensor& index) {
  return plan_of({Dims(x.sizes()), Dims(x.strides()),
                  [&] {
                    TensorList list = only_dim(index, dim);
                    list.resize(x.sizes().size());
                    return list;
                  }()},
                 true);
}

Tensor index_select_op(const Tensor& x, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim(dim, x.dim());
  check<IndexError>(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  check(is_index_dtype(index.dtype()), "index_select(): Expected dtype int32 or int64 for index");
  check(x.dim() > 0 || index.numel() == 1,
        "index_select(): Index to scalar can have only 1 value, got ", index.numel(), " value(s)");
  Dims sizes(x.sizes());
  if (x.dim() > 0) sizes[static_cast<size_t>(d)] = index.numel();
  Tensor out = empty(sizes, x.options());
  if (x.is_meta()) return out;
  Tensor source = at_least_vector(x), places = index_values(at_least_vector(index));
  if (auto bad = find_outside(places, 0, at(source.sizes(), d))) {
    fail<IndexError>("index_select(): index out of range in self: ", *bad,
                     " is out of bounds for dimension ", d, " with size ", at(source.sizes(), d));
  }
  if (out.numel() == 0) return out;
  Plan p = line_plan(source, d, places);
  cpu::index_read(out.data(), source.data(), p.layout, x.dtype());
  return out;
}
void index_select_backward(Backward& b) {
  const Tensor& g = b.grad();
  b.set(0, op<"index_add">(zeros(b.sizes(0), g.options()), b.arg<int64_t>(1), b.arg<Tensor>(2), g,
                           Scalar(1)));
}

Value index_add_op(Call& c) {
  const auto& self = Unpack<Tensor>::get(c.args[0]);
  int64_t dim = wrap_dim(std::get<int64_t>(c.args[1]), self.dim());
  const auto &index = Unpack<Tensor>::get(c.args[2]), &source = Unpack<Tensor>::get(c.args[3]);
  Scalar alpha = std::get<Scalar>(c.args[4]);
  check(index.dim() <= 1,
        "index_add_(): Index is supposed to be a vector, but got dim: ", index.dim());
  check(is_index_dtype(index.dtype()),
        "index_add_(): Expected dtype int32/int64 for index but got: ", index.dtype());
  check(self.dtype() == source.dtype(), "index_add_(): self (", self.dtype(), ") and source (",
        source.dtype(), ") must have the same scalar type");
  int64_t along = source.dim() == 0 ? 1 : source.size(std::min(dim, source.dim() - 1));
  check(index.numel() == along, "index_add_(): Number of indices (", index.numel(),
        ") should be equal to source.size(dim): (", along, "), for dim: ", dim);
  bool fits = self.dim() == source.dim() || (self.dim() <= 1 && source.dim() <= 1);
  for (int64_t d = 0; fits && d < self.dim() && d < source.dim(); ++d) {
    fits = d == dim || at(self.sizes(), d) == at(source.sizes(), d);
  }
  check(fits,
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
        "self.shape = ",
        to_string(self.sizes()), " source.shape = ", to_string(source.sizes()));
  Tensor out = target_of(c, self);
  if (self.is_meta()) return out;
  Tensor target = at_least_vector(out), places = index_values(at_least_vector(index));
  int64_t size = at(target.sizes(), dim);
  if (auto bad = find_outside(places, 0, size)) {
    fail("index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
  }
  if (source.numel() == 0) return out;
  Plan p = line_plan(target, dim, places);
  Tensor flat = raw_contiguous(apart_from(source, out));
  if (!alpha.equals(1)) {
    GradMode off(false);
    flat = op<"mul">(flat, raw_cast(Tensor(alpha), flat.dtype()));
  }
  cpu::index_accumulate(target.data(), flat.data(), p.layout, out.dtype());
  return out;
}
void index_add_backward(Backward& b) {
  const Tensor& g = b.grad();
  b.set(0, g);
  if (!b.needs(3)) return;
  Tensor s = op<"index_select">(g, b.arg<int64_t>(1), b.arg<Tensor>(2));
  Scalar alpha = b.arg<Scalar>(4);
  if (!alpha.equals(1)) s = op<"mul">(s, Tensor(alpha));
  b.set(3, reshape(s, b.sizes(3)));
}

Value index_copy_op(Call& c) {
  const auto& self = Unpack<Tensor>::get(c.args[0]);
  int64_t dim = wrap_dim(std::get<int64_t>(c.args[1]), self.dim());
  const auto &index = Unpack<Tensor>::get(c.args[2]), &source = Unpack<Tensor>::get(c.args[3]);
  check<IndexError>(index.dim() <= 1, "index_copy_(): Index should have dimension 1 or 0 (got ",
                    index.dim(), ")");
  check(index.dtype() == DType::Int64, "index_copy_(): Expected a long tensor for index, but got ",
        index.dtype());
  check(self.dtype() == source.dtype(),
        "index_copy_(): self and source expected to have the same dtype, but got (self) ",
        self.dtype(), " and (source) ", source.dtype());
  check<IndexError>(self.dim() == source.dim() || self.dim() == 0 || source.dim() == 0,
                    "index_copy_(): When source and destination are not scalars, their "
                    "dimensionality must match. Source "
                    "dimensionality (",
                    source.dim(), "), destination dimensionality (", self.dim(), ")");
  int64_t along = source.dim() == 0 ? 1 : source.size(dim);
  check<IndexError>(index.numel() == along, "index_copy_(): Number of indices (", index.numel(),
                    ") should be equal to source.size(dim) (", along, ")");
  bool fits = true;
  for (int64_t d = 0; d < self.dim() && d < source.dim(); ++d) {
    fits = fits && (d == dim || at(self.sizes(), d) == at(source.sizes(), d));
  }
  check(fits,
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
        "shape: ",
        to_string(self.sizes()), " at dimension ", dim,
        " and source slice shape: ", to_string(source.sizes()), " at dimension ", dim, ".");
  Tensor out = target_of(c, self);
  if (self.is_meta()) return out;
  Tensor target = at_least_vector(out), places = index_values(at_least_vector(index));
  int64_t size = at(target.sizes(), dim);
  if (auto bad = find_outside(places, 0, size)) {
    fail<IndexError>("index_copy_(): index ", *bad, " is out of bounds for dimension ", dim,
                     " with size ", size);
  }
  if (source.numel() == 0) return out;
  Plan p = line_plan(target, dim, places);
  Tensor flat = raw_contiguous(apart_from(source, out));
  cpu::index_write(target.data(), flat.data(), p.layout, out.dtype());
  return out;
}
void index_copy_backward(Backward& b) {
  const Tensor& g = b.grad();
  int64_t dim = b.arg<int64_t>(1);
  Tensor index = b.arg<Tensor>(2);
  if (b.needs(0)) b.set(0, op<"index_fill">(g, dim, index, Scalar(0)));
  if (b.needs(3)) b.set(3, reshape(op<"index_select">(g, dim, index), b.sizes(3)));
}

Value fill_lines(Call& c, const Tensor& value) {
  const auto& self = Unpack<Tensor>::get(c.args[0]);
  int64_t dim = wrap_dim(std::get<int64_t>(c.args[1]), self.dim());
  const auto& index = Unpack<Tensor>::get(c.args[2]);
  check<IndexError>(index.dtype() == DType::Int64,
                    "index_fill_(): Expected dtype int64 for index.");
  check(index.dim() <= 1, "Index has to be a vector/scalar");
  check(value.dim() == 0,
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(),
        " dimension(s).");
  check(is_complex(self.dtype()) || !is_complex(value.dtype()),
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  Tensor out = target_of(c, self);
  if (self.is_meta() || self.numel() == 0) return out;
  Tensor target = at_least_vector(out), places = index_values(at_least_vector(index));
  int64_t size = at(target.sizes(), dim);
  if (auto bad = find_outside(places, -size, size)) {
    fail<IndexError>("index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
  }
  Plan p = line_plan(target, dim, places);
  p.layout.run_flat = p.layout.count_flat = 0;
  for (int64_t& s : p.layout.outer_flat) s = 0;
  Tensor v = raw_cast(apart_from(value, out), out.dtype());
  cpu::index_write(target.data(), v.data(), p.layout, out.dtype());
  return out;
}
Value index_fill_scalar(Call& c) {
  const Scalar value = std::get<Scalar>(c.args[3]);
  const DType dtype = Unpack<Tensor>::get(c.args[0]).dtype();
  if (!value.is_complex() || is_complex(dtype)) check_fits(value, dtype);
  return fill_lines(c, Tensor(value));
}
Value index_fill_tensor(Call& c) { return fill_lines(c, Unpack<Tensor>::get(c.args[3])); }
void index_fill_backward(Backward& b) {
  if (b.needs(0))
    b.set(0, op<"index_fill">(b.grad(), b.arg<int64_t>(1), b.arg<Tensor>(2), Scalar(0)));
}
void index_fill_tensor_backward(Backward& b) {
  index_fill_backward(b);
  if (!b.needs(3)) return;
  const Tensor& g = b.grad();  // a place that is named twice counts once
  Tensor filled = op<"index_fill">(zeros(b.sizes(0), g.options()), b.arg<int64_t>(1),
                                   b.arg<Tensor>(2), Scalar(1));
  b.set(3, op<"sum">(g * filled));
}

// ---- the flattened tensor ----

void check_take_from(const char* what, const Tensor& x, const Tensor& index) {
  check(index.dtype() == DType::Int64, what, "(): Expected a long tensor for index, but got ",
        index.dtype());
  check<IndexError>(x.numel() > 0 || index.numel() == 0, what,
                    "(): tried to take from an empty tensor");
}
void check_taken(const Tensor& x, const Tensor& index) {
  if (x.is_meta() || index.is_meta()) return;
  if (auto bad = find_outside(index_values(index), -x.numel(), x.numel())) {
    fail<IndexError>("out of range: tried to access index ", *bad, " on a tensor of ", x.numel(),
                     " elements.");
  }
}
Tensor take_op(const Tensor& x, const Tensor& index) {
  check_take_from("take", x, index);
  try {
    return op<"index">(reshape(x, Dims{-1}), TensorList{index});
  } catch (const IndexError&) {  // which would speak of dimension 0
    check_taken(x, index);
    throw;
  }
}
Value put_op(Call& c) {
  const auto& self = Unpack<Tensor>::get(c.args[0]);
  const auto &index = Unpack<Tensor>::get(c.args[1]), &source = Unpack<Tensor>::get(c.args[2]);
  check_take_from("put_", self, index);
  check_taken(self, index);
  check(self.dtype() == source.dtype(),
        "put_(): self and source expected to have the same dtype, but got self.dtype = ",
        self.dtype(), " and source.dtype = ", source.dtype());
  check<IndexError>(index.numel() == source.numel(),
                    "put_(): Expected source and index to have the same number of elements, but "
                    "got source.numel() = ",
                    source.numel(), ", index.numel() = ", index.numel());
  Tensor out = target_of(c, self);
  if (self.is_meta() || index.numel() == 0) return out;
  Tensor flat = raw_contiguous(out), places = index_values(index),
         values = raw_contiguous(apart_from(source, out));
  Tensor line = raw_view(flat, Dims{flat.numel()}, Dims{1}, flat.offset());
  Plan p = line_plan(line, 0, raw_view(places, Dims{places.numel()}, Dims{1}, places.offset()));
  if (std::get<bool>(c.args[3]))
    cpu::index_accumulate(line.data(), values.data(), p.layout, out.dtype());
  else cpu::index_write(line.data(), values.data(), p.layout, out.dtype());
  if (!flat.is(out)) copy_into(out, flat);
  return out;
}
void put_backward(Backward& b) {
  const Tensor& g = b.grad();
  Tensor index = b.arg<Tensor>(1);
  if (b.needs(0))
    b.set(0, b.arg<bool>(3) ? g : op<"put">(g, index, zeros(index.sizes(), g.options()), false));
  if (b.needs(2)) b.set(2, reshape(op<"take">(g, index), b.sizes(2)));
}

// ---- ops ----

constexpr uint32_t kForms = kPublic | kInplace;

const Define kOps[] = {
    {"index(self: Tensor, indices: Tensor?[]) -> Tensor",
     "What stands at the given places. Item i of `indices` holds places in dimension i (int64 or "
     "int32, negative ones count "
     "from the end), or is a bool mask over as many dimensions as it has, or None for the whole "
     "dimension. The broadcast "
     "shape of the indices stands where they stood, or in front where a None separates them.",
     kernel(index_op),
     {.backward = index_backward, .saves = saves_arg(1), .forms = kMixed}},
    {"_index_backward(grad: Tensor, indices: Tensor?[], sizes: int[]) -> Tensor",
     "Zeros of shape `sizes` to which `grad` has been added at the places.",
     kernel(index_backward_op),
     {.backward = index_backward_backward, .saves = saves_arg(1), .forms = kMixed}},
    {"index_put(self: Tensor, indices: Tensor?[], values: Tensor, accumulate: bool = False) -> "
     "Tensor",
     "A copy of `self` with `values` at the places that `index` would read; with `accumulate`, "
     "added there.",
     raw_kernel(index_put_op, true),
     {.backward = index_put_backward, .saves = saves_arg(1), .forms = kForms | kMixed}},
    {"index_select(self: Tensor, dim: int, index: Tensor) -> Tensor",
     "The places `index` (a vector) of dimension `dim`, in that order.",
     kernel(index_select_op),
     {.backward = index_select_backward, .saves = saves_arg(2), .forms = kPublic | kOut}},
    {"index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> "
     "Tensor",
     "A copy of `self` to which place i of `source` along `dim`, times `alpha`, has been added at "
     "place index[i].",
     raw_kernel(index_add_op, true),
     {.backward = index_add_backward, .saves = saves_arg(2), .forms = kForms | kOut}},
    {"index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor",
     "A copy of `self` in which place i of `source` along `dim` stands at place index[i].",
     raw_kernel(index_copy_op, true),
     {.backward = index_copy_backward, .saves = saves_arg(2), .forms = kForms | kOut}},
    {"index_fill(self: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor",
     "A copy of `self` with `value` at the places `index` of dimension `dim`.",
     raw_kernel(index_fill_scalar, true),
     {.backward = index_fill_backward, .saves = saves_arg(2), .forms = kForms}},
    {"index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor",
     "The same, with `value` in a zero-dim tensor.",
     raw_kernel(index_fill_tensor, true),
     {.backward = index_fill_tensor_backward, .saves = saves_arg(2), .forms = kForms}},
    {"take(self: Tensor, index: Tensor) -> Tensor",
     "The elements at places `index` of the flattened tensor.",
     kernel(take_op),
     {.forms = kPublic | kOut, .composite = true}},
    {"put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor",
     "A copy of `self` with the elements of `source` at places `index` of the flattened tensor.",
     raw_kernel(put_op, true),
     {.backward = put_backward, .saves = saves_arg(1), .forms = kForms}},
};

}  // namespace
}  // namespace taeda
