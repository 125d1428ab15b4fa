#include "base/allocator.h"

#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "base/error.h"
#include "base/tls.h"

namespace taeda::cpu {
namespace {

constexpr bool kPlain = kPlainMalloc;
constexpr size_t kSmallest = 64;
constexpr size_t kLargestSmall = size_t{64} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kArena = size_t{1} << 20;  // small blocks are cut from these, and never returned
constexpr size_t kThreadCacheBytes = size_t{256} << 10;  // most that a thread keeps of a class
constexpr size_t kSlack = size_t{64} << 20;

// Size classes: 64 * {1, 2, 3, 4}, then `1 << Bits` steps per doubling, so at most 1 / 2^Bits of a
// block is unused.
template <int Bits> struct Classes {
  static constexpr int index(size_t nbytes) {
    const size_t units = (nbytes + kSmallest - 1) / kSmallest;
    if (units <= (size_t{1} << Bits)) return static_cast<int>(units) - 1;
    const int shift = std::bit_width(units - 1) - Bits - 1;
    const size_t steps = (units - 1) >> shift;  // in [2^Bits, 2^(Bits+1))
    return static_cast<int>((size_t(shift) << Bits) + steps);
  }
  static constexpr size_t bytes(int index) {
    const int first = 1 << Bits;
    if (index < first) return kSmallest * (size_t(index) + 1);
    const int shift = (index - first) >> Bits;
    const size_t steps = size_t(first) + size_t((index - first) & (first - 1)) + 1;
    return kSmallest * (steps << shift);
  }
};
using Small = Classes<2>;
using Large = Classes<3>;

constexpr int kSmallClasses = 40;

// Lookup tables for the fast path, computed at compile time.
struct SmallTable {
  std::array<uint8_t, kLargestSmall / kSmallest + 1> index{};  // by size in units, rounded up
  std::array<uint32_t, kSmallClasses> bytes{}, most{};         // `most`: blocks in a thread's list
  constexpr SmallTable() {
    for (size_t units = 1; units < index.size(); ++units)
      index[units] = static_cast<uint8_t>(Small::index(units * kSmallest));
    for (size_t c = 0; c < bytes.size(); ++c) {
      bytes[c] = static_cast<uint32_t>(Small::bytes(static_cast<int>(c)));
      most[c] = static_cast<uint32_t>(kThreadCacheBytes / bytes[c]);
    }
  }
  size_t class_of(size_t nbytes) const { return index[(nbytes + kSmallest - 1) / kSmallest]; }
};
constexpr SmallTable kSmall;

constexpr int kLargeClasses = 440;
constexpr size_t kMostBytes = size_t{1} << (kPlain ? 39 : 56);  // AddressSanitizer aborts on more

struct FreeBlock {
  FreeBlock* next;
};

struct FreeList {
  FreeBlock* head = nullptr;
  size_t count = 0;

  void push(void* p) {
    head = new (p) FreeBlock{head};
    ++count;
  }
  void* pop() {
    FreeBlock* block = head;
    if (block != nullptr) {
      head = block->next;
      --count;
    }
    return block;
  }
};

struct CachedBlock {
  void* memory;
  uint64_t stamp;  // when it was freed
};

// Counters that one thread writes and any may read.
struct Counters {
  std::atomic<int64_t> bytes{0};
  std::atomic<uint64_t> allocations{0};

  void add(int64_t n, uint64_t blocks) {
    bytes.store(bytes.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    allocations.store(allocations.load(std::memory_order_relaxed) + blocks,
                      std::memory_order_relaxed);
  }
};

struct ThreadCache;

// All that threads share, under one mutex.
struct Global {
  std::mutex mutex;
  FreeList small[kSmallClasses];
  std::deque<CachedBlock> large[kLargeClasses];
  char* arena = nullptr;
  size_t arena_left = 0;
  uint64_t clock = 0;

  int64_t large_bytes = 0;  // in use
  int64_t small_bytes = 0;  // in use, of threads that have ended
  size_t reserved = 0;
  size_t peak = 0;
  size_t limit = kNoLimit;
  uint64_t allocations = 0;
  uint64_t system_calls = 0;
  ThreadCache* threads = nullptr;

