#include "kernels/cuda/runtime/allocator.h"

#include <algorithm>

#include "kernels/cuda/runtime/device.h"

namespace taeda::cuda {
namespace {

// Small blocks share segments of 2 MiB; others have segments of at least 20 MiB, of whole 2 MiB.
// What remains of a large block is worth keeping apart from 1 MiB on.
constexpr size_t kAlign = 512, kMiB = size_t{1} << 20;
constexpr size_t kMostSmall = kMiB, kSmallSegment = 2 * kMiB;
constexpr size_t kLargeSegment = 20 * kMiB, kMostShared = 10 * kMiB, kWhole = 2 * kMiB;

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }
size_t segment_size(size_t size) {
  if (size <= kMostSmall) return kSmallSegment;
  return size < kMostShared ? kLargeSegment : rounded(size, kWhole);
}

std::string human(size_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  auto v = static_cast<double>(bytes);
  for (; v >= 1024 && unit < 3; ++unit) v /= 1024;
  std::ostringstream s;
  s.precision(unit ? 2 : 0);
  s << std::fixed << v << ' ' << units[unit];
  return s.str();
}

}  // namespace

void* Allocator::allocate(size_t nbytes, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (nbytes > SIZE_MAX - kLargeSegment) out_of_memory(nbytes);
  const size_t size = rounded(std::max(nbytes, size_t{1}), kAlign);
  if (!private_.empty()) [[unlikely]] {
    const auto found = private_.find(stream);
    if (found != private_.end()) stream = found->second;
  }
  if (Block* b = take_recent(size, stream)) {
    count_use(b, nbytes);
    return b->begin;
  }
  const bool small = size <= kMostSmall;
  collect_waiting(false);
  Block* b = take_free(size, small, stream);
  if (!b && !recent_.empty()) {
    release_recent();
    b = take_free(size, small, stream);
  }
  if (!b) b = make_segment(size, small, stream);
  if (!b) {
    ++stats_.retries;
    collect_waiting(true);
    free_segments();
    b = make_segment(size, small, stream);
  }
  if (!b) out_of_memory(nbytes);
  if (b->size - size >= (small ? kAlign : kMiB)) split(b, size);
  b->used = true;
  used_.emplace(b->begin, b);
  count_use(b, nbytes);
  return b->begin;
}

void Allocator::count_use(Block* b, size_t nbytes) {
  b->requested = nbytes;
  stats_.allocated.add(static_cast<int64_t>(b->size));
  stats_.requested.add(static_cast<int64_t>(nbytes));
  stats_.blocks.add(1);
}

Allocator::Block* Allocator::take_recent(size_t size, StreamHandle stream) {
  const size_t at = size / kAlign - 1;
  if (at >= kRecentSizes) return nullptr;
  for (Recent& r : recent_) {
    std::vector<Block*>& blocks = r.by_size[at];
    if (r.stream != stream || blocks.empty()) continue;
    Block* b = blocks.back();
    blocks.pop_back();
    return b;
  }
  return nullptr;
}

// False where the block is large, or there are many of its size.
bool Allocator::keep_recent(Block* b) {
  const size_t at = b->size / kAlign - 1;
  if (at >= kRecentSizes) return false;
  auto r = std::ranges::find(recent_, b->stream, &Recent::stream);
  if (r == recent_.end()) r = recent_.insert(r, Recent{b->stream, {}});
  std::vector<Block*>& blocks = r->by_size[at];
  if (blocks.size() >= kMostRecent) return false;
  blocks.push_back(b);
  return true;
}

void Allocator::release_recent() {
  for (Recent& r : recent_) {
    for (std::vector<Block*>& blocks : r.by_size) {
      for (Block* b : blocks) {
        used_.erase(b->begin);
        release(b);
      }
    }
  }
  recent_.clear();
}

