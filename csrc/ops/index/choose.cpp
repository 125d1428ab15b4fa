// Membership and choice: isin, isreal, combinations, nonzero_static; and parts of numbers: frexp.
#include "kernels/frexp.h"
#include "kernels/index.h"
#include "kernels/sort.h"
#include "ops/core/half.h"
#include "ops/core/promotion.h"
#include "ops/core/shape_util.h"

namespace taeda {
namespace {

// ---- isin ----

Tensor isin(const Tensor& elements, const Tensor& tests, bool invert) {
  for (const Tensor* t : {&elements, &tests}) {
    check(t->dtype() != DType::Bool && !is_complex(t->dtype()),
          "Unsupported input type encountered for isin(): ", t->dtype());
  }
  Tensor found;
  Promotion promotion;
  promotion.add(elements);
  promotion.add(tests);
  const DType common = promotion.result(), d = is_half(common) ? DType::Float32 : common;
  if (tests.numel() == 0) {
    found = full(elements.sizes(), false, {DType::Bool, elements.device()});
  } else if (!is_storage_only(d) && !is_float8(d)) {
    const Device device =
        tests.is_meta() || elements.is_wrapped_number() ? tests.device() : elements.device();
    found = empty(elements.sizes(), {DType::Bool, device});
    if (!found.is_meta()) {
      const Tensor x = raw_to(device, prepared(elements, d)),
                   t = raw_to(device, prepared(tests, d));
      kernels<SearchKernels>(device).find_members(x.data(), x.numel(), t.data(), t.numel(), d,
                                                  found.data_as<uint8_t>());
    }
  } else {
    GradMode off(false);
    Tensor sorted = ops<"sort">(reshape(tests, Dims{-1}), -1, false, true)[0];
    Tensor place = op<"searchsorted">(sorted, contiguous(elements), false, false);
    place = op<"clamp_max">(place, Tensor(Scalar(tests.numel() - 1)));
    found = reshape(op<"index_select">(sorted, 0, reshape(place, Dims{-1})), elements.sizes()) ==
            elements;
  }
  return invert ? !found : found;
}
// `assume_unique` would allow a faster way, which is not needed here.
Tensor isin_tensors(const Tensor& elements, const Tensor& tests, [[maybe_unused]] bool unique,
                    bool invert) {
  return isin(elements, tests, invert);
}
Tensor isin_number(const Tensor& elements, Scalar test, [[maybe_unused]] bool unique, bool invert) {
  return isin(elements, Tensor(test), invert);
}
Tensor number_isin(Scalar element, const Tensor& tests, [[maybe_unused]] bool unique, bool invert) {
  return isin(Tensor(element), tests, invert);
}

Tensor isreal(const Tensor& x) {
  if (is_complex(x.dtype())) return op<"imag">(x) == Tensor(0);
  return full(x.sizes(), true, {DType::Bool, x.device()});
}

// ---- combinations ----

// The number of ways to choose r of n; INT64_MAX on overflow.
int64_t ways(int64_t n, int64_t r) {
  if (r > n) return 0;
  int64_t count = 1;
  for (int64_t i = 1; i <= std::min(r, n - r); ++i) {
    if (__builtin_mul_overflow(count, n - i + 1, &count)) return INT64_MAX;
    count /= i;
  }
  return count;
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  check(self.dim() == 1, "Expect a 1D vector, but got shape ", to_string(self.sizes()));
  check(r >= 0, "Expect a non-negative number, but got ", r);
  if (r == 0) return empty(Dims{0}, self.options());
  const int64_t n = self.numel();
  int64_t count = ways(n, r);
  if (with_replacement && n > 0) count = r > INT64_MAX - n ? INT64_MAX : ways(n + r - 1, r);
  Tensor positions = empty(Dims{count, r}, {DType::Int64, self.device()});
  if (!self.is_meta()) {
    kernels<IndexKernels>(self.device())
        .sequences(n, r, with_replacement, count, positions.data_as<int64_t>());
  }
  return reshape(op<"index_select">(self, 0, reshape(positions, Dims{-1})), Dims{count, r});
}

// ---- nonzero_static ----

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  check(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  Tensor out = full(Dims{size, self.dim()}, fill_value, {DType::Int64, self.device()});
  if (self.is_meta()) return out;
  Tensor found = op<"nonzero">(self);
  const int64_t n = std::min(size, found.size(0));
  if (n > 0 && self.dim() > 0) copy_into(raw_narrow(out, 0, 0, n), raw_narrow(found, 0, 0, n));
  return out;
}

// ---- frexp ----

TensorList frexp(const Tensor& self) {
  check(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes, but got ",
        self.dtype());
  const DType compute = compute_dtype(self.dtype(), "frexp");
  Tensor x = prepared(self, compute), mantissa = empty(self.sizes(), x.options()),
         exponent = empty(self.sizes(), {DType::Int32, self.device()});
  if (!self.is_meta()) {
    visit_floating(compute, "frexp", [&](auto tag) {
      using T = typename decltype(tag)::type;
      kernels<FrexpKernels<T>>(self.device())
          .frexp(x.numel(), x.data_as<T>(), mantissa.data_as<T>(), exponent.data_as<int32_t>());
    });
  }
  return {finished(mantissa, self.dtype()), exponent};
}
void frexp_backward(Backward& b) {
  Tensor power = op<"exp2">(to(b.out(1), b.grad().dtype()));
  b.set(0, b.grad() / power);
}

const Define kChooseOps[] = {
    {"isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = "
     "False) -> Tensor",
     "Whether each element is one of `test_elements` (`invert`: is none of them).",
     kernel(isin_tensors),
     {.forms = kFunction | kOut, .non_differentiable = 1, .numbers = Numbers::OneTensor}},
    {"isin(elements: Tensor, test_element: Scalar, *, assume_unique: bool = False, invert: bool = "
     "False) -> Tensor",
     "The same with one number to look for.",
     kernel(isin_number),
     {.forms = kFunction | kOut, .non_differentiable = 1, .numbers = Numbers::OneTensor}},
    {"isin(element: Scalar, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = "
     "False) -> Tensor",
     "The same for one number.",
     kernel(number_isin),
     {.forms = kFunction | kOut, .non_differentiable = 1, .numbers = Numbers::OneTensor}},
    {"isreal(self: Tensor) -> Tensor",
     "Whether the imaginary part of each element is zero.",
     kernel(isreal),
     {.non_differentiable = 1, .vmap = vmap::elementwise}},
    {"combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor",
     "All choices of `r` elements of a vector, one in each row, in the order of "
     "`itertools.combinations` (or `combinations_with_replacement`).",
     kernel(combinations),
     {.forms = kFunction, .composite = true}},
    {"nonzero_static(self: Tensor, *, size: int, fill_value: int = -1) -> Tensor",
     "The first `size` rows of `nonzero`, filled up with `fill_value`.",
     kernel(nonzero_static),
     {.forms = kPublic | kOut, .non_differentiable = 1}},
    {"frexp(self: Tensor) -> (mantissa: Tensor, exponent: Tensor)",
     "Mantissas of absolute value in [0.5, 1) and powers of two (int32) whose product the elements "
     "are.",
     kernel(frexp),
     {.backward = frexp_backward,
      .saves = saves_out(1),
      .forms = kPublic | kOut,
      .non_differentiable = 2,
      .vmap = vmap::elementwise,
      .out_memory = {.same_or_disjoint = 0b1, .results = 0b1}}},
};

}  // namespace
}  // namespace taeda
