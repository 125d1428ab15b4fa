// The dispatcher ("the door"): every op call passes here. One test of one word of flags, then the
// kernel.
#include <algorithm>
#include <array>
#include <bit>

#include "ops/core/op.h"
#include "ops/core/out_memory.h"
#include "ops/core/tensor_ops.h"
#include "tensor/dispatched.h"
#include "tensor/inference.h"
#include "tensor/plan.h"

namespace taeda {

TAEDA_FAST_TLS thread_local constinit Modes modes{.watched = kRequiresGrad | kIsView | kOverride |
                                                             kInference};

namespace {

constexpr size_t kLayers = 8;
std::array<Layer, kLayers> g_layers{};

uint32_t argument_flags(std::span<const Value> args) {
  uint32_t flags = 0;
  for (const Value& v : args) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      flags |= t->flags();
    } else if (auto* l = std::get_if<TensorList>(&v)) {
      for (const Tensor& t : *l) flags |= t.defined() ? t.flags() : 0;
    }
  }
  return flags;
}

// An op's tensors must be on one device. Kernels rely on it: a meta tensor has no memory to read.
// (Composite ops are checked in the ops that they call; Python numbers fit any device.)
[[gnu::noinline, gnu::cold]] void check_devices(const Call& c) {
  check_memory(c);
  if (c.op.traits.composite || (c.op.traits.forms & kMixed)) return;
  const Tensor* first = nullptr;
  auto look = [&](const Tensor& t) {
    if (!t.defined() || (t.flags() & kWrapped)) return;
    if (!first) first = &t;
    check(t.device() == first->device(), c.op.name,
          "(): Expected all tensors to be on the same device, but found at least two devices, ",
          first->device(), " and ", t.device(), "!");
  };
  for (const Value& v : c.args) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    else if (auto* list = std::get_if<TensorList>(&v))
      std::for_each(list->begin(), list->end(), look);
  }
  look(c.out);
}

// A view made under no_grad must not be changed in place later, when gradients are recorded: the
// base's history would miss the change.
void mark_views(const Value& result) {
  auto mark = [](const Tensor& t) {
    if (t.defined() && t.impl()->base) t.impl()->no_grad_view = true;
  };
  if (auto* t = std::get_if<Tensor>(&result)) mark(*t);
  else if (auto* list = std::get_if<TensorList>(&result))
    std::for_each(list->begin(), list->end(), mark);
}

// A tensor made in inference mode must not be changed outside it.
void check_not_inference(const Call& c) {
  auto check_one = [](const Tensor& t) {
    check(!t.defined() || !(t.flags() & kInference), kInferenceChange);
  };
  check_one(c.out);
  for (size_t i = 0; i < c.op.args.size(); ++i) {
    if (!c.op.args[i].mutated) continue;
    if (auto* t = std::get_if<Tensor>(&c.args[i])) check_one(*t);
    else if (auto* l = std::get_if<TensorList>(&c.args[i]))
      std::for_each(l->begin(), l->end(), check_one);
  }
}

// The tensor in this memory format.
Tensor laid_out(const Tensor& t, MemoryFormat format) {
  const Dims strides = channels_last_strides(t.sizes());
  if (same(t.strides(), strides) || t.is_placeholder()) return t;
  if (t.is_contiguous(format))  // sizes of 1 alone: only the strides change
    return from_storage(t.storage(), t.sizes(), strides, t.offset(), t.dtype());
  Tensor r = empty_strided(t.sizes(), strides, t.options());
  if (!t.is_meta()) copy_into(r, t);
  return r;
}

// Lays results of as many dimensions out in channels_last where one of the arguments that the op
// names is. Not inlined: run_kernel would save more registers for every op.
[[gnu::noinline]] void follow_format(const Call& c, Value& result) {
  for (size_t i = 0; i < c.args.size(); ++i) {
    const auto* from = std::get_if<Tensor>(&c.args[i]);
    if ((c.op.traits.format_of >> i & 1) == 0 || !from) continue;
    const MemoryFormat format = from->memory_format();
    if (format == MemoryFormat::Contiguous) continue;
    const auto follow = [&](Tensor& t) {
      if (t.defined() && t.dim() == from->dim()) t = laid_out(t, format);
    };
    if (auto* t = std::get_if<Tensor>(&result)) follow(*t);
    else if (auto* list = std::get_if<TensorList>(&result))
      std::for_each(list->begin(), list->end(), follow);
    return;
  }
}