  size_t in_use() const;
  void note_peak() {
    const size_t now = in_use();
    if (now > peak) peak = now;
  }
};

void lock_for_fork();
void unlock_after_fork();

// Never destroyed: tensors may be freed after static destructors have run.
Global& global() {
  static Global* const g = [] {
    auto* made = new Global;
    pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
    return made;
  }();
  return *g;
}

void lock_for_fork() { global().mutex.lock(); }
void unlock_after_fork() { global().mutex.unlock(); }

struct ThreadCache {
  FreeList lists[kSmallClasses];
  Counters counters;
  ThreadCache* next = nullptr;
  ThreadCache* previous = nullptr;

  ThreadCache() {
    Global& g = global();
    std::lock_guard lock(g.mutex);
    next = g.threads;
    if (next != nullptr) next->previous = this;
    g.threads = this;
  }
  ~ThreadCache();
};

size_t Global::in_use() const {
  int64_t total = large_bytes + small_bytes;
  for (const ThreadCache* t = threads; t != nullptr; t = t->next) {
    total += t->counters.bytes.load(std::memory_order_relaxed);
  }
  return total > 0 ? static_cast<size_t>(total) : 0;
}

// The fast path reads only a pointer and a flag. The cache is created at a thread's first
// allocation and released when the thread exits; destructors that run after that use the global
// lists.
TAEDA_FAST_TLS thread_local constinit ThreadCache* t_cache = nullptr;
TAEDA_FAST_TLS thread_local constinit bool t_ended = false;

ThreadCache::~ThreadCache() {
  t_cache = nullptr;
  t_ended = true;
  Global& g = global();
  std::lock_guard lock(g.mutex);
  for (int c = 0; c < kSmallClasses; ++c) {
    while (void* p = lists[c].pop()) g.small[c].push(p);
  }
  g.small_bytes += counters.bytes.load(std::memory_order_relaxed);
  g.allocations += counters.allocations.load(std::memory_order_relaxed);
  if (next != nullptr) next->previous = previous;
  (previous != nullptr ? previous->next : g.threads) = next;
}

[[gnu::noinline]] ThreadCache* make_thread_cache() {
  if (t_ended) return nullptr;
  thread_local const auto cache = std::make_unique<ThreadCache>();
  return t_cache = cache.get();
}

// ---- Memory from the system
// ----------------------------------------------------------------------------------------

void* map_memory(size_t nbytes) {
  if (nbytes < kHugePage) {
    void* p = nullptr;
    return posix_memalign(&p, kAlignment, nbytes) == 0 ? p : nullptr;
  }
  // Over-allocate for the alignment, then unmap the unaligned ends.
  const size_t span = nbytes + kHugePage;
  void* raw = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (address + kHugePage - 1) & ~(kHugePage - 1);
  if (aligned > address) munmap(raw, aligned - address);
  const uintptr_t end = aligned + nbytes;
  if (address + span > end) munmap(reinterpret_cast<void*>(end), address + span - end);
#ifdef MADV_HUGEPAGE
  madvise(reinterpret_cast<void*>(aligned), nbytes, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<void*>(aligned);
}

void unmap_memory(void* p, size_t nbytes) {
  if (nbytes < kHugePage) {
    std::free(p);
  } else {
    munmap(p, nbytes);
  }
}

// Returns the block that has been cached longest to the system; false if nothing is cached.
bool release_oldest(Global& g) {
  int oldest = -1;
  for (int c = 0; c < kLargeClasses; ++c) {
    if (g.large[c].empty()) continue;
    if (oldest < 0 || g.large[c].front().stamp < g.large[oldest].front().stamp) oldest = c;
  }
  if (oldest < 0) return false;
  void* p = g.large[oldest].front().memory;
  g.large[oldest].pop_front();
  g.reserved -= Large::bytes(oldest);
  unmap_memory(p, Large::bytes(oldest));
  return true;
}

// Maps new memory within the limit, releasing cached blocks first if necessary. The mutex must be
// held.
void* obtain(Global& g, size_t nbytes, size_t asked) {
  // Bound the cache, so that blocks of sizes no longer requested do not pile up: hold at most a
  // quarter more than the peak in use.
  const size_t comfortable = g.peak + g.peak / 4 + kSlack;
  while (g.reserved + nbytes > comfortable && release_oldest(g)) {
  }
  while (g.limit - nbytes < g.reserved || nbytes > g.limit) {
    if (!release_oldest(g)) {
      fail<OutOfMemory>("out of memory: tried to allocate ", asked,
                        " bytes on the CPU, but the limit is ", g.limit, " bytes and ", g.reserved,
                        " are held (", g.in_use(), " in use)");
    }
  }
  void* p = map_memory(nbytes);
  while (p == nullptr && release_oldest(g)) p = map_memory(nbytes);
  if (p == nullptr) {
    fail<OutOfMemory>("out of memory: tried to allocate ", asked, " bytes on the CPU (", g.in_use(),
                      " bytes are in use)");
  }
  g.reserved += nbytes;
  ++g.system_calls;
  return p;
}

// One block of a class from the shared list or the arena. Called with the mutex held.
void* small_block(Global& g, int c) {
  if (void* p = g.small[c].pop()) return p;
  const size_t size = Small::bytes(c);
  if (g.arena_left < size) {
    // The rest of the old arena becomes free blocks of the largest classes that fit.
    while (g.arena_left >= kSmallest) {
      int fit = Small::index(g.arena_left);
      if (Small::bytes(fit) > g.arena_left) --fit;
      g.small[fit].push(g.arena);
      g.arena += Small::bytes(fit);
      g.arena_left -= Small::bytes(fit);
    }
    g.arena = static_cast<char*>(obtain(g, kArena, size));
    g.arena_left = kArena;
  }
  void* p = g.arena;
  g.arena += size;
  g.arena_left -= size;
  return p;
}

// Takes a batch from the shared list, so that the lock is paid once for many blocks.
[[gnu::noinline]] void* refill(ThreadCache* cache, int c) {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  const size_t size = Small::bytes(c);
  void* p = small_block(g, c);
  g.note_peak();
  if (cache == nullptr) {
    g.small_bytes += static_cast<int64_t>(size);
    ++g.allocations;
    return p;
  }
  const size_t batch = size >= 4096 ? 2 : 8192 / size;
  for (size_t i = 1; i < batch && (g.small[c].head != nullptr || g.arena_left >= size); ++i) {
    cache->lists[c].push(small_block(g, c));
  }
  cache->counters.add(static_cast<int64_t>(size), 1);
  return p;
}

[[gnu::noinline]] void flush_half(FreeList& list, int c) {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  for (size_t keep = list.count / 2; list.count > keep;) g.small[c].push(list.pop());
}

[[gnu::noinline]] void* allocate_large(size_t nbytes) {
  if (nbytes > kMostBytes)
    fail<OutOfMemory>("out of memory: tried to allocate ", nbytes, " bytes on the CPU");
  const int c = Large::index(nbytes);
  const size_t size = Large::bytes(c);
  Global& g = global();
  std::lock_guard lock(g.mutex);
  void* p;
  if (!g.large[c].empty()) {
    p = g.large[c].back().memory;  // most recently freed: most likely still in a CPU cache
    g.large[c].pop_back();
  } else {
    p = obtain(g, size, nbytes);
  }
  g.large_bytes += static_cast<int64_t>(size);
  ++g.allocations;
  g.note_peak();
  return p;
}

[[gnu::noinline]] void deallocate_large(void* p, size_t nbytes) {
  const int c = Large::index(nbytes);
  const size_t size = Large::bytes(c);
  Global& g = global();
  std::lock_guard lock(g.mutex);
  g.large_bytes -= static_cast<int64_t>(size);
  try {
    g.large[c].push_back({p, ++g.clock});
  } catch (const std::bad_alloc&) {  // no memory for the free list entry: unmap the block
    g.reserved -= size;
    unmap_memory(p, size);
  }
}

// A thread's first small block, and those allocated while it exits.
[[gnu::noinline]] void* allocate_without_cache(size_t nbytes, size_t c) {
  return make_thread_cache() ? allocate(nbytes) : refill(nullptr, static_cast<int>(c));
}
[[gnu::noinline]] void deallocate_without_cache(void* block, size_t nbytes, size_t c) {
  if (make_thread_cache()) return deallocate(block, nbytes);
  Global& g = global();
  std::lock_guard lock(g.mutex);
  g.small[c].push(block);
  g.small_bytes -= kSmall.bytes[c];
}

// ---- Without caching
// -----------------------------------------------------------------------------------------------

void* plain_allocate(size_t nbytes) {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  void* p = nullptr;
  const bool allowed = nbytes <= kMostBytes && nbytes <= g.limit && g.reserved <= g.limit - nbytes;
  if (!allowed || posix_memalign(&p, kAlignment, nbytes) != 0) {
    fail<OutOfMemory>("out of memory: tried to allocate ", nbytes, " bytes on the CPU (",
                      g.reserved, " bytes are in use)");
  }
  g.large_bytes += static_cast<int64_t>(nbytes);
  g.reserved += nbytes;
  ++g.allocations;
  ++g.system_calls;
  g.note_peak();
  return p;
}

void plain_deallocate(void* p, size_t nbytes) {
  std::free(p);
  Global& g = global();
  std::lock_guard lock(g.mutex);
  g.large_bytes -= static_cast<int64_t>(nbytes);
  g.reserved -= nbytes;
}

}  // namespace

void* allocate(size_t nbytes) {
  if (nbytes == 0) return nullptr;
  if constexpr (kPlain) return plain_allocate(nbytes);
  if (nbytes > kLargestSmall) return allocate_large(nbytes);
  const size_t c = kSmall.class_of(nbytes);
  ThreadCache* cache = t_cache;
  if (cache == nullptr) [[unlikely]]
    return allocate_without_cache(nbytes, c);
  void* p = cache->lists[c].pop();
  if (p == nullptr) [[unlikely]]
    return refill(cache, static_cast<int>(c));
  cache->counters.add(kSmall.bytes[c], 1);
  return p;
}

void deallocate(void* block, size_t nbytes) noexcept {
  if (block == nullptr) return;
  if constexpr (kPlain) return plain_deallocate(block, nbytes);
  if (nbytes > kLargestSmall) return deallocate_large(block, nbytes);
  const size_t c = kSmall.class_of(nbytes);
  ThreadCache* cache = t_cache;
  if (cache == nullptr) [[unlikely]]
    return deallocate_without_cache(block, nbytes, c);
  FreeList& list = cache->lists[c];
  list.push(block);
  cache->counters.add(-int64_t{kSmall.bytes[c]}, 0);
  if (list.count > kSmall.most[c]) [[unlikely]]
    flush_half(list, static_cast<int>(c));
}

void discard(void* part, size_t nbytes) noexcept {
#ifdef MADV_DONTNEED
  constexpr uintptr_t page = 1 << 16;  // at least as large as the system's
  const auto address = reinterpret_cast<uintptr_t>(part);
  const uintptr_t begin = (address + page - 1) & ~(page - 1),
                  end = (address + nbytes) & ~(page - 1);
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#endif
}

MemoryStats memory_stats() {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  g.note_peak();
  MemoryStats s;
  s.allocated = g.in_use();
  s.reserved = g.reserved;
  s.peak = g.peak;
  s.limit = g.limit;
  s.allocations = g.allocations;
  for (const ThreadCache* t = g.threads; t != nullptr; t = t->next) {
    s.allocations += t->counters.allocations.load(std::memory_order_relaxed);
  }
  s.system_calls = g.system_calls;
  return s;
}

void reset_peak() {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  g.peak = g.in_use();
}

void set_limit(size_t nbytes) {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  g.limit = nbytes;
}

void empty_cache() {
  Global& g = global();
  std::lock_guard lock(g.mutex);
  while (release_oldest(g)) {
  }
}

}  // namespace taeda::cpu
