// Where the allocator's segments come from: pieces of memory of the driver's, or ranges of
// addresses that memory is mapped to as it is needed.
#include <algorithm>
#include <iterator>

#include "kernels/cuda/runtime/allocator.h"
#include "kernels/cuda/runtime/device.h"

namespace taeda::cuda {
namespace {

// Small blocks share segments of 2 MiB; others have segments of at least 20 MiB, of whole 2 MiB.
// Ranges grow by as much.
constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kMostSmall = kMiB, kSmallSegment = 2 * kMiB;
constexpr size_t kLargeSegment = 20 * kMiB, kMostShared = 10 * kMiB, kWhole = 2 * kMiB;

size_t rounded(size_t n, size_t to) { return (n + to - 1) / to * to; }
size_t segment_size(size_t size) {
  if (size <= kMostSmall) return kSmallSegment;
  return size < kMostShared ? kLargeSegment : rounded(size, kWhole);
}

}  // namespace

bool Allocator::reserve(size_t size, DevicePointer* begin) {
  if (static_cast<size_t>(stats_.reserved.now) + size > limit_) return false;
  const BesideCapture beside;
  const int result = driver().allocate(begin, size);
  if (result == kOutOfMemory) return false;
  succeed(result, "allocating memory");
  return true;
}

Allocator::Block* Allocator::make_segment(size_t size, bool small, const Owner& owner) {
  if (settings_.collect_above > 0) collect_garbage(segment_size(size));
  if (settings_.expandable) return grow(size, small, owner);
  DevicePointer begin;
  size_t whole = segment_size(size);
  if (!reserve(whole, &begin)) {
    whole = rounded(size, kWhole);  // without room for others
    if (whole == segment_size(size) || !reserve(whole, &begin)) return nullptr;
  }
  stats_.reserved.add(static_cast<int64_t>(whole));
  stats_.segments.add(1);
  history_.note("segment_alloc", reinterpret_cast<void*>(begin), whole, owner.stream);
  return keep(
      {.begin = reinterpret_cast<char*>(begin), .size = whole, .owner = owner, .small = small});
}

size_t Allocator::total_memory() const {
  size_t bytes = 0;
  succeed(driver().device_memory(&bytes, device(device_).handle), "asking for a device's memory");
  return bytes;
}

// Gives segments that nothing uses back, those first that have been free for longest, where
// `wanted` bytes more would be above the threshold.
void Allocator::collect_garbage(size_t wanted) {
  if (!private_.empty()) return;  // while a graph is recorded, nobody may wait for the device
  const double all = static_cast<double>(std::min(limit_, total_memory()));
  const auto threshold = static_cast<size_t>(settings_.collect_above * all);
  const auto above = [&] { return static_cast<size_t>(stats_.reserved.now) + wanted > threshold; };
  if (!above()) return;
  release_recent();
  std::vector<Block*> whole;
  for (const auto& [kind, blocks] : free_)
    std::ranges::copy_if(blocks, std::back_inserter(whole),
                         [&](const Block* b) { return !b->range && unused(*b); });
  if (whole.empty()) return;
  std::ranges::sort(whole, {}, &Block::freed_at);
  succeed(driver().synchronize_context(), "waiting for the device");
  for (auto at = whole.begin(); at != whole.end() && above(); ++at) free_segment(*at);
}

// ---- ranges ----

Allocator::Range& Allocator::range_for(bool small, const Owner& owner) {
  const auto found = ranges_.find({owner, small});
  if (found != ranges_.end()) return *found->second;
  // More addresses than memory, since there may be holes.
  const size_t granule = small ? kSmallSegment : kLargeSegment;
  const size_t size = rounded(total_memory() / 8 * 9, granule);
  auto range = std::make_unique<Range>(device(device_).handle, size, granule);
  range->first = keep({.begin = range->addresses.begin(),
                       .size = size,
                       .owner = owner,
                       .small = small,
                       .used = true,
                       .range = range.get(),
                       .hole = true});
  return *ranges_.emplace(Kind{owner, small}, std::move(range)).first->second;
}

// A block of a range that has been given memory; null where there is not enough. It is mapped to
// the first addresses without memory that are enough, together with a free block before them.
Allocator::Block* Allocator::grow(size_t size, bool small, const Owner& owner) {
  const Range& range = range_for(small, owner);
  for (Block* hole = range.first; hole; hole = hole->after) {
    if (!hole->hole) continue;
    const Block* left = hole->before;
    const size_t there = left && !left->used ? left->size : 0;
    const size_t missing = rounded(size - there, range.addresses.granule());
    if (missing > hole->size) continue;
    if (!fill(hole, missing)) return nullptr;
    return take_free(size, small, owner);
  }
  return nullptr;
}

// Maps memory to the first `size` bytes of a hole: a free block, joined with its neighbours.
// False where there is not enough memory; nothing has changed then.
bool Allocator::fill(Block* hole, size_t size) {
  if (static_cast<size_t>(stats_.reserved.now) + size > limit_) return false;
  const BesideCapture beside;
  if (!hole->range->addresses.map(hole->begin, size, readers_)) return false;
  if (hole->size > size) {
    Block* rest = cut(hole, size);
    rest->hole = rest->used = true;
  }
  hole->hole = false;
  const bool left = hole->before && !hole->before->hole, right = hole->after && !hole->after->hole;
  stats_.reserved.add(static_cast<int64_t>(size));
  stats_.segments.add(1 - left - right);
  history_.note("segment_map", hole->begin, size, hole->owner.stream);
  release(hole);
  return true;
}

// Takes the memory of whole granules from a free block of a range.
void Allocator::empty(Block* b) {
  free_blocks(*b).erase(b);
  Range* range = b->range;
  const size_t granule = range->addresses.granule();
  const auto from = static_cast<size_t>(b->begin - range->addresses.begin());
  const size_t begin = rounded(from, granule), end = (from + b->size) / granule * granule;
  range->addresses.unmap(range->addresses.begin() + begin, end - begin);
  stats_.reserved.add(-static_cast<int64_t>(end - begin));
  history_.note("segment_unmap", range->addresses.begin() + begin, end - begin, b->owner.stream);
  if (end < from + b->size) {
    Block* rest = cut(b, end - from);
    free_blocks(*rest).insert(rest);
  }
  if (begin > from) {
    Block* middle = cut(b, begin - from);
    free_blocks(*b).insert(b);
    b = middle;
  }
  b->hole = b->used = true;
  const bool left = b->before && !b->before->hole, right = b->after && !b->after->hole;
  stats_.segments.add(left + right - 1);
  if (b->after && b->after->hole) absorb(b, b->after);
  if (b->before && b->before->hole) absorb(b->before, b);
  if (!range->first->hole || range->first->after) return;
  const Kind kind{range->first->owner, range->first->small};
  all_.erase(range->first);
  ranges_.erase(kind);
}

void Allocator::allow(int other_device) {
  const int handle = cuda::device(other_device).handle;
  const std::lock_guard lock(mutex_);
  readers_.push_back(handle);
  for (const auto& [kind, range] : ranges_) {
    for (const Block* b = range->first; b;) {
      const Block* end = b;  // of what has memory from b on
      while (end && !end->hole) end = end->after;
      const char* const at = end ? end->begin : range->addresses.begin() + range->addresses.size();
      if (at > b->begin)
        range->addresses.allow(b->begin, static_cast<size_t>(at - b->begin), handle);
      b = end ? end->after : nullptr;
    }
  }
}

// ---- giving back ----

// Whether the driver can have memory of a free block.
bool Allocator::unused(const Block& b) const {
  if (held_.contains(b.owner.pool)) return false;
  if (!b.range) return !b.before && !b.after;
  const size_t granule = b.range->addresses.granule();
  const auto from = static_cast<size_t>(b.begin - b.range->addresses.begin());
  return rounded(from, granule) + granule <= from + b.size;
}

void Allocator::free_segment(Block* b) {
  free_blocks(*b).erase(b);
  succeed(driver().deallocate(reinterpret_cast<DevicePointer>(b->begin)), "freeing memory");
  stats_.reserved.add(-static_cast<int64_t>(b->size));
  stats_.segments.add(-1);
  history_.note("segment_free", b->begin, b->size, b->owner.stream);
  all_.erase(b);
}

// Gives segments without a used block back, and unused granules of ranges, when all work is done.
void Allocator::free_segments(const PoolId* of_pool) {
  release_recent();
  std::vector<Block*> whole;
  for (const auto& [kind, blocks] : free_) {
    if (of_pool && kind.first.pool != *of_pool) continue;
    std::ranges::copy_if(blocks, std::back_inserter(whole),
                         [&](const Block* b) { return unused(*b); });
  }
  if (whole.empty()) return;
  succeed(driver().synchronize_context(), "waiting for the device");
  for (Block* b : whole) b->range ? empty(b) : free_segment(b);
}

}  // namespace taeda::cuda
