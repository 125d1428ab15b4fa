// Indexing along one dimension, or in the flattened tensor: index_select, index_add, index_copy,
// index_fill, take, put.
#include "ops/index/plan.h"
#include "ops/pointwise/copy.h"

namespace taeda {
namespace {

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

// The plan for indexing one dimension; indices must be in range and non-negative.
IndexPlan single_dim_plan(const Tensor& x, int64_t dim, const Tensor& index) {
  return plan_of({Dims(x.sizes()), Dims(x.strides()),
                  [&] {
                    TensorList list = only_dim(index, dim);
                    list.resize(x.sizes().size());
                    return list;
                  }(),
                  x.device()},
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
  Tensor source = at_least_vector(x);
  const int64_t size = at(source.sizes(), d);
  const Tensor indices = inside(index_values(at_least_vector(index)), 0, size, [&](int64_t bad) {
    fail<IndexError>("index_select(): index out of range in self: ", bad,
                     " is out of bounds for dimension ", d, " with size ", size);
  });
  if (out.numel() == 0) return out;
  const int64_t row = source.stride(0) * static_cast<int64_t>(source.itemsize());
  if (d == 0 && source.is_contiguous() && row >= 128 && row <= 4096) {  // bytes; needs no plan
    kernels<ScatterKernels>(x.device())
        .take_rows(indices.numel(), row, source.data(), indices.data_as<int64_t>(), out.data());
    return out;
  }
  IndexPlan p = single_dim_plan(source, d, indices);
  kernels<ScatterKernels>(x.device()).read(out.data(), source.data(), p.layout, x.dtype());
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
  Tensor target = raw_parts(at_least_vector(out));
  const int64_t size = at(target.sizes(), dim);
  const Tensor indices = inside(index_values(at_least_vector(index)), 0, size, [&](int64_t bad) {
    fail("index ", bad, " is out of bounds for dimension ", dim, " with size ", size);
  });
  if (source.numel() == 0) return out;
  IndexPlan p = single_dim_plan(target, dim, indices);
  Tensor flat = raw_contiguous(without_overlap(source, out));
  if (!alpha.equals(1)) {
    GradMode off(false);
    if (alpha.is_complex()) check_fits(alpha, flat.dtype());
    flat = op<"mul">(flat, raw_cast(Tensor(alpha), flat.dtype()));
  }
  need_arithmetic("index_add", target.dtype());
  kernels<ScatterKernels>(out.device())
      .accumulate(target.data(), flat.data(), p.layout, target.dtype());
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
  Tensor target = at_least_vector(out);
  const int64_t size = at(target.sizes(), dim);
  const Tensor indices = inside(index_values(at_least_vector(index)), 0, size, [&](int64_t bad) {
    fail<IndexError>("index_copy_(): index ", bad, " is out of bounds for dimension ", dim,
                     " with size ", size);
  });
  if (source.numel() == 0) return out;
  IndexPlan p = single_dim_plan(target, dim, indices);
  Tensor flat = raw_contiguous(without_overlap(source, out));
  kernels<ScatterKernels>(out.device()).write(target.data(), flat.data(), p.layout, out.dtype());
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
  Tensor target = at_least_vector(out);
  const int64_t size = at(target.sizes(), dim);
  const Tensor indices =
      inside(index_values(at_least_vector(index)), -size, size, [&](int64_t bad) {
        fail<IndexError>("index ", bad, " is out of bounds for dimension ", dim, " with size ",
                         size);
      });
  IndexPlan p = single_dim_plan(target, dim, indices);
  p.layout.run_flat = p.layout.count_flat = 0;
  for (int64_t& s : p.layout.outer_flat) s = 0;
  Tensor v = raw_to(out.device(), raw_cast(without_overlap(value, out), out.dtype()));
  kernels<ScatterKernels>(out.device()).write(target.data(), v.data(), p.layout, out.dtype());
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
  const Tensor& g = b.grad();  // an index that occurs twice counts once
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
  if (x.is_meta() || index.is_meta() || index.is_placeholder()) return;
  if (auto bad = find_outside(index_values(index), -x.numel(), x.numel())) {
    fail<IndexError>("out of range: tried to access index ", *bad, " on a tensor of ", x.numel(),
                     " elements.");
  }
}

// Whether to access single elements through strides instead of making a contiguous copy of x.
bool reads_few(const Tensor& x, const Tensor& index) {
  return !x.is_contiguous() && index.numel() < x.numel() / 8 && x.numel() < int64_t{1} << 52;
}
// Converts flat indices, which must be in range, to coordinates, one tensor per dimension.
TensorList coordinates(const Tensor& index, DimsRef sizes) {
  Tensor rest = index_values(index);
  const int64_t all = numel_of(sizes);
  TensorList list(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    const Tensor up = empty(index.sizes(), rest.options()), here = d ? empty_like(up) : up;
    const int64_t wrap = d + 1 == sizes.size() ? all : 0;
    kernels<IndexKernels>(index.device())
        .split(rest.data_as<int64_t>(), rest.numel(), sizes[d], wrap,
               d ? up.data_as<int64_t>() : nullptr, here.data_as<int64_t>());
    list[d] = here;
    rest = up;
  }
  return list;
}

Tensor take_op(const Tensor& x, const Tensor& index) {
  check_take_from("take", x, index);
  const uint32_t own = modes.watched & ~static_cast<uint32_t>(kIsView | kRequiresGrad);
  if (modes.always == 0 && !((x.flags() | index.flags()) & (own | kMeta | kDispatch)) &&
      reads_few(x, index)) {
    check_taken(x, index);
    return op<"index">(x, coordinates(index, x.sizes()));
  }
  try {
    return op<"index">(reshape(x, Dims{-1}), TensorList{index});
  } catch (const IndexError&) {  // whose message would name dimension 0
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
  const Tensor values = raw_contiguous(without_overlap(source, out));
  const ScatterKernels& k = kernels<ScatterKernels>(out.device());
  const bool accumulate = std::get<bool>(c.args[3]);
  if (accumulate) need_arithmetic("put", out.dtype());
  const auto& write = accumulate ? k.accumulate : k.write;
  if (reads_few(out, index)) {
    const IndexPlan p =
        plan_of({out.sizes(), out.strides(), coordinates(index, out.sizes()), out.device()}, true);
    write(out.data(), values.data(), p.layout, out.dtype());
    return out;
  }
  Tensor flat = raw_contiguous(out), indices = index_values(index);
  Tensor vector = raw_view(flat, Dims{flat.numel()}, Dims{1}, flat.offset());
  IndexPlan p = single_dim_plan(
      vector, 0, raw_view(indices, Dims{indices.numel()}, Dims{1}, indices.offset()));
  write(vector.data(), values.data(), p.layout, out.dtype());
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

const Define kAlongOps[] = {
    {"index_select(self: Tensor, dim: int, index: Tensor) -> Tensor",
     "The indices `index` (a vector) of dimension `dim`, in that order.",
     kernel(index_select_op),
     {.backward = index_select_backward,
      .saves = saves_arg(2),
      .forms = kPublic | kOut,
      .out_memory = {.disjoint = 0b101}}},
    {"index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> "
     "Tensor",
     "A copy of `self` to which slice i of `source` along `dim`, times `alpha`, has been added at "
     "index index[i].",
     raw_kernel(index_add_op, true),
     {.backward = index_add_backward,
      .saves = saves_arg(2),
      .forms = kForms | kOut,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor",
     "A copy of `self` in which slice i of `source` along `dim` replaces the one at index[i].",
     raw_kernel(index_copy_op, true),
     {.backward = index_copy_backward,
      .saves = saves_arg(2),
      .forms = kForms | kOut,
      .autocast = kWidestOnCpu,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"index_fill(self: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor",
     "A copy of `self` with `value` at the indices `index` of dimension `dim`.",
     raw_kernel(index_fill_scalar, true),
     {.backward = index_fill_backward,
      .saves = saves_arg(2),
      .forms = kForms,
      .numbers = Numbers::Anywhere}},
    {"index_fill(self: Tensor, dim: int, index: Tensor, value: Tensor) -> Tensor",
     "The same, with `value` in a zero-dim tensor.",
     raw_kernel(index_fill_tensor, true),
     {.backward = index_fill_tensor_backward,
      .saves = saves_arg(2),
      .forms = kForms,
      .numbers = Numbers::Anywhere}},
    {"take(self: Tensor, index: Tensor) -> Tensor",
     "The elements at indices `index` of the flattened tensor.",
     kernel(take_op),
     {.forms = kPublic | kOut, .composite = true, .out_memory = {.disjoint = 0b11}}},
    {"put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor",
     "A copy of `self` with the elements of `source` at indices `index` of the flattened tensor.",
     raw_kernel(put_op, true),
     {.backward = put_backward, .saves = saves_arg(1), .forms = kForms}},
};

}  // namespace
}  // namespace taeda
