#include "ops/pointwise/pointwise.h"

#include "base/device_runtime.h"
#include "ops/core/out_memory.h"
#include "ops/core/promotion.h"
#include "ops/pointwise/copy.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

using portable::kToFloat, portable::OpInfo, portable::saves_output, portable::no_inplace,
    portable::no_method, portable::no_out;

struct Types {
  DType compute, result;
};

[[noreturn, gnu::cold]] void unsupported(const PointwiseRow& row, DType d) {
  if (d == DType::Bool && row.no_bool) fail(row.no_bool);
  std::string_view name = row.name;
  name = name.substr(name.starts_with('_') ? 1 : 0);
  fail<NotImplemented>("\"", name.substr(0, name.find('(')), "\" not implemented for '", d, "'");
}

// The dtype to compute in for d: d itself if there is a loop, else a wider one. uint64 has no wider
// dtype, so only functors that give the same bits for signed integers support it.
DType computed_in(const PointwiseRow& row, DType d) {
  if (row.types().supported[static_cast<size_t>(d)]) return d;
  if (is_half(d) || is_float8(d)) return DType::Float32;
  if (d == DType::Complex32) return DType::Complex64;
  if (!is_storage_only(d)) return d;
  if (d == DType::UInt64 && !(row.flags & portable::wraps)) unsupported(row, d);
  return DType::Int64;
}

Types types_of(const PointwiseRow& row, const Operands& operands) {
  Promotion promotion;
  const auto in = operands.list();
  for (size_t i = row.types().bool_first ? 1 : 0; i < in.size(); ++i) {
    if (operands.promotes(i)) promotion.add(*in[i]);
    if (row.no_bool && in[i]->dtype() == DType::Bool && operands.promotes(i)) fail(row.no_bool);
  }
  DType common = promotion.result();
  if ((row.dtypes & kToFloat) && is_integral(common)) common = default_dtype();
  const DType compute = computed_in(row, common);
  const auto at = static_cast<size_t>(compute);
  if (!row.types().supported[at]) unsupported(row, common);
  const auto made = static_cast<DType>(row.types().result[at]);
  if (made == compute) return {compute, common};
  return {compute, made == to_real(compute) ? to_real(common) : made};
}

void check_devices(const PointwiseRow&, std::span<const Tensor* const> in, Device* device) {
  bool chosen = false;
  for (const Tensor* t : in) {
    const Device d = t->device();
    if (t->dim() == 0 && d.type == DeviceType::CPU && in.size() > 1)
      continue;  // CPU scalars fit any device
    check(!chosen || d == *device,
          "Expected all tensors to be on the same device, but found at least two devices, ",
          *device, " and ", d, "!");
    *device = d;
    chosen = true;
  }
}

// Checks that `out` can hold a result of this shape and dtype, and resizes it.
void prepare_out(const Call& call, DimsRef sizes, DType result) {
  const Tensor& out = call.out;
  check_out_dtype(call.op, out, result);
  if (call.op.inplace_form) {
    check(same(out.sizes(), sizes), "output with shape ", to_string(out.sizes()),
          " doesn't match the broadcast shape ", to_string(sizes));
  } else {
    resize_out(out, sizes);
  }
}

bool lifts(const Tensor& number, DType d) {  // a Python number that does not promote d
  const DType n = number.dtype();
  if (is_complex(n)) return is_complex(d);
  if (is_floating(n)) return is_inexact(d);
  return n == DType::Bool || d != DType::Bool;
}

// Whether a number that is cast to d has an imaginary part that d has no place for.
bool loses_part(const Tensor& number, DType d) {
  return is_complex(number.dtype()) && !is_complex(d);
}

// Contiguous values in the CPU's memory.
bool is_plain(const Tensor& t) {
  return t.is_contiguous() && !(t.flags() & (kMeta | kWrapped)) &&
         t.device().type == DeviceType::CPU;
}

