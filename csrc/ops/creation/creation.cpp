// Factories: tensors from sizes and numbers.
#include <cmath>

#include "autograd/backward.h"
#include "ops/core/factory.h"

namespace taeda {
namespace {

using namespace factory;

// ---- constants ----

Value empty_op(Call& c) {
  const Dims& size = get<Dims>(c, 0);
  const Options o = options_of(c, 1);
  const auto format = maybe<MemoryFormat>(c, 4).value_or(MemoryFormat::Contiguous);
  check(format != MemoryFormat::Preserve,
        "empty(): memory_format cannot be preserve_format, there is nothing to preserve");
  if (format == MemoryFormat::Contiguous) return finished(c, 1, empty(size, o));
  const size_t want = format == MemoryFormat::ChannelsLast ? 4 : 5;
  check(size.size() == want, "required rank ", want, " tensor to use channels_last",
        want == 5 ? "_3d" : "", " format");
  return finished(c, 1, empty_strided(size, channels_last_strides(size), o));
}
Value zeros_op(Call& c) { return finished(c, 1, filled(get<Dims>(c, 0), options_of(c, 1), 0)); }
Value ones_op(Call& c) { return finished(c, 1, filled(get<Dims>(c, 0), options_of(c, 1), 1)); }
Value full_op(Call& c) {
  const auto value = get<Scalar>(c, 1);
  return finished(c, 2,
                  filled(get<Dims>(c, 0), options_of(c, 2, {value.dtype(), Device{}}), value));
}
Value scalar_tensor_op(Call& c) {
  return finished(c, 1, filled({}, options_of(c, 1), get<Scalar>(c, 0)));
}
Value empty_strided_op(Call& c) {
  return finished(c, 2, empty_strided(get<Dims>(c, 0), get<Dims>(c, 1), options_of(c, 2)));
}

// ---- like a tensor ----

Tensor like(const Call& c, size_t at) {
  const Tensor& self = get<Tensor>(c, 0);
  const Options o = options_of(c, at, self.options());
  return empty_in(self, o.dtype, o.device,
                  maybe<MemoryFormat>(c, at + 3).value_or(MemoryFormat::Preserve));
}
Value empty_like_op(Call& c) { return finished(c, 1, like(c, 1)); }
template <int V> Value constant_like_op(Call& c) {
  const Tensor t = like(c, 1);
  fill_with(t, V);
  return finished(c, 1, t);
}
Value full_like_op(Call& c) {
  const Tensor t = like(c, 2);
  fill_with(t, get<Scalar>(c, 1));
  return finished(c, 2, t);
}
Value new_empty_op(Call& c) {
  return finished(c, 2, empty(get<Dims>(c, 1), options_of(c, 2, get<Tensor>(c, 0).options())));
}
template <int V> Value new_constant_op(Call& c) {
  return finished(c, 2, filled(get<Dims>(c, 1), options_of(c, 2, get<Tensor>(c, 0).options()), V));
}
Value new_full_op(Call& c) {
  return finished(
      c, 3,
      filled(get<Dims>(c, 1), options_of(c, 3, get<Tensor>(c, 0).options()), get<Scalar>(c, 2)));
}
Value new_empty_strided_op(Call& c) {
  return finished(c, 3,
                  empty_strided(get<Dims>(c, 1), get<Dims>(c, 2),
                                options_of(c, 3, get<Tensor>(c, 0).options())));
}

// ---- sequences ----

using Wide = __int128;  // holds any sum or product of two int64

Value arange(Call& c, Scalar start, Scalar end, Scalar step, size_t at) {
  const bool whole = start.is_integral() && end.is_integral() && step.is_integral();
  const Options o = options_of(c, at, {whole ? DType::Int64 : default_dtype(), Device{}});
  if (o.dtype == DType::Int64) {  // bounds are truncated before counting elements
    start = start.to_int();
    end = end.to_int();
    check<ValueError>(
        step.is_integral() || std::abs(step.to_double()) >= 1 || step.to_double() == 0,
        "step must be nonzero");
    step = step.to_int();
  }
  int64_t n;
  if (start.is_integral() && end.is_integral() && step.is_integral()) {
    const int64_t a = start.to_int(), b = end.to_int(), s = step.to_int();
    check(s != 0, "step must be nonzero");
    check(s > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
    const Wide span = Wide(b) - a, count = span / s + (span % s != 0);
    check(count <= INT64_MAX, "invalid size, possible overflow?");
    n = static_cast<int64_t>(count);
  } else {
    const double a = start.to_double(), b = end.to_double(), s = step.to_double();
    check(s != 0, "step must be nonzero");
    check(std::isfinite(a) && std::isfinite(b), "unsupported range: ", a, " -> ", b);
    check(s > 0 ? b >= a : b <= a, "upper bound and lower bound inconsistent with step sign");
    const double count = std::ceil((b - a) / s);
    check(count < 9.2e18, "invalid size, possible overflow?");
    n = static_cast<int64_t>(count);
  }
  const Tensor t = empty({{n}}, o);
  if (is_integral(o.dtype) && step.is_integral() && start.is_integral()) {
    const auto a = static_cast<uint64_t>(start.to_int()), s = static_cast<uint64_t>(step.to_int());
    if (o.dtype == DType::Int64 && !t.is_meta()) {
      kernels<CreationKernels>(t.device()).range(n, a, s, t.data_as<uint64_t>());
      return finished_range(c, at, t);
    }
    tabulate(t, [=](int64_t i) { return static_cast<int64_t>(a + static_cast<uint64_t>(i) * s); });
  } else if (is_integral(o.dtype)) {
    const int64_t a = start.to_int(), s = step.to_int();
    tabulate(t, [=](int64_t i) { return a + i * s; });
  } else {
    const double a = start.to_double(), s = step.to_double();
    tabulate(t, [=](int64_t i) { return a + static_cast<double>(i) * s; });
  }
  return finished_range(c, at, t);
}
Value arange_end_op(Call& c) { return arange(c, 0, get<Scalar>(c, 0), 1, 1); }
Value arange_op(Call& c) {
  return arange(c, get<Scalar>(c, 0), get<Scalar>(c, 1), get<Scalar>(c, 2), 3);
}

// Evenly spaced values, computed from both ends to the middle, so that the last one is exactly
// `end`.
template <class R> auto evenly_spaced(Scalar start, Scalar end, int64_t steps) {
  const auto a = start.to<R>(), b = end.to<R>();
  const R step = steps > 1 ? (b - a) / static_cast<R>(steps - 1) : R(0);
  return [=](int64_t i) {
    return i < steps / 2 || steps == 1 ? a + step * static_cast<R>(i)
                                       : b - step * static_cast<R>(steps - 1 - i);
  };
}

// Bounds are numbers or zero-dimensional tensors; truncated for integral dtypes.
Scalar bound(const Call& c, size_t i, DType dtype) {
  const auto* t = std::get_if<Tensor>(&c.args[i]);
  check(!t || t->dim() == 0, c.op.name,
        " only supports 0-dimensional start and end tensors, but got ", i == 0 ? "start" : "end",
        " with ", t ? t->dim() : 0, " dimension(s).");
  const Scalar s = t ? t->item() : get<Scalar>(c, i);
  check(!s.is_complex(), c.op.name, "(): complex bounds are not supported");
  return is_integral(dtype) ? Scalar(s.to_int()) : s;
}
Value linspace_op(Call& c) {
  const auto steps = get<int64_t>(c, 2);
  check(steps >= 0, "number of steps must be non-negative");
  const Tensor t = empty({{steps}}, options_of(c, 3));
  const Scalar start = bound(c, 0, t.dtype()), end = bound(c, 1, t.dtype());
  if (t.dtype() == DType::Float32) tabulate(t, evenly_spaced<float>(start, end, steps));
  else tabulate(t, evenly_spaced<double>(start, end, steps));
  return finished_range(c, 3, t);
}
Value logspace_op(Call& c) {
  const auto steps = get<int64_t>(c, 2);
  check(steps >= 0, "number of steps must be non-negative");
  const double base = get<double>(c, 3);
  const Tensor t = empty({{steps}}, options_of(c, 4));
  const auto exponent =
      evenly_spaced<double>(bound(c, 0, t.dtype()), bound(c, 1, t.dtype()), steps);
  tabulate(t, [=](int64_t i) { return std::pow(base, exponent(i)); });
  return finished_range(c, 4, t);
}

// ---- matrices ----

Value eye(Call& c, int64_t n, int64_t m, size_t at) {
  check(n >= 0, "n must be greater or equal to 0, got ", n);
  check(m >= 0, "m must be greater or equal to 0, got ", m);
  const Tensor t = filled({{n, m}}, options_of(c, at), 0);
  const int64_t k = std::min(n, m);
  if (k > 0) fill_with(from_storage(t.storage(), {{k}}, {{m + 1}}, 0, t.dtype()), 1);
  return finished(c, at, t);
}
Value eye_op(Call& c) { return eye(c, get<int64_t>(c, 0), get<int64_t>(c, 0), 1); }
Value eye_rectangle_op(Call& c) { return eye(c, get<int64_t>(c, 0), get<int64_t>(c, 1), 2); }

// tril and triu: zeros the elements on one side of a diagonal.
template <bool Lower> Value triangle_op(Call& c) {
  const Tensor& self = get<Tensor>(c, 0);
  check(self.dim() >= 2, c.op.name, ": input tensor must have at least 2 dimensions");
  const bool here = c.out.defined() && c.out.is(self) && self.is_contiguous();
  const Tensor t = here ? self : empty(self.sizes(), self.options());
  const int64_t row_bytes = self.size(-1) * static_cast<int64_t>(self.itemsize());
  // The kept part is copied row by row; short rows and strided tensors are copied whole first.
  const bool by_rows = !here && row_bytes >= 128 && self.is_contiguous();
  if (!here && !by_rows) copy_into(t, self);
  const int64_t rows = self.size(-2), columns = self.size(-1);
  const int64_t diagonal =
      std::clamp(get<int64_t>(c, 1), -rows - 1, columns + 1);  // farther out makes no difference
  if (!t.is_meta() && t.numel() > 0) {
    const auto item = static_cast<int64_t>(t.itemsize());
    const TriangleShape shape{t.numel() / columns, rows, columns, item, diagonal, Lower};
    kernels<CreationKernels>(t.device()).triangle(shape, by_rows ? self.data() : nullptr, t.data());
  }
  if (!c.out.defined() || t.is(c.out)) return t;
  return write_out(c.op, c.out, t);
}
void tril_backward(Backward& b) { b.set(0, op<"tril">(b.grad(), b.arg<int64_t>(1))); }
void triu_backward(Backward& b) { b.set(0, op<"triu">(b.grad(), b.arg<int64_t>(1))); }

template <bool Lower> Value triangle_indices_op(Call& c) {
  const auto rows = get<int64_t>(c, 0), columns = get<int64_t>(c, 1), offset = get<int64_t>(c, 2);
  check(rows >= 0, "row must be non-negative, got", rows);
  check(columns >= 0, "col must be non-negative, got", columns);
  const Options o = options_of(c, 3, {DType::Int64, Device{}});
  check(o.dtype == DType::Int64 || o.dtype == DType::Int32, "\"", c.op.name,
        "\" not implemented for '", o.dtype, "'");
  // The sum of clamp(k, 0, columns) over all k < m: in closed form, in 128 bits so that it never
  // overflows.
  const auto below = [&](Wide m) -> Wide {
    if (m <= 0) return 0;
    return m <= columns ? m * (m - 1) / 2
                        : Wide(columns) * (Wide(columns) + 1) / 2 + (m - columns - 1) * columns;
  };
  const Wide start = Wide(offset) + (Lower ? 1 : 0), left = below(start + rows) - below(start);
  const Wide count = Lower ? left : Wide(rows) * columns - left;
  check(count < Wide(1) << 60, c.op.name, "(): a triangle of ", rows, " x ", columns,
        " has too many elements");
  const auto n = static_cast<int64_t>(count);
  const Tensor t = empty({{2, n}}, {DType::Int64, o.device});
  if (!t.is_meta()) {
    const int64_t diagonal = static_cast<int64_t>(
        std::clamp<Wide>(offset, -Wide(rows) - 1, columns));  // farther out makes no difference
    const TriangleShape shape{rows, rows, columns, 0, diagonal, Lower};
    kernels<CreationKernels>(t.device()).triangle_indices(shape, n, t.data_as<int64_t>());
  }
  return finished(c, 3, to(t, o.dtype));
}

// ---- the table ----

constexpr uint32_t kFactory = kFunction | kOut;

const Define kCreationOps[] = {
    {"empty(size: int[], *, " TAEDA_LIKE ") -> Tensor",
     "A tensor whose memory is not set to anything.",
     raw(empty_op),
     {.forms = kFactory, .by_copies = true}},
    {"zeros(size: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "A tensor of zeros.",
     raw(zeros_op),
     {.forms = kFactory, .by_copies = true}},
    {"ones(size: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "A tensor of ones.",
     raw(ones_op),
     {.forms = kFactory, .by_copies = true}},
    {"full(size: int[], fill_value: Scalar, *, " TAEDA_OPTIONS ") -> Tensor",
     "A tensor with `fill_value` everywhere, whose kind gives the dtype unless one is named.",
     raw(full_op),
     {.forms = kFactory, .by_copies = true}},
    {"scalar_tensor(s: Scalar, *, " TAEDA_OPTIONS ") -> Tensor",
     "A zero-dimensional tensor.",
     raw(scalar_tensor_op),
     {.forms = kFunction, .by_copies = true}},
    {"empty_strided(size: int[], stride: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "A tensor of the given sizes and strides; its memory is not set to anything.",
     raw(empty_strided_op),
     {.forms = kFunction, .by_copies = true}},
    {"empty_like(self: Tensor, *, " TAEDA_LIKE ") -> Tensor",
     "A tensor like `self`, not set to anything.",
     raw(empty_like_op),
     {.forms = kFunction, .non_differentiable = 1, .vmap = vmap::direct}},
    {"zeros_like(self: Tensor, *, " TAEDA_LIKE ") -> Tensor",
     "Zeros, in the pattern of `self`.",
     raw(constant_like_op<0>),
     {.forms = kFunction, .non_differentiable = 1, .vmap = vmap::direct}},
    {"ones_like(self: Tensor, *, " TAEDA_LIKE ") -> Tensor",
     "Ones, in the pattern of `self`.",
     raw(constant_like_op<1>),
     {.forms = kFunction, .non_differentiable = 1, .vmap = vmap::direct}},
    {"full_like(self: Tensor, fill_value: Scalar, *, " TAEDA_LIKE ") -> Tensor",
     "`fill_value` everywhere, in the pattern of `self`.",
     raw(full_like_op),
     {.forms = kFunction, .non_differentiable = 1, .vmap = vmap::direct}},
    {"new_empty(self: Tensor, size: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "A tensor with the dtype and device of `self`, not set to anything.",
     raw(new_empty_op),
     {.forms = kMethod, .non_differentiable = 1, .vmap = vmap::new_tensor}},
    {"new_zeros(self: Tensor, size: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "Zeros with the dtype and device of `self`.",
     raw(new_constant_op<0>),
     {.forms = kMethod, .non_differentiable = 1, .vmap = vmap::new_tensor}},
    {"new_ones(self: Tensor, size: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "Ones with the dtype and device of `self`.",
     raw(new_constant_op<1>),
     {.forms = kMethod, .non_differentiable = 1, .vmap = vmap::new_tensor}},
    {"new_full(self: Tensor, size: int[], fill_value: Scalar, *, " TAEDA_OPTIONS ") -> Tensor",
     "`fill_value` everywhere, with the dtype and device of `self`.",
     raw(new_full_op),
     {.forms = kMethod, .non_differentiable = 1, .vmap = vmap::new_tensor}},
    {"new_empty_strided(self: Tensor, size: int[], stride: int[], *, " TAEDA_OPTIONS ") -> Tensor",
     "As empty_strided, with the dtype and device of `self`.",
     raw(new_empty_strided_op),
     {.forms = kMethod, .non_differentiable = 1}},
    {"arange(end: Scalar, *, " TAEDA_OPTIONS ") -> Tensor",
     "`start`, `start + step`, ... up to but without `end`; whole numbers give int64.",
     raw(arange_end_op),
     {.forms = kFactory}},
    {"arange(start: Scalar, end: Scalar, step: Scalar = 1, *, " TAEDA_OPTIONS ") -> Tensor",
     "",
     raw(arange_op),
     {.forms = kFactory}},
    {"linspace(start: Scalar, end: Scalar, steps: int, *, " TAEDA_OPTIONS ") -> Tensor",
     "`steps` numbers at equal distances from `start` to `end`, both included.",
     raw(linspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"linspace(start: Tensor, end: Tensor, steps: int, *, " TAEDA_OPTIONS ") -> Tensor",
     "",
     raw(linspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"linspace(start: Tensor, end: Scalar, steps: int, *, " TAEDA_OPTIONS ") -> Tensor",
     "",
     raw(linspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"linspace(start: Scalar, end: Tensor, steps: int, *, " TAEDA_OPTIONS ") -> Tensor",
     "",
     raw(linspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"logspace(start: Scalar, end: Scalar, steps: int, base: float = 10.0, *, " TAEDA_OPTIONS
     ") -> Tensor",
     "`base` to the power of the elements of `linspace(start, end, steps)`.",
     raw(logspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"logspace(start: Tensor, end: Tensor, steps: int, base: float = 10.0, *, " TAEDA_OPTIONS
     ") -> Tensor",
     "",
     raw(logspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"logspace(start: Tensor, end: Scalar, steps: int, base: float = 10.0, *, " TAEDA_OPTIONS
     ") -> Tensor",
     "",
     raw(logspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"logspace(start: Scalar, end: Tensor, steps: int, base: float = 10.0, *, " TAEDA_OPTIONS
     ") -> Tensor",
     "",
     raw(logspace_op),
     {.forms = kFactory, .vmap = vmap::loop}},
    {"eye(n: int, *, " TAEDA_OPTIONS ") -> Tensor",
     "A matrix with ones on the diagonal and zeros elsewhere.",
     raw(eye_op),
     {.forms = kFactory}},
    {"eye(n: int, m: int, *, " TAEDA_OPTIONS ") -> Tensor",
     "",
     raw(eye_rectangle_op),
     {.forms = kFactory}},
    {"tril(self: Tensor, diagonal: int = 0) -> Tensor",
     "The lower triangle of matrices: elements above the `diagonal`-th diagonal become 0.",
     raw(triangle_op<true>),
     {.backward = tril_backward, .forms = kPublic | kInplace | kOut, .vmap = vmap::leading(2)}},
    {"triu(self: Tensor, diagonal: int = 0) -> Tensor",
     "The upper triangle of matrices: elements below the `diagonal`-th diagonal become 0.",
     raw(triangle_op<false>),
     {.backward = triu_backward, .forms = kPublic | kInplace | kOut, .vmap = vmap::leading(2)}},
    {"tril_indices(row: int, col: int, offset: int = 0, *, " TAEDA_OPTIONS ") -> Tensor",
     "Row and column indices of the lower triangle of a `row` x `col` matrix.",
     raw(triangle_indices_op<true>),
     {.forms = kFunction}},
    {"triu_indices(row: int, col: int, offset: int = 0, *, " TAEDA_OPTIONS ") -> Tensor",
     "Row and column indices of the upper triangle of a `row` x `col` matrix.",
     raw(triangle_indices_op<false>),
     {.forms = kFunction}},
};

}  // namespace
}  // namespace taeda
