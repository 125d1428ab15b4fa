// Memory of one device. What is freed is kept and given out again on the same stream, without
// waiting: work on a stream is done in order.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/runtime/address_range.h"
#include "kernels/cuda/runtime/allocator_settings.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/history.h"
#include "kernels/cuda/runtime/marks.h"

namespace taeda::cuda {

struct MemoryNumber {
  int64_t now = 0, peak = 0, in_all = 0, freed = 0;
  void add(int64_t n) {
    now += n;
    if (n > 0) in_all += n;
    else freed -= n;
    if (now > peak) peak = now;
  }
};
struct MemoryStats {
  MemoryNumber allocated, reserved, requested;  // bytes: in blocks, from the driver, asked for
  MemoryNumber blocks, segments;                // how many
  int64_t retries = 0, failures = 0;            // of allocations, when the device was full
};

struct PoolOptions {
  bool last_resort = false;  // its free memory may be used where there is no other
  bool no_split = false;
};

class Allocator {
 public:
  explicit Allocator(int device);

  // At least `nbytes`, aligned to 512, for use on `stream`. Throws DeviceOutOfMemory. The device's
  // context is current, here and below.
  void* allocate(size_t nbytes, StreamHandle stream);
  // Reused on its stream at once, and anywhere else after the work on other streams that
  // record_stream() was told of.
  void deallocate(void* memory) noexcept;
  void record_stream(void* memory, int device, StreamHandle stream);
  // Until end_private(), what is allocated on `stream` comes from `pool` alone, whatever stream its
  // memory was used on before.
  void begin_private(StreamHandle stream, PoolId pool);
  void end_private(StreamHandle stream);
  // hold() keeps a pool's memory from being given back to the driver, as often as it is called
  // before let_go().
  void hold(PoolId pool);
  void let_go(PoolId pool);
  int holders(PoolId pool) const;
  void set_options(PoolId pool, PoolOptions options);
  // Gives all unused memory back to the driver, but what is held; or that of a pool alone.
  void empty_cache();
  void empty_pool(PoolId pool);
  // Another device reads and writes this one's memory from now on.
  void allow(int other_device);
  // No more than this part of the device's memory is taken.
  void set_limit(size_t bytes);
  void set_settings(const AllocatorSettings& settings);
  void set_history(const HistorySettings& settings, bool clear);

  MemoryStats stats() const;
  void reset_peaks();
  void reset_totals();
  // Each segment with its blocks, as JSON.
  std::string snapshot();
  // What was done, as JSON.
  std::string trace() const;

 private:
  struct Range;
  struct Owner {
    StreamHandle stream;
    PoolId pool = 0;
    auto operator<=>(const Owner&) const = default;
  };
  struct Block {
    char* begin;
    size_t size, requested = 0;
    Owner owner;
    bool small;                                 // the pool that its segment belongs to
    bool used = false;                          // or among the recent ones, or without memory
    Block *before = nullptr, *after = nullptr;  // its neighbours in the segment
    Range* range = nullptr;                     // where the segment can grow
    bool hole = false;                          // addresses of a range that have no memory
    std::set<StreamPlace> other_streams = {};
    bool waits = false;        // for them, after it was freed
    uint64_t freed_at = 0;     // in frees of the allocator
    int64_t stack = kNoStack;  // that asked for it
  };
  struct Range {
    AddressRange addresses;
    Block* first = nullptr;
    Range(int device, size_t size, size_t granule) : addresses(device, size, granule) {}
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->begin < b->begin;
    }
  };
  using Kind = std::pair<Owner, bool>;  // whose memory, and whether it is for small blocks
  using FreeBlocks = std::set<Block*, BySize>;
  struct Waiting {
    Marks marks;
    Block* block;
  };

  // Small blocks that were freed last, by size: given out again as they are, which takes no search
  // and no memory of the host.
  static constexpr size_t kRecentSizes = 32, kMostRecent = 64;
  struct Recent {
    Owner owner;
    std::vector<Block*> by_size[kRecentSizes];
  };

  Owner owner_of(StreamHandle stream) const;
  size_t block_size(size_t nbytes) const;
  Block* take_recent(size_t size, const Owner& owner);
  bool keep_recent(Block* b);
  void release_recent();
  void count_use(Block* b, size_t nbytes, int64_t stack);
  FreeBlocks& free_blocks(const Block& b) { return free_[{b.owner, b.small}]; }
  Block* take_free(size_t size, bool small, const Owner& owner);
  Block* take_last_resort(size_t size, bool small, StreamHandle stream);
  bool worth_splitting(const Block& b, size_t size) const;
  Block* cut(Block* b, size_t size);
  void release(Block* b);
  void absorb(Block* b, Block* neighbour);
  void wait_for_others(Block* b);
  void collect_waiting(bool all);
  Block* keep(Block made);
  [[noreturn]] void out_of_memory(size_t nbytes);

  // Segments, in segments.cpp.
  Block* make_segment(size_t size, bool small, const Owner& owner);
  bool reserve(size_t size, DevicePointer* begin);
  size_t total_memory() const;
  void collect_garbage(size_t wanted);
  Block* grow(size_t size, bool small, const Owner& owner);
  Range& range_for(bool small, const Owner& owner);
  bool fill(Block* hole, size_t size);
  void empty(Block* b);
  void free_segment(Block* b);
  bool unused(const Block& b) const;
  void free_segments(const PoolId* of_pool = nullptr);

  mutable std::mutex mutex_;
  int device_;
  size_t limit_ = SIZE_MAX;
  AllocatorSettings settings_;
  std::unordered_map<void*, Block*> used_;
  std::vector<Recent> recent_;
  std::map<Kind, FreeBlocks> free_;
  std::map<Kind, std::unique_ptr<Range>> ranges_;
  std::vector<int> readers_;  // other devices
  std::unordered_map<const Block*, std::unique_ptr<Block>> all_;
  std::vector<Waiting> waiting_;
  std::map<StreamHandle, PoolId> private_;  // pools of streams
  std::map<PoolId, int> held_;
  std::map<PoolId, PoolOptions> options_;
  uint64_t frees_ = 0;
  MemoryStats stats_;
  History history_;
};

}  // namespace taeda::cuda
