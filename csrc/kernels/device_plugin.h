// How a library adds a device: it exports `extern "C" const taeda::DevicePlugin* taeda_device(const
// taeda::DeviceHost&)`, which taeda.register_device() calls once; CUDA's does the same. It is
// compiled with this version's headers and the same C++ ABI, and links to nothing of taeda's.
#pragma once

#include <span>
#include <typeinfo>

#include "base/device_runtime.h"

namespace taeda {

// What the library may ask for.
struct DeviceHost {
  const void* (*cpu_kernels)(const char* table);  // by typeid(K).name(); null where there is none

  template <class K> const K& cpu() const {
    return *static_cast<const K*>(cpu_kernels(typeid(K).name()));
  }
};

struct DeviceTable {
  const char* name;     // typeid(K).name()
  size_t size;          // sizeof(K)
  const void* kernels;  // a K that lives as long as the process
};
template <class K> DeviceTable device_table(const K& kernels) {
  return {typeid(K).name(), sizeof(K), &kernels};
}

// Counts changes of what a library is compiled with: the runtime, the tables, their shapes.
inline constexpr int kDeviceInterface = 5;

struct DevicePlugin {
  int interface;  // kDeviceInterface
  DeviceRuntime runtime;
  std::span<const DeviceTable> tables;
};

using DeviceEntry = const DevicePlugin* (*)(const DeviceHost&);

}  // namespace taeda
