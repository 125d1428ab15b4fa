#include "kernels/cuda/runtime/pinned.h"

#include <algorithm>
#include <bit>

#include "base/device_runtime.h"
#include "kernels/cuda/runtime/device.h"

namespace taeda::cuda {
namespace {

// Blocks of few sizes fit more requests: powers of two, of large ones whole multiples.
size_t block_size(size_t nbytes) {
  constexpr size_t least = 4096, large = size_t{16} << 20;
  if (nbytes <= large) return std::bit_ceil(std::max(nbytes, least));
  return (nbytes + large - 1) / large * large;
}

}  // namespace

void* PinnedCache::allocate(size_t nbytes) {
  const std::lock_guard lock(mutex_);
  const size_t size = block_size(nbytes);
  collect_waiting(false);
  Block* b = take_free(size);
  if (!b) b = make(size);
  used_.insert(b);
  stats_.allocated.add(static_cast<int64_t>(size));
  stats_.blocks.add(1);
  return b->begin;
}

PinnedCache::Block* PinnedCache::take_free(size_t size) {
  const auto found = free_.find(size);
  if (found == free_.end() || found->second.empty()) return nullptr;
  Block* b = found->second.back();
  found->second.pop_back();
  return b;
}

PinnedCache::Block* PinnedCache::make(size_t size) {
  used_device();  // its context is current: any will do, since the memory is portable
  constexpr unsigned portable_and_mapped = 3;
  void* memory = nullptr;
  const BesideCapture beside;
  const int result = driver().allocate_host(&memory, size, portable_and_mapped);
  if (result == kOutOfMemory) {
    fail<OutOfMemory>("out of memory: tried to allocate ", size,
                      " bytes of pinned memory; this process has ", stats_.reserved.now,
                      " already");
  }
  succeed(result, "allocating pinned memory");
  stats_.reserved.add(static_cast<int64_t>(size));
  stats_.segments.add(1);
  auto* begin = static_cast<char*>(memory);
  return &all_.emplace(begin, Block{.begin = begin, .size = size}).first->second;
}

void PinnedCache::deallocate(void* memory) noexcept {
  if (!why_no_driver().empty()) return;  // in a forked process: nobody's memory
  const std::lock_guard lock(mutex_);
  Block* b = find(memory);
  if (!b) return;
  used_.erase(b);
  stats_.allocated.add(-static_cast<int64_t>(b->size));
  stats_.blocks.add(-1);
  if (b->kept) return;
  if (b->streams.empty()) return release(b);
  try {
    waiting_.push_back({Marks(std::exchange(b->streams, {})), b});
  } catch (const std::exception&) {  // the device is lost, or the process ends: nobody gets it
  }
}

PinnedCache::Block* PinnedCache::find(const void* memory) {
  const auto* at = static_cast<const char*>(memory);
  auto next = all_.upper_bound(at);
  if (next == all_.begin()) return nullptr;
  Block& b = std::prev(next)->second;
  return at < b.begin + b.size && used_.contains(&b) ? &b : nullptr;
}

bool PinnedCache::record_stream(const void* memory, int device, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  Block* b = find(memory);
  if (!b) return false;
  b->streams.insert({device, stream});
  b->kept |= is_capturing(stream);
  return true;
}

void PinnedCache::collect_waiting(bool all) {
  std::erase_if(waiting_, [&](Waiting& w) {
    if (!(all ? w.marks.wait() : w.marks.passed())) return false;
    release(w.block);
    return true;
  });
}

void PinnedCache::empty() {
  const std::lock_guard lock(mutex_);
  collect_waiting(true);
  for (auto& [size, blocks] : free_) {
    for (const Block* b : blocks) {
      succeed(driver().deallocate_host(b->begin), "freeing pinned memory");
      stats_.reserved.add(-static_cast<int64_t>(size));
      stats_.segments.add(-1);
      all_.erase(b->begin);
    }
  }
  free_.clear();
}

PinnedCache::Stats PinnedCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}
void PinnedCache::reset_peaks() {
  const std::lock_guard lock(mutex_);
  for (MemoryNumber* n : {&stats_.allocated, &stats_.reserved, &stats_.blocks, &stats_.segments})
    n->peak = n->now;
}
void PinnedCache::reset_totals() {
  const std::lock_guard lock(mutex_);
  for (MemoryNumber* n : {&stats_.allocated, &stats_.reserved, &stats_.blocks, &stats_.segments})
    n->in_all = n->freed = 0;
}

PinnedCache& pinned_cache() {
  static PinnedCache& one = *new PinnedCache;  // tensors die later than static objects
  return one;
}

bool is_pinned(const void* memory) {
  if (!why_no_driver().empty()) return false;
  unsigned type = 0;
  const auto at = reinterpret_cast<DevicePointer>(memory);
  return driver().pointer_attribute(&type, kMemoryType, at) == kSuccess && type == kHostMemory;
}

namespace {

void start_copy(void* to, const void* from, size_t nbytes, StreamHandle stream, const char* what) {
  succeed(driver().copy(reinterpret_cast<DevicePointer>(to), reinterpret_cast<DevicePointer>(from),
                        nbytes, stream),
          what);
}

// What `later` does from now on comes after what `before` has to do now.
void follow(StreamPlace later, StreamPlace before) {
  constexpr unsigned no_timing = 2;
  const Driver& d = driver();
  EventHandle event;
  {
    const OnDevice here(before.first);
    succeed(d.make_event(&event, no_timing), "making an event");
    succeed(d.record_event(event, before.second), "recording an event");
  }
  const OnDevice here(later.first);
  succeed(d.wait_event(later.second, event, 0), "letting a stream wait");
  d.destroy_event(event);  // when it has come
}

// The copy is work of the source's stream. The target's memory was used on its own stream before.
void copy_between(void* to, int to_index, const void* from, int from_index, size_t nbytes) {
  const StreamPlace source{from_index, current_stream(from_index)};
  const StreamPlace target{to_index, current_stream(to_index)};
  enable_peer_access(from_index, to_index);
  if (to_index != from_index) follow(source, target);
  use_device(from_index);
  start_copy(to, from, nbytes, source.second, "copying between devices");
  if (to_index != from_index) follow(target, source);
}

}  // namespace

void copy_across(void* to, Device to_device, const void* from, Device from_device, size_t nbytes) {
  if (!is_host(from_device) && !is_host(to_device))
    return copy_between(to, to_device.index, from, from_device.index, nbytes);
  use_device(is_host(from_device) ? to_device.index : from_device.index);
  if (is_host(from_device)) send(to, from, nbytes);
  else read_back(to, from, nbytes);
}

void copy_without_waiting(void* to, Device to_device, const void* from, Device from_device,
                          size_t nbytes) {
  const bool from_host = is_host(from_device);
  const void* host = from_host ? from : to;
  const int index = from_host ? to_device.index : from_device.index;
  if ((from_host || is_host(to_device)) && is_pinned(host)) {
    use_device(index);
    const StreamHandle stream = current_stream(index);
    pinned_cache().record_stream(host, index, stream);
    return start_copy(to, from, nbytes, stream, "copying pinned memory");
  }
  copy_across(to, to_device, from, from_device, nbytes);
}

}  // namespace taeda::cuda
