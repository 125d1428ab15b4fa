// gather, scatter and scatter with a reduction.
#include "kernels/scatter.h"

#include <limits>

#include "ops/index/util.h"
#include "ops/pointwise/copy.h"

namespace taeda {
namespace {

Dims sizes_at_least_1d(const Tensor& t) { return t.dim() ? Dims(t.sizes()) : Dims{1}; }
Dims strides_at_least_1d(const Tensor& t) { return t.dim() ? Dims(t.strides()) : Dims{1}; }

void check_index(const char* what, const Tensor& x, const Tensor& index) {
  check(is_index_dtype(index.dtype()) || index.numel() == 0, what,
        "(): Expected dtype int32/int64 for index");
  if (index.numel() == 0) return;
  check(sizes_at_least_1d(x).size() == sizes_at_least_1d(index).size(),
        "Index tensor must have the same number of dimensions as ",
        what == std::string("gather") ? "input" : "self", " tensor");
}

void check_indices(const Tensor& positions, int64_t dim, int64_t size) {
  if (auto bad = find_outside(positions, 0, size)) {
    fail("index ", *bad, " is out of bounds for dimension ", dim, " with size ", size);
  }
}
// Contiguous int64 indices; dimensions along which the index was expanded are stored once.
struct Indices {
  Tensor values;  // contiguous
  Dims strides;   // of the index, in `values`
};
Indices indices_of(const Tensor& index) {
  Dims sizes(index.sizes());
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (index.strides()[d] == 0 && sizes[d] > 1) sizes[d] = 1;
  }
  Indices p{index_values(raw_view(index, sizes, index.strides(), index.offset())), {}};
  p.strides = strides_at_least_1d(p.values);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != index.sizes()[d]) p.strides[d] = 0;
  }
  return p;
}

// ---- gather ----

Tensor gather_op(const Tensor& x, int64_t dim, const Tensor& index, bool) {
  int64_t d = wrap_dim(dim, x.dim());
  check_index("gather", x, index);
  Tensor out = empty(index.sizes(), x.options());
  if (index.numel() == 0) return out;
  Dims xs = sizes_at_least_1d(x), is = sizes_at_least_1d(index);
  for (size_t k = 0; k < is.size(); ++k) {
    check(static_cast<int64_t>(k) == d || is[k] <= xs[k], "Size does not match at dimension ", k,
          " expected index ", to_string(index.sizes()), " to be no larger than self ",
          to_string(x.sizes()), " apart from dimension ", d);
  }
  if (x.is_meta()) return out;
  const auto [found, ps] = indices_of(index);
  const Tensor positions = kept_inside(found, 0, at(xs, d));
  Dims ts = strides_at_least_1d(x), os = strides_at_least_1d(out);
  if (!kernels<ScatterKernels>(x.device())
           .gather(
               out.data(), x.data(),
               {is, ps, ts, os, static_cast<size_t>(d), positions.data_as<int64_t>(), at(xs, d)},
               x.dtype())) {
    check_indices(positions, d, at(xs, d));
  }
  return out;
}
void gather_backward(Backward& b) {
  const Tensor& g = b.grad();
  b.set(0,
        op<"scatter_add">(zeros(b.sizes(0), g.options()), b.arg<int64_t>(1), b.arg<Tensor>(2), g));
}

// ---- scatter ----

// Applies `src` (a tensor, or one element for all) to `out` in place. `kept`: `out` is the caller's
// tensor, which an invalid index must leave unchanged.
void scatter_into(const Tensor& out, int64_t d, const Tensor& index, const Tensor& src, bool single,
                  ScatterMode mode, bool kept = false) {
  if (out.is_meta() || index.numel() == 0) return;
  Dims xs = sizes_at_least_1d(out), is = sizes_at_least_1d(index);
  const auto [found, ps] = indices_of(index);
  const Tensor positions = kept_inside(found, 0, at(xs, d));
  if (kept && !tells_later(out.device())) check_indices(positions, d, at(xs, d));
  Dims ts = strides_at_least_1d(out);
  const Tensor values = raw_to(out.device(), src);
  Dims ss = single ? Dims(is.size(), 0) : strides_at_least_1d(values);
  if (!kernels<ScatterKernels>(out.device())
           .scatter(
               out.data(), values.data(),
               {is, ps, ts, ss, static_cast<size_t>(d), positions.data_as<int64_t>(), at(xs, d)},
               out.dtype(), mode)) {
    check_indices(positions, d, at(xs, d));
  }
}

