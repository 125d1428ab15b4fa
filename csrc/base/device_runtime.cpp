#include "base/device_runtime.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "base/error.h"

namespace taeda {
namespace {

std::array<std::atomic<const DeviceRuntime*>, kNumDeviceTypes> runtimes{};
std::atomic<bool> fallback = false;

}  // namespace

std::atomic<bool> devices_registered = false;
std::atomic<void (*)()> cuda_loader = nullptr;

const DeviceRuntime* device_runtime(DeviceType type) {
  return runtimes[static_cast<size_t>(type)].load(std::memory_order_acquire);
}

void require_no_device(DeviceType type) {
  check(!device_runtime(type), "register_device(): a device named '", device_type_name(type),
        "' is registered already, and there is room for one");
}

void register_device(DeviceType type, const DeviceRuntime& runtime) {
  require_no_device(type);
  runtimes[static_cast<size_t>(type)] = &runtime;
  devices_registered = true;
}

const PinnedMemory* pinned_memory() {
  for (const DeviceType type : {DeviceType::CUDA, DeviceType::PrivateUse1}) {
    const DeviceRuntime* runtime = device_runtime(type);
    if (runtime && runtime->pinned) return runtime->pinned;
  }
  return nullptr;
}

void copy_memory(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                 bool non_blocking) {
  if (nbytes == 0) return;
  const auto copy = [&](DeviceType type) {
    const DeviceRuntime* runtime = device_runtime(type);
    const auto function = non_blocking && runtime->pinned ? runtime->pinned->copy : runtime->copy;
    function(to, to_device, from, from_device, nbytes);
  };
  const bool to_host = is_host(to_device), from_host = is_host(from_device);
  if (to_host && from_host) {
    std::memcpy(to, from, nbytes);
  } else if (to_host || to_device.type == from_device.type) {
    copy(from_device.type);
  } else if (from_host) {
    copy(to_device.type);
  } else {
    const auto between = std::make_unique<char[]>(nbytes);
    device_runtime(from_device.type)->copy(between.get(), {}, from, from_device, nbytes);
    device_runtime(to_device.type)->copy(to, to_device, between.get(), {}, nbytes);
  }
}

bool falls_back_to_cpu() { return fallback.load(std::memory_order_relaxed); }
void set_fallback_to_cpu(bool on) { fallback = on; }

}  // namespace taeda
