#include "kernels/cuda/runtime/address_range.h"

#include <vector>

namespace taeda::cuda {
namespace {

constexpr int kOnDevice = 1, kPinnedThere = 1, kReadAndWrite = 3;

DevicePointer address(const char* at) { return reinterpret_cast<DevicePointer>(at); }

}  // namespace

AddressRange::AddressRange(int device, size_t size, size_t granule)
    : device_(device),
      size_(size),
      granule_(granule) {
  succeed(driver().reserve_addresses(&begin_, size, 0, 0, 0), "reserving addresses");
}

AddressRange::~AddressRange() {
  if (why_no_driver().empty()) driver().free_addresses(begin_, size_);
}

// What happened to the first granule that could not be mapped; `mapped` counts bytes before it.
int AddressRange::map_granules(DevicePointer at, size_t size, size_t* mapped) {
  const Driver& d = driver();
  const MemoryProperties properties{.type = kPinnedThere, .location = {kOnDevice, device_}};
  for (; *mapped < size; *mapped += granule_) {
    MemoryHandle handle = 0;
    int result = d.create_memory(&handle, granule_, &properties, 0);
    if (result != kSuccess) return result;
    result = d.map(at + *mapped, granule_, 0, handle, 0);
    d.release_memory(handle);  // the mapping keeps it
    if (result != kSuccess) return result;
  }
  return kSuccess;
}

bool AddressRange::map(char* begin, size_t size, std::span<const int> readers) {
  size_t mapped = 0;
  int result = map_granules(address(begin), size, &mapped);
  if (result == kSuccess) {
    std::vector<MemoryAccess> access{{{kOnDevice, device_}, kReadAndWrite}};
    for (const int reader : readers) access.push_back({{kOnDevice, reader}, kReadAndWrite});
    result = driver().set_access(address(begin), size, access.data(), access.size());
  }
  if (result == kSuccess) return true;
  unmap(begin, mapped);
  if (result != kOutOfMemory) driver_failed(result, "mapping memory");
  return false;
}

// The driver unmaps what was mapped by one call.
void AddressRange::unmap(char* begin, size_t size) {
  for (size_t done = 0; done < size; done += granule_)
    succeed(driver().unmap(address(begin) + done, granule_), "unmapping memory");
}

void AddressRange::allow(char* begin, size_t size, int device) {
  const MemoryAccess access{{kOnDevice, device}, kReadAndWrite};
  succeed(driver().set_access(address(begin), size, &access, 1), "sharing memory");
}

}  // namespace taeda::cuda
