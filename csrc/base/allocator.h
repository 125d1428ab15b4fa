// The caching CPU allocator. Every tensor's memory comes from here.
//
// Sizes are rounded up to a size class, which follows from the size alone: blocks have no header,
// and the caller passes the requested size when it frees one. Small blocks (up to 64 KiB) go
// through a thread's own free lists without a lock; larger ones through one cache with a lock,
// which keeps freed blocks for the next request of their class.
#pragma once

#include <cstddef>
#include <cstdint>

namespace taeda::cpu {

constexpr size_t kAlignment = 64;
constexpr size_t kNoLimit = SIZE_MAX;

// Under AddressSanitizer nothing is cached or packed together, so that it sees every out-of-bounds
// access and use after free.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kPlainMalloc = true;
#else
constexpr bool kPlainMalloc = false;
#endif

struct MemoryStats {
  size_t allocated = 0;  // bytes in blocks that are in use
  size_t reserved = 0;   // bytes held from the operating system, in use or cached
  size_t peak =
      0;  // the most `allocated` has been since reset_peak() (small blocks counted with a delay)
  size_t limit = kNoLimit;
  uint64_t allocations = 0;   // blocks handed out so far
  uint64_t system_calls = 0;  // how many of those needed new memory from the system
};

// At least `nbytes` bytes, aligned to 64; nullptr for 0 bytes. Throws OutOfMemory, with the size
// asked for.
void* allocate(size_t nbytes);

// Gives a block back; `nbytes` is what allocate() was given. Any thread may free any block.
void deallocate(void* block, size_t nbytes) noexcept;

// Tells the system that the pages inside this part of a block are not needed (madvise). They stay
// readable and writable.
void discard(void* part, size_t nbytes) noexcept;

MemoryStats memory_stats();
void reset_peak();

// Limits the bytes held from the system; a request that exceeds it even after the cache is emptied
// throws OutOfMemory.
void set_limit(size_t nbytes);

// Returns cached blocks above 64 KiB to the system.
void empty_cache();

}  // namespace taeda::cpu

namespace taeda {
inline size_t host_bytes_in_use() { return cpu::memory_stats().allocated; }
}  // namespace taeda
