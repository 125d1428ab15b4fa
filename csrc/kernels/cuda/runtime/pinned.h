// Pinned memory of the host, which devices copy from and to by themselves. What is freed is kept,
// and given out again when the copies that were started before are done.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/device.h"
#include "kernels/cuda/runtime/allocator.h"
#include "kernels/cuda/runtime/marks.h"

namespace taeda::cuda {

class PinnedCache {
 public:
  // At least `nbytes`, aligned to pages. Throws where the driver gives none.
  void* allocate(size_t nbytes);
  void deallocate(void* block) noexcept;
  // Whether `memory` is in a block that is in use. Then `stream` reads or writes it from now on.
  bool record_stream(const void* memory, int device, StreamHandle stream);
  // Gives all unused memory back to the driver.
  void empty();

  struct Stats {
    MemoryNumber allocated, reserved, blocks, segments;
  };
  Stats stats() const;
  void reset_peaks();
  void reset_totals();

 private:
  struct Block {
    char* begin;
    size_t size;
    std::set<StreamPlace> streams = {};
    bool kept = false;  // for a graph, whose replays copy from it or to it
  };
  struct Waiting {
    Marks marks;
    Block* block;
  };
  Block* find(const void* memory);
  Block* take_free(size_t size);
  Block* make(size_t size);
  void release(Block* b) { free_[b->size].push_back(b); }
  void collect_waiting(bool all);

  mutable std::mutex mutex_;
  std::map<const char*, Block> all_;  // by address
  std::set<const Block*> used_;
  std::map<size_t, std::vector<Block*>> free_;  // by size
  std::vector<Waiting> waiting_;
  Stats stats_;
};

PinnedCache& pinned_cache();

// Whether the driver knows the memory as pinned, whoever made it.
bool is_pinned(const void* memory);

// DeviceRuntime's copies, between the host and a device or two devices.
void copy_across(void* to, Device to_device, const void* from, Device from_device, size_t nbytes);
void copy_without_waiting(void* to, Device to_device, const void* from, Device from_device,
                          size_t nbytes);

}  // namespace taeda::cuda