void Allocator::deallocate(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(memory);
  if (found == used_.end()) return;
  Block* b = found->second;
  stats_.allocated.add(-static_cast<int64_t>(b->size));
  stats_.requested.add(-static_cast<int64_t>(b->requested));
  stats_.blocks.add(-1);
  if (b->other_streams.empty() && keep_recent(b)) return;
  used_.erase(found);
  if (b->other_streams.empty()) release(b);
  else wait_for_others(b);
}

// Memory that another library has made is that library's business.
void Allocator::record_stream(void* memory, int device, StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(memory);
  if (found == used_.end()) return;
  if (device != device_ || found->second->stream != stream)
    found->second->other_streams.insert({device, stream});
}

// The smallest free block that is large enough.
Allocator::Block* Allocator::take_free(size_t size, bool small, StreamHandle stream) {
  const auto found = free_.find({stream, small});
  if (found == free_.end()) return nullptr;
  Block least{.begin = nullptr, .size = size, .stream = stream, .small = small};
  const auto at = found->second.lower_bound(&least);
  if (at == found->second.end()) return nullptr;
  Block* b = *at;
  found->second.erase(at);
  return b;
}

bool Allocator::reserve(size_t size, DevicePointer* begin) {
  if (static_cast<size_t>(stats_.reserved.now) + size > limit_) return false;
  const BesideCapture beside;
  const int result = driver().allocate(begin, size);
  if (result == kOutOfMemory) return false;
  succeed(result, "allocating memory");
  return true;
}

Allocator::Block* Allocator::make_segment(size_t size, bool small, StreamHandle stream) {
  DevicePointer begin;
  size_t whole = segment_size(size);
  if (!reserve(whole, &begin)) {
    whole = rounded(size, kWhole);  // without room for others
    if (whole == segment_size(size) || !reserve(whole, &begin)) return nullptr;
  }
  stats_.reserved.add(static_cast<int64_t>(whole));
  stats_.segments.add(1);
  return keep(
      {.begin = reinterpret_cast<char*>(begin), .size = whole, .stream = stream, .small = small});
}

// Keeps the first `size` bytes; the rest becomes a free block.
void Allocator::split(Block* b, size_t size) {
  Block* rest = keep({.begin = b->begin + size,
                      .size = b->size - size,
                      .stream = b->stream,
                      .small = b->small,
                      .before = b,
                      .after = b->after});
  if (rest->after) rest->after->before = rest;
  b->after = rest;
  b->size = size;
  pool(*rest).insert(rest);
}

// Makes a block free, and one with its free neighbours.
void Allocator::release(Block* b) {
  b->used = false;
  b->other_streams.clear();
  if (b->before && !b->before->used) {
    Block* first = b->before;
    pool(*first).erase(first);
    absorb(first, b);
    b = first;
  }
  if (b->after && !b->after->used) {
    pool(*b->after).erase(b->after);
    absorb(b, b->after);
  }
  pool(*b).insert(b);
}

void Allocator::absorb(Block* b, Block* next) {
  b->size += next->size;
  b->after = next->after;
  if (b->after) b->after->before = b;
  all_.erase(next);
}

Allocator::Block* Allocator::keep(Block made) {
  auto owned = std::make_unique<Block>(std::move(made));
  Block* b = owned.get();
  all_.emplace(b, std::move(owned));
  return b;
}

void Allocator::wait_for_others(Block* b) {
  if (!why_no_driver().empty()) return;  // in a forked process: nobody's memory
  b->waits = true;
  try {
    waiting_.push_back({Marks(std::exchange(b->other_streams, {})), b});
  } catch (const std::exception&) {  // the device is lost, or the process ends: nobody gets it
  }
}

// Releases blocks whose streams have come; with `all`, after waiting for them.
void Allocator::collect_waiting(bool all) {
  std::erase_if(waiting_, [&](Waiting& w) {
    if (!(all ? w.marks.wait() : w.marks.passed())) return false;
    w.block->waits = false;
    release(w.block);
    return true;
  });
}

