// The kernel interface: how ops call kernels, by device.
//
// A family's header (kernels/softmax.h) declares plain shapes and a struct of kernels, which take
// plain memory. Every device has one constant of that struct. The CPU's is its member `cpu`,
// defined under kernels/cpu/, or in the header where it needs nothing from there (namespace
// `plain`); other devices' are registered when they are loaded (python/devices.cpp).
#pragma once

#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "base/device.h"
#include "base/error.h"

namespace taeda {

// The dispatcher names op and device, or runs the op on the CPU (ops/core/device_fallback.cpp).
struct MissingKernel : NotImplemented {
  std::string without;  // the package that would add it, if one would

  explicit MissingKernel(std::string without);
};
[[noreturn]] void missing_kernel();
// `package`: "cuFFT (pip install nvidia-cufft)".
[[noreturn]] void missing_package(std::string package);

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

// A table that other devices may fill: typeid(K).name(), sizeof(K), the CPU's constant, and the
// pointers to those of the other devices, by type.
struct KernelTable {
  const char* name;
  size_t size;
  const void* cpu;
  const void** others;
};
bool list_table(const KernelTable& table);
const KernelTable* find_table(std::string_view name);  // null where there is none

template <class K> struct DeviceKernels {
  static inline constinit const void* others[kNumDeviceTypes] = {};
  static inline const bool listed = list_table({typeid(K).name(), sizeof(K), &K::cpu, others});
};

// Whether the device has a table of kernels K at all.
template <class K> bool has_kernels(Device device) {
  return device.type == DeviceType::CPU ||
         DeviceKernels<K>::others[static_cast<size_t>(device.type)];
}

template <class K> const K& kernels(Device device) {
  if (device.type == DeviceType::CPU) [[likely]]
    return K::cpu;
  if (!DeviceKernels<K>::listed || !has_kernels<K>(device)) missing_kernel();
  return *static_cast<const K*>(DeviceKernels<K>::others[static_cast<size_t>(device.type)]);
}

}  // namespace taeda