Value run_kernel(Call& c) {
  const Op& op = c.op;
  if (op.inplace_form && !c.out.defined()) {
    c.out = std::get<Tensor>(c.args[0]);
  } else if (c.out.defined()) {
    check_no_internal_overlap(c.out);
    check_out_memory(op, c.args, c.out);
  }
  Value result = op.kernel.run(op.kernel.fn, c);
  if (c.out.defined()) {
    if (!op.kernel.writes_out) {
      const Tensor& computed = std::get<Tensor>(result);
      if (!op.inplace_form) check_resized_out(op, c.args, c.out, computed);
      result = write_out(op, c.out, computed);
    }
    c.out.bump_version();
  } else if (op.traits.format_of != 0) {
    follow_format(c, result);
  } else if (op.mutated >= 0 && !op.traits.composite) {  // composites change it by other ops
    const Value& target = c.args[static_cast<size_t>(op.mutated)];
    if (auto* t = std::get_if<Tensor>(&target)) {
      t->bump_version();
    } else if (auto* list = std::get_if<TensorList>(&target)) {
      for (const Tensor& item : *list) item.bump_version();
    }
  }
  if (op.traits.view && !modes.grad) mark_views(result);
  return result;
}

}  // namespace

void check_memory(const Call& c) {
  const auto look = [&](const Tensor& t) {
    check(!t.defined() || !t.is_placeholder(), c.op.name, "(): ", kPlaceholderText);
  };
  look(c.out);
  for (const Value& v : c.args) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    else if (auto* list = std::get_if<TensorList>(&v))
      std::for_each(list->begin(), list->end(), look);
  }
}

void set_layer(LayerBit bit, Layer layer) {
  g_layers[static_cast<size_t>(std::countr_zero<uint32_t>(bit))] = layer;
}

Value call_inner(Call& c, uint32_t layers) {
  if (!layers) return run_kernel(c);
  auto index = static_cast<size_t>(std::countr_zero(layers));
  return g_layers[index](c, layers & (layers - 1));
}

Value call(const Op& op, std::span<Value> args, Tensor out) {
  return call(op, args, std::move(out), argument_flags(args));
}

Value call(const Op& op, std::span<Value> args, Tensor out, uint32_t flags) {
  Call c{op, args, std::move(out)};
  if (c.out.defined()) flags |= c.out.flags();
  uint32_t seen = flags & (modes.watched | kPlaceFlags | kDispatch), layers = modes.always;
  if (!(seen | layers)) [[likely]]
    return run_kernel(c);
  if (seen & kDispatch) {
    layers |= kDispatchLayer;
  } else if (seen & kPlaceFlags) {
    check_devices(c);
    if (seen & kOffHost) layers |= kDeviceLayer;
  }
  if (seen & kInference) check_not_inference(c);
  if (seen & kOverride) layers |= kOverrideLayer;
  if (seen & (kRequiresGrad | kIsView)) layers |= kAutogradLayer;
  c.grad = modes.grad;
  return call_inner(c, layers);
}

Value call_padded(const Op& op, std::span<Value> given) {
  if (given.size() == op.args.size()) return call(op, given);
  Values all(op.args.size());
  for (size_t i = 0; i < op.args.size(); ++i) {
    if (i < given.size()) move_value(&all[i], given[i]);
    else construct_value(&all[i], op.args[i].fallback);
  }
  return call(op, all.span());
}

// The class of the one or the other copies.
static Tensor write_by_class(const Op& op, const Tensor& out, const Tensor& result) {
  check(same(out.sizes(), result.sizes()), op.name, "(): the result has the shape ",
        to_string(result.sizes()), ", but out, or what is changed in place, has ",
        to_string(out.sizes()), " and its class has __torch_dispatch__: it cannot be resized");
  copy_into(out, result);
  return out;
}

static bool takes_cast(const Traits& t, DType result, DType out) {
  switch (t.out_dtype) {
    case OutDtype::ByKind: return t.elementwise;
    case OutDtype::Castable: return true;
    case OutDtype::SameKind: return is_complex(result) == is_complex(out);
    case OutDtype::Exact: break;
  }
  return false;
}

void check_out_dtype(const Op& op, const Tensor& out, DType result) {
  check(can_cast(result, out.dtype()), "result type ", result,
        " can't be cast to the desired output type ", out.dtype());
  check(op.inplace_form || out.dtype() == result || takes_cast(op.traits, result, out.dtype()),
        op.name, "(): expected out tensor to have dtype ", name(result), ", but got ",
        name(out.dtype()));
}

Tensor write_out(const Op& op, const Tensor& out, const Tensor& result) {
  if (out.is(result)) return out;
  if (out.is_placeholder() || result.is_placeholder()) return write_by_class(op, out, result);
  check_out_dtype(op, out, result.dtype());
  if (op.inplace_form) {
    check(same(out.sizes(), result.sizes()), "output with shape ", to_string(out.sizes()),
          " doesn't match the broadcast shape ", to_string(result.sizes()));
  } else {
    check(out.device() == result.device(), op.name, "(): expected out tensor on device ",
          result.device(), ", but got ", out.device());
    // As in PyTorch, what draws random numbers resizes without a word.
    const bool draws = std::any_of(op.args.begin(), op.args.end(),
                                   [](const Arg& a) { return a.kind == ArgKind::Generator; });
    if (draws) resize(out, result.sizes());
    else resize_out(out, result.sizes());
  }
  if (!out.is_meta()) copy_into(out, result);
  return out;
}

}  // namespace taeda
