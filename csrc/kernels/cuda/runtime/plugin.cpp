// CUDA as a device of taeda: its runtime, and the tables of its kernels.
#include "kernels/device_plugin.h"

#include <vector>

#include "kernels/cuda/runtime/allocator.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/pinned.h"
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

void* allocate_pinned(size_t nbytes) { return pinned_cache().allocate(nbytes); }
void deallocate_pinned(void* block) noexcept { pinned_cache().deallocate(block); }

void use(int index) { use_device(index); }

}  // namespace
}  // namespace taeda::cuda

extern "C" [[gnu::visibility("default")]] const taeda::DevicePlugin* taeda_device(
    const taeda::DeviceHost&) {
  using namespace taeda::cuda;
  static const std::vector<taeda::DeviceTable> tables = all_tables();
  static const taeda::PinnedMemory pinned{allocate_pinned, deallocate_pinned, is_pinned,
                                          copy_without_waiting};
  static const taeda::DevicePlugin plugin{
      taeda::kDeviceInterface,
      {device_count, allocate, deallocate, copy_across, synchronize_device, use, current_device,
       /*takes_host_numbers=*/true, &pinned},
      tables};
  return &plugin;
}
