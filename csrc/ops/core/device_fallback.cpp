#include "ops/core/device_fallback.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/device_runtime.h"
#include "base/warn.h"
#include "kernels/pointwise.h"
#include "ops/core/tensor_ops.h"
#include "ops/random/generator.h"

namespace taeda {
namespace {

// Composite ops are recorded in what they call, and so is the way to and from the CPU.
Tensor copy_on(Device device, const Tensor& t, bool recorded) {
  if (!t.defined() || t.device() == with_index(device)) return t;
  if (recorded) return op<"_to_copy">(t, std::optional<DType>(), std::optional(device));
  const Tensor r = raw_to(device, t);
  if (t.flags() & kRequiresGrad && !t.impl()->autograd) r.impl()->flags |= kRequiresGrad;
  return r;
}

// A call's tensors in the CPU's memory, and the way back.
class HostCall {
 public:
  explicit HostCall(const Call& c) : c_(c), args_(c.args.size()) {
    for (size_t i = 0; i < c.args.size(); ++i) args_[i] = host_value(c.args[i]);
    if (c.out.defined()) out_ = host(c.out);
    for (size_t i = 0; i < c.args.size(); ++i) {
      if (c.op.args[i].kind == ArgKind::Generator)
        args_[i] = host_generator(Unpack<std::optional<Generator>>::get(c.args[i]), target_);
    }
  }

  Value run() {
    Call on_host{c_.op, args_.span(), out_, c_.grad};
    Value result = c_.op.factory.run ? make(on_host) : call_inner(on_host, 0);
    write_back();
    if (auto* t = std::get_if<Tensor>(&result)) return back(*t);
    if (auto* list = std::get_if<TensorList>(&result)) {
      for (Tensor& t : *list) t = back(t);
    }
    return result;
  }

 private:
  Tensor host(const Tensor& t) {
    if (!t.defined() || !t.is_off_host()) return t;
    for (const auto& [original, copy] : copies_) {
      if (original.is(t)) return copy;
    }
    if (!named_) target_ = t.device();
    return copies_.emplace_back(t, copy_on({}, t, recorded_)).second;
  }

  Value host_value(const Value& v) {
    if (auto* t = std::get_if<Tensor>(&v)) return host(*t);
    if (auto* list = std::get_if<TensorList>(&v)) {
      TensorList r;
      for (const Tensor& t : *list) r.push_back(host(t));
      return r;
    }
    if (auto* device = std::get_if<Device>(&v)) {
      named_ = true;
      target_ = with_index(*device);
      if (device_runtime(device->type)) return Device{};
    }
    return v;
  }

  // What the op has changed in place: the copies began with the version 0. What a factory makes is
  // counted by the dispatcher later.
  void write_back() {
    for (const auto& [original, copy] : copies_) {
      const bool made = c_.op.factory.run && out_.defined() && copy.is(out_);
      if (copy.version() == 0 && !made) continue;
      if (!same(original.sizes(), copy.sizes())) resize(original, copy.sizes());
      copy_into(original, copy);
      if (!made) original.bump_version();
    }
  }

  Value make(Call& on_host) const {
    const Kernel& factory = c_.op.factory;
    // More pinned memory would be kept than is ever used again.
    const PinnedScope pinned(device_runtime(target_.type)->pinned, size_t{1} << 20);
    return factory.run(factory.fn, on_host);
  }

  Tensor back(const Tensor& t) const {
    for (const auto& [original, copy] : copies_) {
      if (copy.is(t)) return original;
    }
    if (c_.op.factory.run && !recorded_ && is_dense_nonoverlapping(t.sizes(), t.strides())) {
      const Tensor r = empty_strided(t.sizes(), t.strides(), {t.dtype(), target_});
      copy_into(r, t, true);  // nobody else has what was made
      r.impl()->flags |= t.flags() & kRequiresGrad;
      return r;
    }
    return copy_on(target_, t, recorded_);
  }

  const Call& c_;
  const bool recorded_ = c_.op.traits.composite;
  Values args_;
  Tensor out_;
  std::vector<std::pair<Tensor, Tensor>> copies_;  // originals and what stands for them
  Device target_;                                  // of results
  bool named_ = false;                             // by an argument of the op
};

void warn_of_fallback(const Op& op, Device device) {
  static std::mutex mutex;
  static std::set<const Op*> warned;
  bool first;
  {
    const std::lock_guard lock(mutex);
    first = warned.insert(&op).second;
  }
  if (first)  // without the lock, since the warning waits for Python's
    warn(str(op.name, "(): device '", device_type_name(device.type),
             "' has no kernel for it, so it runs on the CPU, with copies there and back"));
}

Device off_host_device(const Call& c) {
  Device found;
  const auto look = [&](const Tensor& t) {
    if (t.defined() && t.is_off_host()) found = t.device();
  };
  look(c.out);
  for (const Value& v : c.args) {
    if (auto* t = std::get_if<Tensor>(&v)) look(*t);
    else if (auto* list = std::get_if<TensorList>(&v))
      std::for_each(list->begin(), list->end(), look);
  }
  return found;
}

Value run_on_device(Call& c, uint32_t inner) {
  const Tensor out = c.out;
  const Device device = off_host_device(c);
  use_device(device);
  try {
    return call_inner(c, inner);
  } catch (const MissingKernel& missing) {
    if (!falls_back_to_cpu() && !c.op.traits.on_host)
      fail<NotImplemented>(c.op.name, "(): device '", device_type_name(device.type),
                           "' has no kernel for it", missing.without.empty() ? "" : " without ",
                           missing.without,
                           "; taeda.set_fallback(\"cpu\") runs such operations on the CPU");
    if (!c.op.traits.on_host) warn_of_fallback(c.op, device);
  }
  c.out = out;
  return HostCall(c).run();
}

const bool layer_set = (set_layer(kDeviceLayer, run_on_device), true);

}  // namespace

Value make_on_device(Call& c) {
  const auto make = [&c] { return c.op.factory.run(c.op.factory.fn, c); };
  std::optional<Device> device;  // off the host
  const auto look = [&](Device d) {
    if (device_runtime(d.type)) device = with_index(d);
  };
  if (devices_registered) {
    if (c.out.defined() && c.out.is_off_host()) look(c.out.device());
    for (size_t i = 0; i < c.args.size(); ++i) {
      if (const auto* named = std::get_if<Device>(&c.args[i])) look(*named);
      else if (device && c.op.args[i].kind == ArgKind::Device) c.args[i] = *device;
    }
  }
  if (!device) return make();
  if (c.op.traits.by_copies && has_kernels<PointwiseKernels>(*device)) return make();
  if (c.op.traits.by_draws) {
    use_device(*device);
    try {
      return make();
    } catch (const MissingKernel&) {
      // On the CPU, as all other factories.
    }
  }
  return HostCall(c).run();
}

}  // namespace taeda
