// The kernel interface: how ops call kernels, by device.
//
// A family's header (kernels/softmax.h) declares plain shapes and a struct of kernels, which take
// plain memory. Every device has one constant of that struct. The CPU's is its member `cpu`,
// defined under kernels/cpu/; other devices register theirs when they are loaded.
#pragma once

#include <utility>

#include "base/device.h"

namespace taeda {

[[noreturn]] void missing_kernel();  // NotImplemented; the dispatcher adds op and device

// A function that a device may lack.
template <class Signature> class KernelFn;
template <class R, class... A> class KernelFn<R(A...)> {
 public:
  using Pointer = R (*)(A...);

  constexpr KernelFn(Pointer f = nullptr) : f_(f) {}
  R operator()(A... a) const {
    if (!f_) [[unlikely]]
      missing_kernel();
    return f_(std::forward<A>(a)...);
  }
  constexpr explicit operator bool() const { return f_; }
  constexpr Pointer get() const { return f_; }

 private:
  Pointer f_;
};

// The tables of kernels K of all devices but the CPU.
template <class K> inline constinit const K* device_kernels[kNumDeviceTypes] = {};

template <class K> const K& kernels(Device device) {
  if (device.type == DeviceType::CPU) [[likely]]
    return K::cpu;
  const K* found = device_kernels<K>[static_cast<size_t>(device.type)];
  if (!found) missing_kernel();
  return *found;
}

}  // namespace taeda
