// CUDA as a device of taeda: its runtime, and the tables of its kernels.
#include "kernels/device_plugin.h"

#include <vector>

#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/tables.h"

namespace taeda::cuda {
namespace {

void* allocate(size_t nbytes, int index) {
  if (nbytes == 0) return nullptr;
  return use_device(index).allocator.allocate(nbytes, current_stream(index));
}

void deallocate(void* block, size_t, int index) noexcept {
  if (block) device(index).allocator.deallocate(block);
}

void copy_across(void* to, Device to_device, const void* from, Device from_device, size_t nbytes) {
  const bool from_host = is_host(from_device), to_host = is_host(to_device);
  const int index = from_host ? to_device.index : from_device.index;
  use_device(index);
  if (from_host) return send(to, from, nbytes);
  if (to_host) return read_back(to, from, nbytes);
  const StreamHandle stream = current_stream(index);
  succeed(driver().copy(reinterpret_cast<DevicePointer>(to), reinterpret_cast<DevicePointer>(from),
                        nbytes, stream),
          "copying between devices");
  // The other device's stream knows nothing of this one.
  if (to_device.index != index) synchronize_stream(index, stream);
}

void use(int index) { use_device(index); }

}  // namespace
}  // namespace taeda::cuda

extern "C" [[gnu::visibility("default")]] const taeda::DevicePlugin* taeda_device(
    const taeda::DeviceHost&) {
  using namespace taeda::cuda;
  static const std::vector<taeda::DeviceTable> tables = all_tables();
  static const taeda::DevicePlugin plugin{
      taeda::kDeviceInterface,
      {device_count, allocate, deallocate, copy_across, synchronize_device, use, current_device,
       /*takes_host_numbers=*/true},
      tables};
  return &plugin;
}