void check_scatter(const char* what, const Tensor& self, int64_t d, const Tensor& index,
                   const Tensor* src) {
  check_index(what, self, index);
  if (src)
    check(self.dtype() == src->dtype(), "scatter(): Expected self.dtype to be equal to src.dtype");
  if (index.numel() == 0) return;
  Dims xs = sizes_at_least_1d(self), is = sizes_at_least_1d(index),
       ss = src ? sizes_at_least_1d(*src) : is;
  check(ss.size() == is.size(),
        "Index tensor must have the same number of dimensions as src tensor");
  bool fits = true;
  for (size_t k = 0; k < is.size(); ++k) {
    fits = fits && (static_cast<int64_t>(k) == d || is[k] <= xs[k]) && is[k] <= ss[k];
  }
  std::string tail =
      src ? str(" and to be no larger size than src ", to_string(src->sizes())) : std::string();
  check(fits, "Expected index ", to_string(index.sizes()), " to be no larger than self ",
        to_string(self.sizes()), " apart from dimension ", d, tail);
}

ScatterMode mode_of(const std::string& reduce) {
  check(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  return reduce == "add" ? ScatterMode::Add : ScatterMode::Multiply;
}

Value scatter_tensor(Call& c, const char* what, ScatterMode mode) {
  const auto &self = Unpack<Tensor>::get(c.args[0]), &index = Unpack<Tensor>::get(c.args[2]),
             &src = Unpack<Tensor>::get(c.args[3]);
  int64_t d = wrap_dim(std::get<int64_t>(c.args[1]), self.dim());
  check_scatter(what, self, d, index, &src);
  Tensor out = target_of(c, self);
  scatter_into(out, d, index, self.is_meta() ? src : without_overlap(src, out), false, mode,
               out.is(self));
  return out;
}
Value scatter_value(Call& c, ScatterMode mode) {
  const auto &self = Unpack<Tensor>::get(c.args[0]), &index = Unpack<Tensor>::get(c.args[2]);
  int64_t d = wrap_dim(std::get<int64_t>(c.args[1]), self.dim());
  check_scatter("scatter", self, d, index, nullptr);
  const Scalar value = std::get<Scalar>(c.args[3]);
  check_fits(value, self.dtype());
  Tensor out = target_of(c, self);
  scatter_into(out, d, index, raw_cast(Tensor(value), self.dtype()), true, mode, out.is(self));
  return out;
}
Value scatter_src(Call& c) { return scatter_tensor(c, "scatter", ScatterMode::Copy); }
Value scatter_scalar(Call& c) { return scatter_value(c, ScatterMode::Copy); }
Value scatter_src_reduce(Call& c) {
  return scatter_tensor(c, "scatter", mode_of(std::get<std::string>(c.args[4])));
}
Value scatter_scalar_reduce(Call& c) {
  return scatter_value(c, mode_of(std::get<std::string>(c.args[4])));
}
Value scatter_add_op(Call& c) { return scatter_tensor(c, "scatter_add", ScatterMode::Add); }

void scatter_self_backward(Backward& b) {
  if (b.needs(0))
    b.set(0, op<"_scatter_fill">(b.grad(), b.arg<int64_t>(1), b.arg<Tensor>(2), Scalar(0)));
}
// The gradient of a source that may be larger than the index.
Tensor gather_for(Backward& b, const Tensor& g, int src) {
  Tensor index = b.arg<Tensor>(2), taken = op<"gather">(g, b.arg<int64_t>(1), index);
  const Dims& sizes = b.sizes(src);
  if (same(taken.sizes(), sizes)) return taken;
  if (taken.numel() == 0) return zeros(sizes, g.options());
  Tensor out = taken;
  for (int64_t d = 0; d < out.dim(); ++d) {
    int64_t missing = at(sizes, d) - out.size(d);
    if (missing == 0) continue;
    Dims pad(out.sizes());
    pad[static_cast<size_t>(d)] = missing;
    out = op<"cat">(TensorList{out, zeros(pad, g.options())}, d);
  }
  return out;
}
void scatter_backward(Backward& b) {
  scatter_self_backward(b);
  if (b.needs(3)) b.set(3, gather_for(b, b.grad(), 3));
}
void scatter_add_backward(Backward& b) {
  b.set(0, b.grad());
  if (b.needs(3)) b.set(3, gather_for(b, b.grad(), 3));
}
void scatter_reduce_named_backward(Backward& b) {
  check(b.arg<std::string>(4) == "add",
        "the derivative for 'scatter' with reduce='multiply' is not implemented; "
        "scatter_reduce with reduce='prod' has one");
  b.set(0, b.grad());
  if (b.has(3) && b.needs(3)) b.set(3, gather_for(b, b.grad(), 3));
}

// ---- scatter_reduce ----

ScatterMode reduction_of(const std::string& r) {
  if (r == "sum" || r == "mean") return ScatterMode::Add;
  if (r == "prod") return ScatterMode::Multiply;
  if (r == "amax") return ScatterMode::Max;
  check(r == "amin", "reduce argument must be either sum, prod, mean, amax or amin, got ", r);
  return ScatterMode::Min;
}

Scalar identity_of(const std::string& r, DType d) {
  if (r == "prod") return Scalar(1);
  if (r == "sum" || r == "mean") return Scalar(0);
  bool low = r == "amax";
  if (is_inexact(d))
    return Scalar(low ? -std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::infinity());
  int64_t v = 0;
  visit_real(d, "scatter_reduce", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      v = static_cast<int64_t>(low ? std::numeric_limits<T>::lowest()
                                   : std::numeric_limits<T>::max());
    }
  });
  return d == DType::Bool ? Scalar(v != 0) : Scalar(v);
}

