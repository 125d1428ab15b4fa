// Moving values: clone, contiguous, copy_, fill, conversions of dtype, device and memory format.
#include "ops/pointwise/copy.h"

#include <cmath>
#include <limits>

#include "autograd/backward.h"
#include "base/device_runtime.h"
#include "base/warn.h"
#include "kernels/pointwise.h"
#include "tensor/plan.h"

namespace taeda {

namespace {

// As copy_into, of one element in the CPU's memory: an argument of the device's kernel.
void copy_number(const Tensor& dst, const Tensor& src) {
  Tensor number = src;
  if (src.dtype() != dst.dtype()) copy_into(number = empty(Dims{}, {dst.dtype(), Device{}}), src);
  const Tensor* operands[] = {&dst, &number};
  Plan plan(dst.sizes(), operands);
  plan.host_numbers = 0b10;
  kernels<PointwiseKernels>(dst.device()).copy(plan);
}

// As copy_into, from another device: bytes first, then what is left to do on the target. What the
// host would have to do after a copy that it does not wait for, the device does before.
void copy_across(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (src.device().type == DeviceType::CPU && src.dim() == 0 &&
      device_runtime(dst.device().type)->takes_host_numbers)
    return copy_number(dst, src);
  Tensor from = src;
  const bool convert = non_blocking && is_host(dst.device()) && src.dtype() != dst.dtype() &&
                       has_kernels<PointwiseKernels>(src.device());
  if (convert || !src.is_contiguous()) {
    const DType dtype = convert ? dst.dtype() : src.dtype();
    copy_into(from = empty(src.sizes(), {dtype, src.device()}), src);
  }
  const bool directly =
      dst.dtype() == from.dtype() && dst.is_contiguous() && same(dst.sizes(), src.sizes());
  const Tensor to = directly ? dst : empty(src.sizes(), {from.dtype(), dst.device()});
  copy_memory(to.data(), to.device(), from.data(), from.device(), from.nbytes(),
              non_blocking && (directly || !is_host(dst.device())));
  if (!directly) copy_into(dst, to);
}

// As copy_into, on a device without kernels for it: by way of the whole memory of both.
void copy_by_host(const Tensor& dst, const Tensor& src) {
  const auto host_view = [](const Tensor& t) {
    const Ref<Storage>& s = t.storage();
    Ref<Storage> copy = Storage::allocate(s->nbytes, Device{});
    copy_memory(copy->data, {}, s->data, s->device, s->nbytes);
    return from_storage(std::move(copy), t.sizes(), t.strides(), t.offset(), t.dtype());
  };
  const Tensor to = host_view(dst);
  copy_into(to, host_view(src));
  const Ref<Storage>& s = dst.storage();
  copy_memory(s->data, s->device, to.storage()->data, {}, s->nbytes);
}

}  // namespace

void copy_into(const Tensor& dst, const Tensor& src, bool non_blocking) {
  if (dst.is_placeholder() || src.is_placeholder()) {  // which is up to its class
    const GradMode off(false);
    op<"copy_">(dst, src, non_blocking);
    return;
  }
  if (dst.is(src) || dst.is_meta() || src.is_meta() || dst.numel() == 0) return;
  if (((dst.flags() | src.flags()) & kOffHost) != 0) {
    if (dst.device() != src.device()) return copy_across(dst, src, non_blocking);
    if (!has_kernels<PointwiseKernels>(dst.device())) return copy_by_host(dst, src);
  }
  if (dst.dtype() == src.dtype() && dst.is_contiguous() && src.is_contiguous() &&
      dst.numel() == src.numel()) {
    const auto bytes = static_cast<int64_t>(dst.nbytes());
    if (!(dst.storage() == src.storage())) {
      kernels<PointwiseKernels>(dst.device()).copy_bytes(dst.data(), src.data(), bytes);
      return;
    }
  }
  check(same(broadcast_sizes(dst.sizes(), src.sizes()), dst.sizes()),
        "The expanded size of the tensor ", to_string(dst.sizes()),
        " cannot hold the values of a tensor of sizes ", to_string(src.sizes()));
  Tensor from = src;
  if (const Overlap o = overlap(dst, src); o == Overlap::Same) {
    return;
  } else if (o == Overlap::Partial) {
    from = empty(src.sizes(), src.options());
    copy_into(from, src);
  }
  const Tensor* operands[] = {&dst, &from};
  kernels<PointwiseKernels>(dst.device()).copy(Plan(dst.sizes(), operands));
}

Tensor raw_to(Device device, const Tensor& t) {
  if (!t.defined() || t.device() == with_index(device)) return t;
  const Tensor r = is_dense_nonoverlapping(t.sizes(), t.strides())
                       ? empty_strided(t.sizes(), t.strides(), {t.dtype(), device})
                       : empty(t.sizes(), {t.dtype(), device});
  copy_into(r, t);
  return r;
}

Tensor empty_in(const Tensor& x, DType dtype, Device device, MemoryFormat format) {
  if (format == MemoryFormat::Preserve) {
    if (x.is_contiguous() || !is_dense_nonoverlapping(x.sizes(), x.strides())) {
      return empty_strided(x.sizes(), result_strides(x.sizes(), std::array{&x}), {dtype, device});
    }
    return empty_strided(x.sizes(), x.strides(), {dtype, device});
  }
  if (format == MemoryFormat::Contiguous) return empty(x.sizes(), {dtype, device});
  const size_t want = format == MemoryFormat::ChannelsLast ? 4 : 5;
  check(x.sizes().size() == want, "required rank ", want, " tensor to use channels_last",
        want == 5 ? "_3d" : "", " format");
  return empty_strided(x.sizes(), channels_last_strides(x.sizes()), {dtype, device});
}

Tensor pinned_copy(const Tensor& x) {
  check(is_host(x.device()), "cannot pin a tensor on device ", to_string(x.device()),
        ": only dense CPU tensors can be pinned");
  const PinnedScope pinned;
  return clone(x);
}
bool is_pinned(const Tensor& x) {
  const PinnedMemory* memory = pinned_memory();
  return memory && is_host(x.device()) && !x.is_placeholder() && x.storage()->nbytes > 0 &&
         memory->is_pinned(x.storage()->data);
}

namespace {

template <class T> bool in_range(Scalar value) {
  using L = std::numeric_limits<T>;
  if (value.is_integral()) {
    const int64_t v = value.to_int();
    return v <= int64_t(L::max()) && v >= (L::is_signed ? int64_t(L::min()) : -int64_t(L::max()));
  }
  const double v = value.to<cdouble>().real();
  return v >= static_cast<double>(L::min()) && v <= static_cast<double>(L::max());
}

bool in_float_range(double v, double max) { return !std::isfinite(v) || std::abs(v) <= max; }

bool fits(Scalar value, DType dtype) {
  const cdouble v = value.to<cdouble>();
  if (dtype == DType::Bool) return true;
  if (v.imag() != 0 && !is_complex(dtype)) return false;
  switch (dtype) {
    case DType::UInt8: return in_range<uint8_t>(value);
    case DType::Int8: return in_range<int8_t>(value);
    case DType::Int16: return in_range<int16_t>(value);
    case DType::Int32: return in_range<int32_t>(value);
    case DType::Int64: return in_range<int64_t>(value);
    case DType::UInt16: return in_range<uint16_t>(value);
    case DType::UInt32: return in_range<uint32_t>(value);
    case DType::UInt64: return value.is_integral() || std::abs(v.real()) <= 0x1p64;
    case DType::Float64:
    case DType::Complex128: return true;
    case DType::Float16:
    case DType::Complex32:
      return in_float_range(v.real(), 65504) && in_float_range(v.imag(), 65504);
    default:
      return in_float_range(v.real(), std::numeric_limits<float>::max()) &&
             in_float_range(v.imag(), std::numeric_limits<float>::max());
  }
}

}  // namespace

void check_fits(Scalar value, DType dtype) {
  if (fits(value, dtype)) return;
  const cdouble v = value.to<cdouble>();
  const std::string imaginary = v.imag() == 0 ? std::string() : str(" + ", v.imag(), "j");
  fail("value cannot be converted to type ", name(dtype), " without overflow: ", v.real(),
       imaginary);
}

void fill_with(const Tensor& t, Scalar value) {
  check_fits(value, t.dtype());
  if (t.is_meta() || t.numel() == 0) return;
  if (!t.is_off_host() && t.is_contiguous() && t.nbytes() <= (1 << 20) && value.is_integral() &&
      value.to_int() == 0) {
    kernels<PointwiseKernels>(t.device()).clear(t.data(), static_cast<int64_t>(t.nbytes()));
  } else {
    copy_into(t, Tensor(value));
  }
}

namespace {

void warn_of_parts(DType from, DType to) {
  if (!is_complex(from) || is_complex(to) || to == DType::Bool) return;
  static WarnOnce warn_of_loss("Casting complex values to real discards the imaginary part");
  warn_of_loss();
}

bool keeps(const Tensor& x, MemoryFormat f) {
  return f == MemoryFormat::Preserve || x.memory_format() == f;
}

Tensor clone_op(const Tensor& self, std::optional<MemoryFormat> format) {
  Tensor r = empty_in(self, self.dtype(), self.device(), format.value_or(MemoryFormat::Preserve));
  copy_into(r, self);
  return r;
}
void clone_backward(Backward& b) { b.set(0, b.grad()); }

Tensor contiguous_op(const Tensor& self, MemoryFormat format) {
  check(format != MemoryFormat::Preserve,
        "preserve memory format is unsupported by the contiguous operator");
  if (self.is_contiguous(format)) return self;
  return op<"clone">(self, format);
}

Tensor to_copy_op(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                  std::optional<MemoryFormat> format, bool non_blocking) {
  const Device target = device.value_or(self.device());
  require_available(target);
  check<NotImplemented>(!self.is_meta() || target.type == DeviceType::Meta,
                        "Cannot copy out of meta tensor; no data!");
  Tensor r;
  {
    const PinnedScope pinned(non_blocking && self.is_off_host() && is_host(target) &&
                             device_runtime(self.device().type)->pinned);
    r = empty_in(self, dtype.value_or(self.dtype()), target,
                 format.value_or(MemoryFormat::Preserve));
  }
  warn_of_parts(self.dtype(), r.dtype());
  copy_into(r, self, non_blocking);
  return r;
}
void to_copy_backward(Backward& b) {
  Tensor g = b.grad();
  const Options o = b.options(0);
  if (is_complex(g.dtype()) && !is_complex(o.dtype)) g = op<"real">(g);
  b.set(0, op<"_to_copy">(g, o.dtype, o.device));
}

Tensor convert(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
               bool non_blocking, bool copy, std::optional<MemoryFormat> format) {
  const DType d = dtype.value_or(self.dtype());
  Device to = device.value_or(self.device());
  const bool same_device =
      to.type == self.device().type && (to.index < 0 || to.index == self.device().index);
  if (!copy && d == self.dtype() && same_device &&
      keeps(self, format.value_or(MemoryFormat::Preserve)))
    return self;
  return op<"_to_copy">(self, dtype, device, format, non_blocking);
}

Tensor to_dtype(const Tensor& self, DType dtype, bool non_blocking, bool copy,
                std::optional<MemoryFormat> format) {
  return convert(self, dtype, {}, non_blocking, copy, format);
}
Tensor to_device(const Tensor& self, std::optional<Device> device, std::optional<DType> dtype,
                 bool non_blocking, bool copy, std::optional<MemoryFormat> format) {
  return convert(self, dtype, device, non_blocking, copy, format);
}
Tensor to_other(const Tensor& self, const Tensor& other, bool non_blocking, bool copy,
                std::optional<MemoryFormat> format) {
  return convert(self, other.dtype(), other.device(), non_blocking, copy, format);
}
Tensor type_as(const Tensor& self, const Tensor& other) {
  return convert(self, other.dtype(), other.device(), false, false, {});
}
Tensor cpu_op(const Tensor& self, std::optional<MemoryFormat> format) {
  return convert(self, {}, Device{DeviceType::CPU}, false, false, format);
}

Tensor copy_op(const Tensor& self, const Tensor& src, bool non_blocking) {
  check(same(broadcast_sizes(self.sizes(), src.sizes()), self.sizes()), "output with shape ",
        to_string(self.sizes()), " doesn't match the broadcast shape ",
        to_string(broadcast_sizes(self.sizes(), src.sizes())));
  check<NotImplemented>(!src.is_meta() || self.is_meta(),
                        "Cannot copy out of meta tensor; no data!");
  check_no_internal_overlap(self);
  warn_of_parts(src.dtype(), self.dtype());
  copy_into(self, src, non_blocking);
  return self;
}
void copy_backward(Backward& b) {
  const Tensor& g = b.grad();
  if (b.needs(0)) b.set(0, zeros_like(g));
  if (b.needs(1)) {
    Tensor s = sum_to(g, b.sizes(1));
    if (is_complex(s.dtype()) && !is_complex(b.dtype(1))) s = op<"real">(s);
    b.set(1, to(s, b.dtype(1)));
  }
}

// fill(self, value): in place it writes self, else a new tensor like it.
Tensor fill_in_place(const Tensor& self, const Tensor& value) {
  check(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
        value.dim(), " dimensions.");
  check<NotImplemented>(!value.is_meta() || self.is_meta(),
                        "fill_(): a value on the meta device cannot be read");
  if (value.is_wrapped_number()) check_fits(value.item(), self.dtype());
  else warn_of_parts(value.dtype(), self.dtype());
  check_no_internal_overlap(self);
  copy_into(self, value);
  return self;
}
Tensor fill_op(const Tensor& self, const Tensor& value) {
  return fill_in_place(empty_like(self), value);
}
void fill_backward(Backward& b) {
  if (b.needs(0)) b.set(0, zeros_like(b.grad()));
  if (b.needs(1)) b.set(1, to(op<"sum">(b.grad()), b.dtype(1)));
}

Tensor zero_op(const Tensor& self) {
  fill_with(self, 0);
  return self;
}
void zero_backward(Backward& b) { b.set(0, zeros_like(b.grad())); }

Tensor detach(const Tensor& self) { return raw_alias(self); }
Scalar local_scalar_dense(const Tensor& self) { return self.item(); }

// float(), double(), ...: conversions by name.
template <DType D> Tensor as_dtype(const Tensor& self, std::optional<MemoryFormat> format) {
  return convert(self, D, {}, false, false, format);
}

const Define kCopyOps[] = {
    {"clone(self: Tensor, *, memory_format: memory_format? = None) -> Tensor",
     "A copy with its own memory. The layout stays as it is unless `memory_format` says otherwise.",
     kernel(clone_op),
     {.backward = clone_backward, .vmap = vmap::direct}},
    {"contiguous(self: Tensor, *, memory_format: memory_format = contiguous_format) -> Tensor",
     "The same values laid out one after another: `self` where they are already, else a copy.",
     kernel(contiguous_op),
     {.forms = kMethod, .composite = true}},
    {"_to_copy(self: Tensor, *, dtype: dtype? = None, device: device? = None, memory_format: "
     "memory_format? = None, non_blocking: bool = False) -> Tensor",
     "A copy with another dtype, device or layout.",
     kernel(to_copy_op),
     {.backward = to_copy_backward, .vmap = vmap::direct}},
    {"to(self: Tensor, dtype: dtype, non_blocking: bool = False, copy: bool = False, *, "
     "memory_format: memory_format? "
     "= None) -> Tensor",
     "`self` converted to a dtype, a device, or what another tensor has of both; `self` where "
     "nothing changes, unless "
     "`copy` asks for a copy.",
     kernel(to_dtype),
     {.forms = kMethod, .composite = true}},
    {"to(self: Tensor, device: device? = None, dtype: dtype? = None, non_blocking: bool = False, "
     "copy: bool = False, "
     "*, memory_format: memory_format? = None) -> Tensor",
     "",
     kernel(to_device),
     {.forms = kMethod, .composite = true}},
    {"to(self: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False, *, "
     "memory_format: "
     "memory_format? = None) -> Tensor",
     "",
     kernel(to_other),
     {.forms = kMethod, .composite = true}},
    {"type_as(self: Tensor, other: Tensor) -> Tensor",
     "`self` with the dtype and device of `other`.",
     kernel(type_as),
     {.forms = kMethod, .composite = true}},
    {"cpu(self: Tensor, memory_format: memory_format? = None) -> Tensor",
     "`self` in the CPU's memory.",
     kernel(cpu_op),
     {.forms = kMethod, .composite = true}},
    {"copy_(self!: Tensor, other: Tensor, non_blocking: bool = False) -> Tensor",
     "Writes the values of `other` (converted and broadcast), or a number, into `self`.",
     kernel(copy_op),
     {.backward = copy_backward,
      .forms = kMethod | kMixed,
      .vmap = vmap::elementwise,
      .numbers = Numbers::AfterSelf}},
    {"fill(self: Tensor, value: Tensor) -> Tensor",
     "A tensor like `self` with `value` everywhere.",
     kernel(fill_op),
     {.backward = fill_backward, .forms = kFunction | kMixed, .numbers = Numbers::Anywhere}},
    {"fill_(self!: Tensor, value: Tensor) -> Tensor",
     "Sets every element to `value`.",
     kernel(fill_in_place),
     {.backward = fill_backward,
      .forms = kMethod | kFunction | kMixed,
      .numbers = Numbers::Anywhere}},
    {"zero_(self!: Tensor) -> Tensor",
     "Sets every element to 0.",
     kernel(zero_op),
     {.backward = zero_backward, .forms = kMethod | kFunction, .vmap = vmap::direct}},
    {"detach(self: Tensor) -> Tensor",
     "The same memory without a history: no gradient flows through it.",
     kernel(detach),
     {.non_differentiable = 1, .vmap = vmap::direct}},
    {"_local_scalar_dense(self: Tensor) -> Scalar",
     "The one element as a Python number: what `item` asks a class with __torch_dispatch__ for.",
     kernel(local_scalar_dense),
     {.forms = 0}},
};

template <DType D> bool define_conversion(const char* name) {
  define((std::string(name) + "(self: Tensor, memory_format: memory_format? = None) -> Tensor")
             .c_str(),
         ("`self` converted to " + std::string(taeda::name(D)) + ".").c_str(), kernel(as_dtype<D>),
         {.forms = kMethod, .composite = true});
  return true;
}
const bool conversions[] = {
    define_conversion<DType::Float32>("float"),    define_conversion<DType::Float64>("double"),
    define_conversion<DType::Float16>("half"),     define_conversion<DType::BFloat16>("bfloat16"),
    define_conversion<DType::Bool>("bool"),        define_conversion<DType::UInt8>("byte"),
    define_conversion<DType::Int8>("char"),        define_conversion<DType::Int16>("short"),
    define_conversion<DType::Int32>("int"),        define_conversion<DType::Int64>("long"),
    define_conversion<DType::Complex64>("cfloat"), define_conversion<DType::Complex128>("cdouble"),
    define_conversion<DType::Complex32>("chalf"),
};

}  // namespace
}  // namespace taeda