// Gives whole segments without a used block back, when all work is done.
void Allocator::free_segments() {
  release_recent();
  std::vector<Block*> whole;
  for (auto& [key, blocks] : free_) {
    std::erase_if(blocks, [&](Block* b) {
      const bool alone = !b->before && !b->after && !held_.contains(b->stream);
      if (alone) whole.push_back(b);
      return alone;
    });
  }
  if (whole.empty()) return;
  succeed(driver().synchronize_context(), "waiting for the device");
  for (Block* b : whole) {
    succeed(driver().deallocate(reinterpret_cast<DevicePointer>(b->begin)), "freeing memory");
    stats_.reserved.add(-static_cast<int64_t>(b->size));
    stats_.segments.add(-1);
    all_.erase(b);
  }
}

void Allocator::begin_private(StreamHandle stream, StreamHandle pool) {
  const std::lock_guard lock(mutex_);
  private_[stream] = pool;
}
void Allocator::end_private(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  private_.erase(stream);
}
void Allocator::hold(StreamHandle pool) {
  const std::lock_guard lock(mutex_);
  ++held_[pool];
}
void Allocator::let_go(StreamHandle pool) {
  const std::lock_guard lock(mutex_);
  if (--held_[pool] == 0) held_.erase(pool);
}

void Allocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  collect_waiting(true);
  free_segments();
}

void Allocator::set_limit(size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void Allocator::out_of_memory(size_t nbytes) {
  ++stats_.failures;
  size_t free = 0, total = 0;
  driver().memory_info(&free, &total);
  const auto allocated = static_cast<size_t>(stats_.allocated.now),
             reserved = static_cast<size_t>(stats_.reserved.now);
  const std::string limit =
      limit_ == SIZE_MAX ? "" : " (this process may take " + human(limit_) + ")";
  fail<DeviceOutOfMemory>("CUDA out of memory: tried to allocate ", human(nbytes),
                          " on cuda:", device_, ", of whose ", human(total), " ", human(free),
                          " are free", limit, ". Tensors take ", human(allocated), ", and ",
                          human(reserved - allocated), " are cached");
}

MemoryStats Allocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Allocator::reset_peaks() {
  const std::lock_guard lock(mutex_);
  for (MemoryNumber* n :
       {&stats_.allocated, &stats_.reserved, &stats_.requested, &stats_.blocks, &stats_.segments})
    n->peak = n->now;
}

void Allocator::reset_totals() {
  const std::lock_guard lock(mutex_);
  for (MemoryNumber* n :
       {&stats_.allocated, &stats_.reserved, &stats_.requested, &stats_.blocks, &stats_.segments})
    n->in_all = n->freed = 0;
  stats_.retries = stats_.failures = 0;
}

std::string Allocator::snapshot() {
  const std::lock_guard lock(mutex_);
  release_recent();
  std::ostringstream s;
  s << '[';
  const char* separator = "";
  for (const auto& [first, owned] : all_) {
    if (first->before) continue;
    size_t size = 0;
    std::ostringstream blocks;
    for (const Block* b = first; b; b = b->after) {
      const char* state = b->waits  ? "active_pending_free"
                          : b->used ? "active_allocated"
                                    : "inactive";
      blocks << (size ? "," : "") << "{\"address\":" << reinterpret_cast<uintptr_t>(b->begin)
             << ",\"size\":" << b->size << ",\"requested_size\":" << b->requested << ",\"state\":\""
             << state << "\"}";
      size += b->size;
    }
    s << separator << "{\"device\":" << device_
      << ",\"address\":" << reinterpret_cast<uintptr_t>(first->begin) << ",\"total_size\":" << size
      << ",\"stream\":" << reinterpret_cast<uintptr_t>(first->stream) << ",\"segment_type\":\""
      << (first->small ? "small" : "large") << "\",\"blocks\":[" << blocks.str() << "]}";
    separator = ",";
  }
  s << ']';
  return s.str();
}

}  // namespace taeda::cuda