// Fast path without a Plan: contiguous operands of equal dtype and sizes, or small ones with Python
// numbers. Returns false if it does not apply.
bool run_fast(const PointwiseRow& row, const Operands& operands, Call& call, Tensor* result) {
  const auto in = operands.list();
  const Tensor& a = *in[0];
  const DType d = a.dtype();
  if (!row.types().supported[static_cast<size_t>(d)] || !is_plain(a) || row.types().bool_first)
    return false;
  const int64_t n = a.numel();
  ContiguousInputs inputs;
  inputs.data[0] = a.data();
  for (size_t k = 1; k < in.size(); ++k) {
    const Tensor& t = *in[k];
    if (t.is_wrapped_number() && n <= kMostRepeated && a.dim() > 0 &&
        (lifts(t, d) || (!operands.promotes(k) && !loses_part(t, d)))) {
      inputs.repeated |= 1u << k;
      inputs.dtype[k] = t.dtype();
    } else if (t.dtype() != d || !is_plain(t) || !same(t.sizes(), a.sizes())) {
      return false;
    }
    inputs.data[k] = t.data();
  }
  if (n > 4096) return false;
  const auto made = static_cast<DType>(row.types().result[static_cast<size_t>(d)]);
  if (call.out.defined()) {
    if (!call.out.is(a) || made != d) return false;
    for (size_t k = 1; k < in.size(); ++k) {
      if (in[k]->storage() == a.storage()) return false;
    }
    *result = call.out;
  } else {
    *result = empty(a.sizes(), {made, Device{}});
  }
  PointwiseKernels::cpu.contiguous(row.functor, kValue, d, result->data(), inputs, n);
  return true;
}

// On the result's device. Numbers and zero-dim tensors of the CPU are moved there, unless it reads
// them where they are.
void run_plan(DimsRef sizes, std::span<const Tensor*> operands, const Functor& f, int part,
              DType compute) {
  const Device device = operands[0]->device();
  std::array<Tensor, Plan::kMaxOperands> moved;
  uint32_t host_numbers = 0;
  for (size_t k = 1; k < operands.size() && !is_host(device); ++k) {
    if (!is_host(operands[k]->device())) continue;
    if (device_runtime(device.type)->takes_host_numbers) host_numbers |= 1u << k;
    else operands[k] = &(moved[k] = raw_to(device, *operands[k]));
  }
  Plan plan(sizes, operands);
  plan.host_numbers = host_numbers;
  kernels<PointwiseKernels>(device).run(plan, f, part, compute);
}

}  // namespace

Tensor run_pointwise(const PointwiseRow& row, const Operands& operands, Call& call) {
  Tensor result;
  if (run_fast(row, operands, call, &result)) return result;
  const auto in = operands.list();
  Device device;
  check_devices(row, in, &device);
  if (row.types().bool_first) {
    check(in[0]->dtype() == DType::Bool || in[0]->dtype() == DType::UInt8,
          "where expected condition to be a boolean tensor, but got a tensor with dtype ",
          in[0]->dtype());
  }
  const Types types = types_of(row, operands);
  for (const Tensor* t : in) {
    if (t->is_wrapped_number() && loses_part(*t, types.compute))
      check_fits(t->item(), types.compute);
  }
  Dims sizes(in[0]->sizes());
  for (size_t k = 1; k < in.size(); ++k) {
    if (!same(sizes, in[k]->sizes())) sizes = broadcast_sizes(sizes, in[k]->sizes());
  }

  const bool given = call.out.defined();
  Tensor target;  // the loop's output
  if (given) {
    prepare_out(call, sizes, types.result);
    check(call.out.device() == device,
          "Expected all tensors to be on the same device, but found at least two devices, ",
          call.out.device(), " and ", device, "!");
    if (call.out.is_meta()) return call.out;
    check_no_internal_overlap(call.out);
    target = call.out;
    for (const Tensor* t : in) {
      if (overlap(call.out, *t) != Overlap::Partial) continue;
      if (call.op.inplace_form && shares_in_part(call.out, *t)) refuse_shared_memory(call.op);
      target = empty(sizes, {call.out.dtype(), device});
    }
  } else {
    const Dims strides = result_strides(sizes, in);
    target = empty_strided(sizes, strides, {types.result, device});
    if (target.is_meta()) return target;
  }

  std::array<const Tensor*, 5> all{&target};
  for (size_t k = 0; k < in.size(); ++k) all[k + 1] = in[k];
  run_plan(sizes, {all.data(), in.size() + 1}, row.functor, kValue, types.compute);
  if (given && !target.is(call.out)) copy_into(call.out, target);
  return given ? call.out : target;
}

Tensor run_pointwise(const PointwiseRow& row, Call& call, std::initializer_list<int> arguments) {
  Operands operands;
  for (int i : arguments) {
    const Value& v = call.args[static_cast<size_t>(i)];
    if (auto* t = std::get_if<Tensor>(&v)) operands.add(*t);
    else operands.add_cast(std::get<Scalar>(v));
  }
  return run_pointwise(row, operands, call);
}