Value scatter_reduce_op(Call& c) {
  const auto &self = Unpack<Tensor>::get(c.args[0]), &index = Unpack<Tensor>::get(c.args[2]),
             &src = Unpack<Tensor>::get(c.args[3]);
  const auto& reduce = std::get<std::string>(c.args[4]);
  bool include_self = std::get<bool>(c.args[5]);
  int64_t d = wrap_dim(std::get<int64_t>(c.args[1]), self.dim());
  ScatterMode mode = reduction_of(reduce);
  check(!is_complex(self.dtype()) || mode == ScatterMode::Add || mode == ScatterMode::Multiply,
        "scatter_reduce(): amax and amin do not support complex input");
  check_scatter("scatter_reduce", self, d, index, &src);
  Tensor out = target_of(c, self);
  if (self.is_meta() || index.numel() == 0) return out;
  Tensor source = without_overlap(src, out);
  if (!include_self) {
    scatter_into(out, d, index, raw_cast(Tensor(identity_of(reduce, self.dtype())), self.dtype()),
                 true, ScatterMode::Copy, out.is(self));
  }
  scatter_into(out, d, index, source, false, mode, out.is(self));
  if (reduce == "mean") {
    GradMode off(false);
    Tensor count = include_self ? ones_like(out) : zeros_like(out);
    scatter_into(count, d, index, raw_cast(Tensor(Scalar(1)), out.dtype()), true, ScatterMode::Add);
    if (!include_self) count = op<"masked_fill">(count, op<"eq">(count, Tensor(0)), Tensor(1));
    copy_into(out, is_inexact(out.dtype()) ? out / count : op<"floor_divide">(out, count));
  }
  return out;
}

