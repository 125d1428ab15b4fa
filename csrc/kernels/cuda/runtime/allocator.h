// Memory of one device. What is freed is kept and given out again on the same stream, without
// waiting: work on a stream is done in order.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

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

class Allocator {
 public:
  explicit Allocator(int device) : device_(device) {}

  // At least `nbytes`, aligned to 512, for use on `stream`. Throws DeviceOutOfMemory. The device's
  // context is current, here and below.
  void* allocate(size_t nbytes, StreamHandle stream);
  // Reused on its stream at once, and anywhere else after the work on other streams that
  // record_stream() was told of.
  void deallocate(void* memory) noexcept;
  void record_stream(void* memory, int device, StreamHandle stream);
  // Until end_private(), what is allocated on `stream` comes from the memory `pool` alone, as if
  // that was another stream. hold() keeps a pool's memory from being given back to the driver, as
  // often as it is called before let_go().
  void begin_private(StreamHandle stream, StreamHandle pool);
  void end_private(StreamHandle stream);
  void hold(StreamHandle pool);
  void let_go(StreamHandle pool);
  // Gives all unused memory back to the driver.
  void empty_cache();
  // No more than this part of the device's memory is taken.
  void set_limit(size_t bytes);

  MemoryStats stats() const;
  void reset_peaks();
  void reset_totals();
  // Each segment with its blocks, as JSON.
  std::string snapshot();

 private:
  struct Block {
    char* begin;
    size_t size, requested = 0;
    StreamHandle stream;
    bool small;                                 // the pool that its segment belongs to
    bool used = false;                          // or among the recent ones
    Block *before = nullptr, *after = nullptr;  // its neighbours in the segment
    std::set<StreamPlace> other_streams = {};
    bool waits = false;  // for them, after it was freed
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->begin < b->begin;
    }
  };
  using Pool = std::set<Block*, BySize>;
  struct Waiting {
    Marks marks;
    Block* block;
  };

  // Small blocks that were freed last, by size: given out again as they are, which takes no search
  // and no memory of the host.
  static constexpr size_t kRecentSizes = 32, kMostRecent = 64;
  struct Recent {
    StreamHandle stream;
    std::vector<Block*> by_size[kRecentSizes];
  };

  Block* take_recent(size_t size, StreamHandle stream);
  bool keep_recent(Block* b);
  void release_recent();
  void count_use(Block* b, size_t nbytes);
  Pool& pool(const Block& b) { return free_[{b.stream, b.small}]; }
  Block* take_free(size_t size, bool small, StreamHandle stream);
  Block* make_segment(size_t size, bool small, StreamHandle stream);
  bool reserve(size_t size, DevicePointer* begin);
  void split(Block* b, size_t size);
  void release(Block* b);
  void absorb(Block* b, Block* neighbour);
  void wait_for_others(Block* b);
  void collect_waiting(bool all);
  void free_segments();
  Block* keep(Block made);
  [[noreturn]] void out_of_memory(size_t nbytes);

  mutable std::mutex mutex_;
  int device_;
  size_t limit_ = SIZE_MAX;
  std::unordered_map<void*, Block*> used_;
  std::vector<Recent> recent_;
  std::map<std::pair<StreamHandle, bool>, Pool> free_;
  std::unordered_map<const Block*, std::unique_ptr<Block>> all_;
  std::vector<Waiting> waiting_;
  std::map<StreamHandle, StreamHandle> private_;  // pools of streams
  std::map<StreamHandle, int> held_;
  MemoryStats stats_;
};

}  // namespace taeda::cuda
