// Complex tensors: parts, conjugates, views as pairs of real numbers.
#include "autograd/backward.h"
#include "kernels/join.h"
#include "ops/pointwise/tensor.h"

namespace taeda {
namespace {

Tensor view_with(const Tensor& x, DimsRef sizes, DimsRef strides, int64_t offset, DType dtype) {
  Tensor t = from_storage(x.storage(), sizes, strides, offset, dtype);
  TensorImpl *p = t.impl(), *from = x.impl();
  p->flags = (p->flags & ~uint32_t(kInference)) | kIsView | (from->flags & kInference);
  p->own_version = from->own_version;
  p->base = from->base ? from->base : x.ref();
  p->no_grad_view = from->no_grad_view;
  return t;
}

Tensor view_as_real(const Tensor& self) {
  check(is_complex(self.dtype()), "view_as_real is only supported for complex tensors");
  Dims sizes(self.sizes()), strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return view_with(self, sizes, strides, self.offset() * 2, to_real(self.dtype()));
}
void view_as_real_backward(Backward& b) { b.set(0, op<"view_as_complex">(contiguous(b.grad()))); }

// Whether pairs of such numbers are complex ones.
bool has_complex(DType d) { return is_floating(d) && to_real(to_complex(d)) == d; }

Tensor view_as_complex(const Tensor& self) {
  check(has_complex(self.dtype()),
        "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
        "scalar type: ",
        self.dtype());
  check(self.dim() > 0, "Input tensor must have one or more dimensions");
  check(self.size(-1) == 2, "Tensor must have a last dimension of size 2");
  check(self.stride(-1) == 1, "Tensor must have a last dimension with stride 1");
  Dims sizes(self.sizes()), strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    check(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  check(self.offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  return view_with(self, sizes, strides, self.offset() / 2, to_complex(self.dtype()));
}
void view_as_complex_backward(Backward& b) { b.set(0, op<"view_as_real">(contiguous(b.grad()))); }

Tensor real_op(const Tensor& self) {
  return is_complex(self.dtype()) ? op<"select">(op<"view_as_real">(self), -1, 0) : self;
}
Tensor imag_op(const Tensor& self) {
  check(is_complex(self.dtype()), "imag is not implemented for tensors with non-complex dtypes.");
  return op<"select">(op<"view_as_real">(self), -1, 1);
}
Tensor conj_op(const Tensor& self) { return conj(self); }
Tensor resolve(const Tensor& self) { return self; }  // there are no lazy conjugates
Tensor positive_op(const Tensor& self) {
  check(self.dtype() != DType::Bool, "The `+` operator, on a bool tensor is not supported.");
  return self;
}

Value complex_op(Call& c) {
  const Tensor &re = std::get<Tensor>(c.args[0]), &im = std::get<Tensor>(c.args[1]);
  check(is_floating(re.dtype()) && re.dtype() == im.dtype(),
        "Expected both inputs to be floating point tensors of the same dtype, but got ", re.dtype(),
        " and ", im.dtype());
  const DType part = to_real(to_complex(re.dtype()));
  check(!c.out.defined() || c.out.dtype() == to_complex(part), "Expected object of scalar type ",
        to_complex(part), " but got scalar type ", c.out.defined() ? c.out.dtype() : part,
        " for argument 'out'");
  Tensor out = empty(broadcast_sizes(re.sizes(), im.sizes()), {to_complex(part), re.device()});
  if (!out.is_meta() && re.dtype() == part && same(re.sizes(), im.sizes()) && re.is_contiguous() &&
      im.is_contiguous()) {
    const size_t item = re.itemsize();
    const JoinPiece parts[] = {{re.data(), item}, {im.data(), item}};
    kernels<JoinKernels>(re.device()).join_rows(out.data(), parts, re.numel());
    return out;
  }
  Dims sizes(out.sizes()), strides(out.strides());
  for (int64_t& s : strides) s *= 2;
  copy_into(from_storage(out.storage(), sizes, strides, 0, part), re);
  if (out.numel()) copy_into(from_storage(out.storage(), sizes, strides, 1, part), im);
  return out;
}
void complex_backward(Backward& b) {
  const Tensor& g = b.grad();
  if (b.needs(0)) b.set(0, to(sum_to(op<"real">(g), b.sizes(0)), b.dtype(0)));
  if (b.needs(1)) b.set(1, to(sum_to(op<"imag">(g), b.sizes(1)), b.dtype(1)));
}
Tensor polar_op(const Tensor& size, const Tensor& angle) {
  return op<"complex">(size * op<"cos">(angle), size * op<"sin">(angle));
}

const Define kComplexOps[] = {
    {"view_as_real(self: Tensor) -> Tensor",
     "A complex tensor as real numbers: a last dimension of 2 holds real and imaginary parts. "
     "Shares memory.",
     kernel(view_as_real),
     {.backward = view_as_real_backward, .forms = kFunction, .view = true, .vmap = vmap::direct}},
    {"view_as_complex(self: Tensor) -> Tensor",
     "Pairs of real numbers in the last dimension as complex numbers. Shares memory.",
     kernel(view_as_complex),
     {.backward = view_as_complex_backward, .forms = kFunction, .view = true}},
    {"real(self: Tensor) -> Tensor",
     "The real part, sharing memory; `self` where it is real.",
     kernel(real_op),
     {.forms = kFunction, .composite = true}},
    {"imag(self: Tensor) -> Tensor",
     "The imaginary part of a complex tensor, sharing memory.",
     kernel(imag_op),
     {.forms = kFunction, .composite = true}},
    {"conj(self: Tensor) -> Tensor",
     "The complex conjugate; `self` where it is real.",
     kernel(conj_op),
     {.composite = true, .keeps_zero = true}},
    {"resolve_conj(self: Tensor) -> Tensor",
     "`self`: conjugation is done at once, never put off.",
     kernel(resolve),
     {.composite = true}},
    {"resolve_neg(self: Tensor) -> Tensor",
     "`self`: negation is done at once, never put off.",
     kernel(resolve),
     {.composite = true}},
    {"positive(self: Tensor) -> Tensor",
     "`self`, which may not be of bools.",
     kernel(positive_op),
     {.composite = true}},
    {"complex(real: Tensor, imag: Tensor) -> Tensor",
     "Complex numbers from their parts.",
     raw_kernel(complex_op),
     {.backward = complex_backward, .forms = kFunction | kOut, .vmap = vmap::elementwise}},
    {"polar(abs: Tensor, angle: Tensor) -> Tensor",
     "Complex numbers from absolute value and angle.",
     kernel(polar_op),
     {.forms = kFunction | kOut, .composite = true}},
};

}  // namespace
}  // namespace taeda