// ---- derivatives ----

Derivative::Derivative(Backward& b, const PointwiseRow& row, std::span<const Source> from,
                       const Tensor& gradient)
    : g(gradient),
      b_(b),
      row_(row),
      from_(from) {
  symbolic_ = GradMode::enabled() || modes.always || (g.flags() & kOverride) ||
              !has_kernels<PointwiseKernels>(g.device());
  for (size_t i = 0; i < from.size(); ++i) {
    const Source& s = from[i];
    if (s.argument < 0) x[i] = Tensor(s.number);
    else if (!(row.flags >> i & 1)) continue;
    else if (b.has(s.argument)) x[i] = b.saved(s.argument) ? b.arg<Tensor>(s.argument) : Tensor();
    else x[i] = Tensor(b.arg<Scalar>(s.argument));
    if (x[i].defined() && (is_complex(x[i].dtype()) || (x[i].flags() & kOverride)))
      symbolic_ = true;
  }
  if (row.flags & saves_output) y = b.out();
  if (!is_floating(g.dtype()) || (y.defined() && is_complex(y.dtype()))) symbolic_ = true;
  if (!symbolic_ || (g.dtype() != DType::Float64 && g.dtype() != DType::Complex128)) return;
  // A formula of Python numbers alone would have the default dtype; keep double precision.
  for (Tensor& t : x) {
    if (t.defined() && t.is_wrapped_number() && t.dtype() == DType::Float64 && !t.is_meta())
      t = full(Dims{}, t.item(), {DType::Float64, g.device()});
  }
}

void Derivative::set(int k, Symbolic formula) {
  const int argument = from_[static_cast<size_t>(k)].argument;
  if (argument < 0 || !b_.needs(argument)) return;
  const Dims& sizes = b_.sizes(argument);
  const DType dtype = b_.dtype(argument);
  Tensor r;
  if (symbolic_) r = formula(*this);
  else r = fused(k, same(sizes, g.sizes()) && is_floating(dtype) ? dtype : g.dtype());
  give(argument, std::move(r));
}

void Derivative::pass(int k) {
  const int argument = from_[static_cast<size_t>(k)].argument;
  if (argument >= 0 && b_.needs(argument)) give(argument, g);
}

void Derivative::give(int argument, Tensor r) const {
  const DType dtype = b_.dtype(argument);
  r = sum_to(r, b_.sizes(argument));
  if (is_complex(r.dtype()) && !is_complex(dtype)) r = op<"real">(r);
  if (r.dtype() != dtype) r = to(r, dtype);
  b_.set(argument, r);
}

namespace {

bool is_one_number(const Tensor& t) {
  const DimsRef sizes = t.sizes(), strides = t.strides();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && strides[d] != 0) return false;
  }
  return true;
}

// Fast path without a Plan: small contiguous tensors of equal shape, on the CPU, that have the
// loop's dtypes. The first may be a broadcast scalar. Returns false if it does not apply.
bool run_same_shape(const Functor& f, int part, DType compute, std::span<const Tensor* const> in,
                    Tensor* result) {
  const Tensor& first = *in[0];
  const int64_t n = first.numel();
  if (n > 4096 || (first.flags() & kMeta) || first.device().type != DeviceType::CPU) return false;
  const bool repeated = !first.is_contiguous();
  if (repeated && (n > kMostRepeated || !is_one_number(first))) return false;
  ContiguousInputs inputs;
  for (size_t k = 0; k < in.size(); ++k) {
    const Tensor& t = *in[k];
    const bool itself = in[k] == in[0];  // also where a derivative does not read the operand
    if (t.dtype() != (f.types->bool_first && k == 1 ? DType::Bool : compute)) return false;
    if (!itself && (!t.is_contiguous() || !same(t.sizes(), first.sizes()))) return false;
    inputs.data[k] = t.data();
    if (itself && repeated) {
      inputs.repeated |= 1u << k;
      inputs.dtype[k] = t.dtype();
    }
  }
  *result = empty(first.sizes(), first.options());
  PointwiseKernels::cpu.contiguous(f, part, compute, result->data(), inputs, n);
  return true;
}

}  // namespace

