#include "kernels/cuda/runtime/allocator.h"

#include <algorithm>
#include <bit>
#include <sstream>

#include "kernels/cuda/runtime/device.h"

namespace taeda::cuda {
namespace {

// What remains of a large block is worth keeping apart from 1 MiB on.
constexpr size_t kAlign = 512, kMiB = size_t{1} << 20;
constexpr size_t kMostSmall = kMiB, kSlack = 20 * kMiB;
// Of recorded graphs, which may use memory on any stream: no stream has this address.
const StreamHandle kAnyStream = reinterpret_cast<StreamHandle>(UINTPTR_MAX);

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }

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

// The allocators of all devices, and what they were told.
struct Everyone {
  std::mutex mutex;
  AllocatorSettings settings;
  HistorySettings history;
  std::vector<Allocator*> allocators;
};
Everyone& everyone() {
  static Everyone& one = *new Everyone;  // memory is given back later than static objects die
  return one;
}

}  // namespace

void set_allocator_settings(const AllocatorSettings& settings) {
  const std::lock_guard lock(everyone().mutex);
  everyone().settings = settings;
  for (Allocator* a : everyone().allocators) a->set_settings(settings);
}

void set_allocator_history(const HistorySettings& settings, bool clear) {
  const std::lock_guard lock(everyone().mutex);
  everyone().history = settings;
  choose_stacks(settings);
  for (Allocator* a : everyone().allocators) a->set_history(settings, clear);
}

Allocator::Allocator(int device) : device_(device) {
  const std::lock_guard lock(everyone().mutex);
  settings_ = everyone().settings;
  history_.choose(everyone().history, false);
  everyone().allocators.push_back(this);
}

void Allocator::set_settings(const AllocatorSettings& settings) {
  const std::lock_guard lock(mutex_);
  settings_ = settings;
}

void Allocator::set_history(const HistorySettings& settings, bool clear) {
  const std::lock_guard lock(mutex_);
  history_.choose(settings, clear);
}

// A graph's recording comes before what this thread has chosen.
Allocator::Owner Allocator::owner_of(StreamHandle stream) const {
  if (!private_.empty()) [[unlikely]] {
    const auto found = private_.find(stream);
    if (found != private_.end()) return {kAnyStream, found->second};
  }
  return {stream, current_pool(device_)};
}

size_t Allocator::block_size(size_t nbytes) const {
  const size_t mib = nbytes / kMiB;
  const size_t at =
      std::min<size_t>(mib ? std::bit_width(mib) - 1 : 0, settings_.divisions.size() - 1);
  const size_t divisions = settings_.divisions[at];
  if (divisions > 1 && nbytes > kAlign * divisions)
    return rounded(nbytes, std::bit_floor(nbytes) / divisions);
  return rounded(std::max(nbytes, size_t{1}), kAlign);
}

void* Allocator::allocate(size_t nbytes, StreamHandle stream) {
  const int64_t stack = stack_of_allocation();
  const std::lock_guard lock(mutex_);
  if (nbytes > SIZE_MAX / 4) out_of_memory(nbytes);
  const size_t size = block_size(nbytes);
  const Owner owner = owner_of(stream);
  if (Block* b = take_recent(size, owner)) {
    count_use(b, nbytes, stack);
    return b->begin;
  }
  const bool small = size <= kMostSmall;
  collect_waiting(false);
  Block* b = take_free(size, small, owner);
  if (!b && !recent_.empty()) {
    release_recent();
    b = take_free(size, small, owner);
  }
  if (!b) b = make_segment(size, small, owner);
  if (!b) {
    ++stats_.retries;
    collect_waiting(true);
    free_segments();
    b = take_free(size, small, owner);
    if (!b) b = make_segment(size, small, owner);
  }
  if (!b) b = take_last_resort(size, small, stream);
  if (!b) out_of_memory(nbytes);
  if (worth_splitting(*b, size)) {
    Block* rest = cut(b, size);
    free_blocks(*rest).insert(rest);
  }
  b->used = true;
  used_.emplace(b->begin, b);
  count_use(b, nbytes, stack);
  return b->begin;
}

bool Allocator::worth_splitting(const Block& b, size_t size) const {
  if (b.owner.pool) {
    const auto found = options_.find(b.owner.pool);
    if (found != options_.end() && found->second.no_split) return false;
  }
  if (b.small) return b.size - size >= kAlign;
  return b.size - size >= kMiB && (b.range || size < settings_.max_split);
}

void Allocator::count_use(Block* b, size_t nbytes, int64_t stack) {
  b->requested = nbytes;
  b->stack = stack;
  history_.note("alloc", b->begin, b->size, b->owner.stream, stack);
  stats_.allocated.add(static_cast<int64_t>(b->size));
  stats_.requested.add(static_cast<int64_t>(nbytes));
  stats_.blocks.add(1);
}