void scatter_reduce_backward(Backward& b) {
  const Tensor& g = b.grad();
  int64_t dim = b.arg<int64_t>(1);
  Tensor self = b.arg<Tensor>(0), index = b.arg<Tensor>(2), src = b.arg<Tensor>(3), out = b.out();
  auto reduce = b.arg<std::string>(4);
  bool include_self = b.arg<bool>(5);
  Tensor g_self, g_src;
  if (reduce == "sum") {
    g_self = g;
    g_src = gather_for(b, g, 3);
  } else if (reduce == "mean") {
    Tensor count = full(self.sizes(), Scalar(include_self ? 1.0 : 0.0), g.options());
    count = op<"scatter_add">(count, dim, index, full(src.sizes(), Scalar(1.0), g.options()));
    count = op<"masked_fill">(count, op<"eq">(count, Tensor(0)), Tensor(1));
    g_self = g / count;
    g_src = gather_for(b, g / count, 3);
  } else if (reduce == "prod") {
    // The gradient of a factor is the product of the other factors: with a single zero among all
    // factors, only that factor has a non-zero gradient.
    auto without_zeros = [](const Tensor& t) {
      return op<"masked_fill">(t, op<"eq">(t, Tensor(0)), Tensor(1));
    };
    auto zero_count = [&](const Tensor& t) { return to(op<"eq">(t, Tensor(0)), g.dtype()); };
    Tensor rest = op<"scatter_reduce">(without_zeros(self), dim, index, without_zeros(src), "prod",
                                       include_self);
    Tensor base = include_self ? zero_count(self) : zeros(self.sizes(), g.options());
    Tensor zeros_there = op<"scatter_add">(base, dim, index, zero_count(src));
    auto others = [&](const Tensor& t, const Tensor& product, const Tensor& n) {
      Tensor is_zero = op<"eq">(t, Tensor(0));
      Tensor hidden = op<"gt">(n - to(is_zero, n.dtype()), Tensor(0));
      return op<"masked_fill">(product / without_zeros(t), hidden, Tensor(0));
    };
    g_self = g * others(self, rest, zeros_there);
    g_src =
        gather_for(b, g, 3) * others(src, gather_for(b, rest, 3), gather_for(b, zeros_there, 3));
  } else {
    Tensor self_hit = to(op<"eq">(self, out), g.dtype());
    Tensor src_hit = to(op<"eq">(src, gather_for(b, out, 3)), g.dtype());
    Tensor count = op<"scatter_add">(include_self ? self_hit : zeros(self.sizes(), g.options()),
                                     dim, index, src_hit);
    Tensor safe = op<"masked_fill">(count, op<"eq">(count, Tensor(0)), Tensor(1));
    g_self = self_hit * g / safe;
    g_src = src_hit * gather_for(b, g / safe, 3);
  }
  if (!include_self) g_self = op<"_scatter_fill">(g_self, dim, index, Scalar(0));
  if (b.needs(0)) b.set(0, g_self);
  if (b.needs(3)) b.set(3, g_src);
}

// scatter_reduce of whole slices.
Tensor index_reduce_op(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       const std::string& reduce, bool include_self) {
  const char* what = "index_reduce(): ";
  check(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin", what,
        "Expected reduce to be one of prod, mean, amax or amin but got ", reduce);
  const int64_t d = wrap_dim(dim, self.dim());
  check<IndexError>(index.dim() <= 1, what,
                    "Index is supposed to be a vector, but got dim: ", index.dim());
  check(is_index_dtype(index.dtype()), what,
        "Expected dtype int32/int64 for index but got: ", index.dtype());
  check(self.dtype() == source.dtype(), what, "self (", self.dtype(), ") and source (",
        source.dtype(), ") must have the same scalar type");
  if (self.dim() == 0 || source.dim() == 0) {
    check(source.numel() == index.numel() && self.numel() == 1, what,
          "a source without dimensions needs one index, got ", index.numel());
    Tensor one = op<"scatter_reduce">(reshape(self, Dims{1}), 0, reshape(index, Dims{-1}),
                                      reshape(source, Dims{-1}), reduce, include_self);
    return reshape(one, self.sizes());
  }
  Dims expected(self.sizes());
  expected[static_cast<size_t>(d)] = index.numel();
  check(same(expected, source.sizes()), what, "source must have shape ", to_string(expected),
        ", got ", to_string(source.sizes()));
  Dims along(expected.size(), 1);
  along[static_cast<size_t>(d)] = index.numel();
  return op<"scatter_reduce">(self, d, expand(reshape(index, along), expected), source, reduce,
                              include_self);
}

Tensor take_along_dim_op(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  check(indices.dtype() == DType::Int64,
        "torch.take_along_dim(): dtype of indices should be Long but got ", indices.dtype());
  if (!dim) return op<"take_along_dim">(reshape(x, Dims{-1}), reshape(indices, Dims{-1}), 0);
  check(x.dim() == indices.dim(),
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but "
        "got ",
        x.dim(), " dimensions for input, and ", indices.dim(), " dimensions for indices");
  int64_t d = wrap_dim(*dim, x.dim());
  Dims xs(x.sizes()), is(indices.sizes());
  if (x.dim() > 0) {
    auto k = static_cast<size_t>(d);
    int64_t along_x = xs[k], along_i = is[k];
    xs[k] = is[k] = 1;
    Dims both = broadcast_sizes(xs, is);
    xs = is = both;
    xs[k] = along_x;
    is[k] = along_i;
  }
  // Unlike gather's, these indices may count from the end.
  Tensor positions = expand(indices, is);
  int64_t size = x.dim() > 0 ? at(xs, d) : 1;
  return op<"gather">(
      expand(x, xs), d,
      where(op<"lt">(positions, Tensor(0)), op<"add">(positions, Tensor(Scalar(size))), positions));
}