Tensor Derivative::fused(int k, DType result) const {
  const DType compute = g.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
  const int part = kDerivative + k;
  std::array<const Tensor*, Plan::kMaxOperands> all;
  size_t n = 1;
  all[n++] = &g;
  for (int i = 0; i < row_.arity; ++i) {
    all[n++] = x[i].defined()
                   ? &x[i]
                   : &g;  // loops do not read operands that were not saved: pass anything
  }
  all[n++] = y.defined() ? &y : &g;
  const std::span<const Tensor* const> inputs = std::span(all).subspan(1, n - 1);
  if (Tensor r; result == compute && run_same_shape(row_.functor, part, compute, inputs, &r))
    return r;
  const Tensor out =
      empty_strided(g.sizes(), result_strides(g.sizes(), inputs), {result, g.device()});
  if (out.is_meta()) return out;
  all[0] = &out;
  run_plan(g.sizes(), {all.data(), n}, row_.functor, part, compute);
  return out;
}

// ---- registration ----

namespace {

Value run_row(Call& call) {
  const auto& row = *static_cast<const PointwiseRow*>(call.op.user);
  Operands operands;
  for (int i = 0; i < row.arity; ++i) {
    const Value& v = call.args[static_cast<size_t>(i)];
    if (auto* t = std::get_if<Tensor>(&v)) operands.add(*t);
    else operands.add_cast(std::get<Scalar>(v));
  }
  return run_pointwise(row, operands, call);
}

}  // namespace

void register_pointwise(const OpInfo& info, const PointwiseRow& row, BackwardFn backward) {
  std::string schema = info.schema;
  if (schema.find('(') == std::string::npos)
    schema += row.arity == 1 ? "(self: Tensor)" : "(self: Tensor, other: Tensor)";
  schema += " -> Tensor";
  Traits traits{.backward = backward, .module = info.module, .elementwise = true};
  // Only tensors need to be saved; Scalars always are.
  size_t at = 0;
  for (int i = 0; i < row.arity; ++i) {
    at = schema.find(": ", at) + 2;
    if ((info.flags >> i & 1) && schema.compare(at, 6, "Tensor") == 0) traits.saves |= saves_arg(i);
  }
  if (info.flags & portable::saved_for_others) traits.saved_for_others = traits.saves;
  if (info.flags & saves_output) traits.saves |= saves_out(0);
  traits.forms = kFunction | kMixed;  // zero-dim tensors fit any device: see check_devices
  if (!(info.flags & no_method)) traits.forms |= kMethod;
  if (!(info.flags & no_inplace)) traits.forms |= kInplace;
  if (!(info.flags & no_out)) traits.forms |= kOut;
  if (info.flags & portable::inplace_function) traits.forms |= kInplaceFunction;
  if (info.flags & portable::foreach) traits.forms |= kForeach;
  traits.keeps_zero = info.flags & portable::keeps_zero;
  if (info.flags & portable::numbers_anywhere) traits.numbers = Numbers::Anywhere;
  if (info.flags & portable::numbers_one_tensor) traits.numbers = Numbers::OneTensor;
  if (info.flags & portable::numbers_after_self) traits.numbers = Numbers::AfterSelf;
  if (info.flags & portable::float32_on_cuda) traits.autocast = kFloat32OnCuda;
  if (info.flags & portable::widest_on_cuda) traits.autocast = kWidestOnCuda;
  if (info.flags & portable::exact_out) traits.out_dtype = OutDtype::Exact;
  traits.old_orders = info.old_orders;
  if (!backward && row.types().result[static_cast<size_t>(DType::Float32)] ==
                       static_cast<uint8_t>(DType::Bool)) {
    traits.non_differentiable = 1;
  }
  define(schema.c_str(), info.doc, raw_kernel(run_row, true), traits, &row);
}

bool register_aliases(std::initializer_list<Alias> aliases) {
  for (const Alias& a : aliases) {
    const auto originals = overloads(a.of);  // a copy: defining adds to the table
    for (const Op* o : originals) {
      const std::string schema = a.name + o->signature.substr(o->name.size());
      Traits traits = o->traits;
      traits.forms &= ~(a.without | kForeach);
      if (schema.starts_with("__")) traits.forms = kMethod | kMixed;
      define(schema.c_str(), str("Another name of `", a.of, "`: ", o->doc).c_str(), o->kernel,
             traits, o->user);
    }
  }
  return true;
}

}  // namespace taeda
