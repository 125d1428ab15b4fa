// Memory of the stub of the driver: of devices, of the host, and ranges of addresses.
#include "stub_machine.h"

using namespace stub;

STUB(cuMemGetInfo_v2, size_t* free, size_t* total) {
  LOCKED
  *total = m.memory();
  *free = *total - current->taken;
  return kSuccess;
}
STUB(cuMemAlloc_v2, uintptr_t* p, size_t n) {
  LOCKED
  if (m.breaks_capture()) return kCaptureUnsupported;
  return m.allocate(*current, p, n);
}
STUB(cuMemFree_v2, uintptr_t p) {
  LOCKED
  if (m.breaks_capture()) return kCaptureUnsupported;
  return m.deallocate(p);
}
STUB(cuMemHostAlloc, void** p, size_t n, unsigned) {
  LOCKED
  if (m.breaks_capture()) return kCaptureUnsupported;
  if (!current) return kInvalid;
  *p = std::aligned_alloc(kPage, (n + kPage - 1) / kPage * kPage);
  if (*p) m.pinned[reinterpret_cast<uintptr_t>(*p)] = n;
  return *p ? kSuccess : kOutOfMemory;
}
STUB(cuMemFreeHost, void* p) {
  LOCKED
  if (m.pinned.erase(reinterpret_cast<uintptr_t>(p)) == 0) return kInvalid;
  m.run_all();
  std::free(p);
  return kSuccess;
}
STUB(cuMemHostRegister_v2, void* p, size_t n, unsigned) {
  LOCKED
  return m.pinned.emplace(reinterpret_cast<uintptr_t>(p), n).second ? kSuccess : kRegistered;
}
STUB(cuMemHostUnregister, void* p) {
  LOCKED
  m.run_all();
  return m.pinned.erase(reinterpret_cast<uintptr_t>(p)) ? kSuccess : kNotRegistered;
}

struct Location {
  int type, id;
};
struct Properties {
  int type, handle_types;
  Location location;
};
struct Access {
  Location location;
  int flags;
};
constexpr size_t kGranule = size_t{2} << 20;

STUB(cuMemAddressReserve, uintptr_t* p, size_t n, size_t, uintptr_t, unsigned long long) {
  LOCKED
  if (n == 0 || n % kGranule) return kInvalid;
  void* at = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return kOutOfMemory;
  *p = reinterpret_cast<uintptr_t>(at);
  m.ranges[*p] = n;
  return kSuccess;
}
STUB(cuMemAddressFree, uintptr_t p, size_t n) {
  LOCKED
  const auto found = m.ranges.find(p);
  if (found == m.ranges.end() || found->second != n || m.overlaps(p, n)) return kInvalid;
  munmap(reinterpret_cast<void*>(p), n);
  m.ranges.erase(found);
  return kSuccess;
}
STUB(cuMemCreate, uint64_t* handle, size_t n, const Properties* wanted, unsigned long long) {
  LOCKED
  const auto device = static_cast<size_t>(wanted->location.id);
  if (wanted->type != 1 || wanted->location.type != 1 || device >= m.contexts.size() ||
      n % kGranule)
    return kInvalid;
  auto made = m.make_physical(*m.contexts[device], n);
  if (!made) return kOutOfMemory;
  *handle = m.next_handle++;
  m.handles[*handle] = std::move(made);
  return kSuccess;
}
STUB(cuMemRelease, uint64_t handle) {
  LOCKED
  return m.handles.erase(handle) ? kSuccess : kInvalid;
}
STUB(cuMemMap, uintptr_t p, size_t n, size_t, uint64_t handle, unsigned long long) {
  LOCKED
  const auto found = m.handles.find(handle);
  const auto after = m.ranges.upper_bound(p);
  if (found == m.handles.end() || found->second->size != n || after == m.ranges.begin() ||
      p + n > std::prev(after)->first + std::prev(after)->second || m.overlaps(p, n))
    return kInvalid;
  m.mappings[p] = {found->second, {}};
  return kSuccess;
}
STUB(cuMemUnmap, uintptr_t p, size_t n) {
  LOCKED
  const auto found = m.mappings.find(p);
  if (found == m.mappings.end() || found->second.memory->size != n) return kInvalid;
  m.unmap(found);
  return kSuccess;
}
STUB(cuMemSetAccess, uintptr_t p, size_t n, const Access* access, size_t count) {
  LOCKED
  for (size_t i = 0; i < count; ++i)
    if (access[i].flags != 3 || !m.allow(p, n, access[i].location.id)) return kInvalid;
  return kSuccess;
}

STUB(cuPointerGetAttribute, void* value, int what, uintptr_t p) {
  LOCKED
  const auto in = [p](const std::map<uintptr_t, size_t>& blocks) {
    const auto after = blocks.upper_bound(p);
    return after != blocks.begin() && p < std::prev(after)->first + std::prev(after)->second;
  };
  constexpr int memory_type = 2, ordinal = 9;
  constexpr unsigned host = 1, device = 2;
  if (what == memory_type && in(m.pinned)) {
    *static_cast<unsigned*>(value) = host;
    return kSuccess;
  }
  const auto answer = [&](const Context& c) {
    if (what == memory_type) *static_cast<unsigned*>(value) = device;
    else if (what == ordinal) *static_cast<int*>(value) = c.device;
    else return static_cast<int>(kInvalid);
    return static_cast<int>(kSuccess);
  };
  for (const auto& c : m.contexts)
    if (in(c->blocks)) return answer(*c);
  const auto after = m.mappings.upper_bound(p);
  if (after == m.mappings.begin()) return kInvalid;
  const auto& [begin, mapping] = *std::prev(after);
  return p < begin + mapping.memory->size ? answer(*mapping.memory->context) : kInvalid;
}