// ---- ops ----

constexpr uint32_t kScatterForms = kPublic | kInplace | kOut;

const Define kScatterOps[] = {
    {"index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, "
     "include_self: bool = True) -> Tensor",
     "A copy of `self` in which slice `index[i]` along `dim` is combined with slice i of `source`: "
     "by 'prod', 'mean', 'amax' or 'amin', of what was there (`include_self`) or without it.",
     kernel(index_reduce_op),
     {.forms = kScatterForms,
      .composite = true,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"gather(self: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor",
     "The elements of `self` whose index along `dim` comes from `index`: in three dimensions with "
     "dim = 1, "
     "out[i, j, k] = self[i, index[i, j, k], k]. The result has the shape of `index`.",
     kernel(gather_op),
     {.backward = gather_backward,
      .saves = saves_arg(2),
      .forms = kPublic | kOut,
      .out_memory = {.disjoint = 0b1, .same_or_disjoint = 0b100}}},
    {"scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor",
     "A copy of `self` into which the elements of `src` have been written, at indices along `dim` "
     "that come from `index`.",
     raw_kernel(scatter_src, true),
     {.backward = scatter_backward,
      .saves = saves_arg(2),
      .forms = kScatterForms,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"scatter(self: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor",
     "A copy of `self` into which `value` has been written, at indices along `dim` that come from "
     "`index`.",
     raw_kernel(scatter_scalar, true),
     {.backward = scatter_self_backward,
      .saves = saves_arg(2),
      .forms = kScatterForms,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"_scatter_fill(self: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor",
     "`scatter` of one value.",
     raw_kernel(scatter_scalar, true),
     {.backward = scatter_self_backward, .saves = saves_arg(2)}},
    {"scatter(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor",
     "As above, but the elements are added (reduce='add') or multiplied (reduce='multiply') to "
     "what is there.",
     raw_kernel(scatter_src_reduce, true),
     {.backward = scatter_reduce_named_backward,
      .saves = saves_arg(2),
      .forms = kScatterForms,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"scatter(self: Tensor, dim: int, index: Tensor, value: Scalar, *, reduce: str) -> Tensor",
     "As above, with one value.",
     raw_kernel(scatter_scalar_reduce, true),
     {.backward = scatter_reduce_named_backward,
      .saves = saves_arg(2),
      .forms = kScatterForms,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor",
     "A copy of `self` to which the elements of `src` have been added, at indices along `dim` that "
     "come from `index`.",
     raw_kernel(scatter_add_op, true),
     {.backward = scatter_add_backward,
      .saves = saves_arg(2),
      .forms = kScatterForms,
      .autocast = kWidestOnCuda,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, "
     "include_self: bool = True) -> "
     "Tensor",
     "A copy of `self` with which the elements of `src` have been combined by 'sum', 'prod', "
     "'mean', 'amax' or 'amin' at "
     "indices along `dim` that come from `index`. Without `include_self`, the elements at those "
     "indices do not count.",
     raw_kernel(scatter_reduce_op, true),
     {.backward = scatter_reduce_backward,
      .saves = saves_arg(0) | saves_arg(2) | saves_arg(3) | saves_out(),
      .forms = kScatterForms,
      .out_memory = {.disjoint = 0b1100, .same_or_disjoint = 0b1}}},
    {"take_along_dim(self: Tensor, indices: Tensor, dim: int? = None) -> Tensor",
     "`gather` with all other dimensions broadcast; without `dim`, of the flattened tensors.",
     kernel(take_along_dim_op),
     {.forms = kPublic | kOut,
      .composite = true,
      .out_memory = {.disjoint = 0b1, .same_or_disjoint = 0b10}}},
};

}  // namespace
}  // namespace taeda