Allocator::Block* Allocator::take_recent(size_t size, const Owner& owner) {
  const size_t at = size / kAlign - 1;
  if (at >= kRecentSizes) return nullptr;
  for (Recent& r : recent_) {
    std::vector<Block*>& blocks = r.by_size[at];
    if (r.owner != owner || blocks.empty()) continue;
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
  auto r = std::ranges::find(recent_, b->owner, &Recent::owner);
  if (r == recent_.end()) r = recent_.insert(r, Recent{b->owner, {}});
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
  const int64_t stack = stack_of_free();
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(memory);
  if (found == used_.end()) return;
  Block* b = found->second;
  stats_.allocated.add(-static_cast<int64_t>(b->size));
  stats_.requested.add(-static_cast<int64_t>(b->requested));
  stats_.blocks.add(-1);
  history_.note("free_requested", b->begin, b->size, b->owner.stream, stack);
  if (b->other_streams.empty())
    history_.note("free_completed", b->begin, b->size, b->owner.stream, stack);
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
  if (device != device_ || found->second->owner.stream != stream)
    found->second->other_streams.insert({device, stream});
}

// The smallest free block that is large enough. Blocks that are never split are kept for requests
// of about their size.
Allocator::Block* Allocator::take_free(size_t size, bool small, const Owner& owner) {
  const auto found = free_.find({owner, small});
  if (found == free_.end()) return nullptr;
  Block least{.begin = nullptr, .size = size, .owner = owner, .small = small};
  const size_t max_split = settings_.max_split;
  for (auto at = found->second.lower_bound(&least); at != found->second.end(); ++at) {
    Block* b = *at;
    const bool whole = !small && !b->range && b->size >= max_split;
    if (whole && (size < max_split || b->size - size >= kSlack)) continue;
    found->second.erase(at);
    return b;
  }
  return nullptr;
}

// Free memory of pools that are there for that.
Allocator::Block* Allocator::take_last_resort(size_t size, bool small, StreamHandle stream) {
  for (const auto& [pool, options] : options_) {
    if (!options.last_resort) continue;
    if (Block* b = take_free(size, small, {stream, pool})) return b;
  }
  return nullptr;
}

// Keeps the first `size` bytes; returns the rest, which is free and in no list.
Allocator::Block* Allocator::cut(Block* b, size_t size) {
  Block* rest = keep({.begin = b->begin + size,
                      .size = b->size - size,
                      .owner = b->owner,
                      .small = b->small,
                      .before = b,
                      .after = b->after,
                      .range = b->range,
                      .freed_at = b->freed_at});
  if (rest->after) rest->after->before = rest;
  b->after = rest;
  b->size = size;
  return rest;
}

// Makes a block free, and one with its free neighbours.
void Allocator::release(Block* b) {
  b->used = false;
  b->requested = 0;
  b->stack = kNoStack;
  b->freed_at = ++frees_;
  b->other_streams.clear();
  if (b->before && !b->before->used) {
    Block* first = b->before;
    free_blocks(*first).erase(first);
    absorb(first, b);
    b = first;
    b->freed_at = frees_;
  }
  if (b->after && !b->after->used) {
    free_blocks(*b->after).erase(b->after);
    absorb(b, b->after);
  }
  free_blocks(*b).insert(b);
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
    history_.note("free_completed", w.block->begin, w.block->size, w.block->owner.stream);
    release(w.block);
    return true;
  });
}

void Allocator::begin_private(StreamHandle stream, PoolId pool) {
  const std::lock_guard lock(mutex_);
  private_[stream] = pool;
}
void Allocator::end_private(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  private_.erase(stream);
}
void Allocator::hold(PoolId pool) {
  const std::lock_guard lock(mutex_);
  ++held_[pool];
}
void Allocator::let_go(PoolId pool) {
  const std::lock_guard lock(mutex_);
  if (--held_[pool] > 0) return;
  held_.erase(pool);
  options_.erase(pool);
}
int Allocator::holders(PoolId pool) const {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(pool);
  return found == held_.end() ? 0 : found->second;
}
void Allocator::set_options(PoolId pool, PoolOptions options) {
  const std::lock_guard lock(mutex_);
  options_[pool] = options;
}

void Allocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  collect_waiting(true);
  free_segments();
}
void Allocator::empty_pool(PoolId pool) {
  const std::lock_guard lock(mutex_);
  collect_waiting(true);
  free_segments(&pool);
}

void Allocator::set_limit(size_t bytes) {
  const std::lock_guard lock(mutex_);
  limit_ = bytes;
}

void Allocator::out_of_memory(size_t nbytes) {
  ++stats_.failures;
  history_.note("oom", nullptr, nbytes, nullptr);
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

std::string Allocator::trace() const {
  const std::lock_guard lock(mutex_);
  return history_.json();
}

std::string Allocator::snapshot() {
  const std::lock_guard lock(mutex_);
  release_recent();
  std::ostringstream s;
  s << '[';
  const char* separator = "";
  for (const auto& [first, owned] : all_) {
    if (first->hole || (first->before && !first->before->hole)) continue;
    size_t size = 0, allocated = 0, active = 0, requested = 0;
    std::ostringstream blocks;
    for (const Block* b = first; b && !b->hole; b = b->after) {
      const char* state = b->waits  ? "active_pending_free"
                          : b->used ? "active_allocated"
                                    : "inactive";
      blocks << (size ? "," : "") << "{\"address\":" << reinterpret_cast<uintptr_t>(b->begin)
             << ",\"size\":" << b->size << ",\"requested_size\":" << b->requested
             << ",\"frames\":" << b->stack << ",\"state\":\"" << state << "\"}";
      size += b->size;
      if (b->used) active += b->size;
      if (b->used && !b->waits) allocated += b->size, requested += b->requested;
    }
    const Owner& owner = first->owner;
    s << separator << "{\"device\":" << device_
      << ",\"address\":" << reinterpret_cast<uintptr_t>(first->begin) << ",\"total_size\":" << size
      << ",\"allocated_size\":" << allocated << ",\"active_size\":" << active
      << ",\"requested_size\":" << requested << ",\"stream\":"
      << (owner.stream == kAnyStream ? 0 : reinterpret_cast<uintptr_t>(owner.stream))
      << ",\"segment_type\":\"" << (first->small ? "small" : "large")
      << "\",\"segment_pool_id\":[0," << owner.pool
      << "],\"is_expandable\":" << (first->range ? "true" : "false") << ",\"blocks\":["
      << blocks.str() << "]}";
    separator = ",";
  }
  s << ']';
  return s.str();
}

}  // namespace taeda::cuda
