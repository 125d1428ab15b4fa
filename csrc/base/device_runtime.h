// What a device beside the CPU consists of, apart from its kernels (kernels/kernels.h): memory, and
// the order in which things happen to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <string_view>

#include "base/device.h"

namespace taeda {

// Memory of the host that stays where it is, so that a device copies there and back by itself.
struct PinnedMemory {
  void* (*allocate)(size_t nbytes);  // aligned to 64. Throws OutOfMemory
  // May be called before copies that read or write it are done.
  void (*deallocate)(void* block) noexcept;
  bool (*is_pinned)(const void* memory);
  // As DeviceRuntime::copy, but where the end on the host is pinned it may be done later, in order
  // with the kernels.
  void (*copy)(void* to, Device to_device, const void* from, Device from_device, size_t nbytes);
};

struct DeviceRuntime {
  int (*count)();  // devices of this type
  // At least `nbytes`, aligned to 64. Throws OutOfMemory.
  void* (*allocate)(size_t nbytes, int index);
  void (*deallocate)(void* block, size_t nbytes, int index) noexcept;
  // Between two places of one device, or of a device and the host: after the kernels that were
  // called before it. Where an end is on the host, it is complete on return.
  void (*copy)(void* to, Device to_device, const void* from, Device from_device, size_t nbytes);
  void (*synchronize)(int index);  // waits for all that was called before
  // For several devices, or null: kernels that are called next are for this one; and which one is
  // meant where none is named.
  void (*use)(int index) = nullptr;
  int (*current)() = nullptr;
  // Whether kernels of pointwise functions read numbers in the CPU's memory (Plan::host_numbers).
  bool takes_host_numbers = false;
  const PinnedMemory* pinned = nullptr;  // null where it has none
};

// Error where devices of the type are registered already. Beside CUDA there is room for one kind,
// `privateuse1` under a name of its own.
void require_no_device(DeviceType type);
void register_device(DeviceType type, const DeviceRuntime& runtime);

// Called once, when a CUDA device is first named: may register it.
extern std::atomic<void (*)()> cuda_loader;

extern std::atomic<bool> devices_registered;

// Null where the build has no such device.
const DeviceRuntime* device_runtime(DeviceType type);

// Kernels that are called next are for this device.
inline void use_device(Device device) {
  const DeviceRuntime* runtime = device_runtime(device.type);
  if (runtime && runtime->use) runtime->use(device.index);
}

// Copies bytes between the memory of two devices, through the host where they are of two types.
// With `non_blocking`, a copy from or to pinned memory may be done later.
void copy_memory(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                 bool non_blocking = false);

// That of the devices that have been named so far, CUDA's first; null where none has any.
const PinnedMemory* pinned_memory();

// Whether the host can read the memory of a device.
inline bool is_host(Device d) { return d.type == DeviceType::CPU; }

// ---- ops without a kernel ----
// Whether an op that a device has no kernel for runs on the CPU, with copies there and back.
bool falls_back_to_cpu();
void set_fallback_to_cpu(bool on);

}  // namespace taeda
