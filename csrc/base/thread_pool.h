// One pool of threads for everything that runs in parallel on the CPU.
//
// Work is cut into chunks by its size alone, never by the number of threads, so a kernel that
// combines per-chunk results in chunk order gives the same bits on any machine. Each thread has a
// contiguous range of them, the same in every call, so that its caches may still hold the data;
// when it has finished, it steals chunks from others. Idle threads sleep. The caller waits only for
// threads that have taken a chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace taeda {

// How many threads may work on one call, the caller included. From TAEDA_NUM_THREADS, else the CPUs
// that this process may use, by its affinity and the quotas of its control groups.
int get_num_threads();
void set_num_threads(int count);

// Whether this thread is inside a parallel_for now (where a further one runs inline).
bool in_parallel_region();

using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);

// The size of the chunks that n items are cut into; the last one may be shorter. At most 1024
// chunks.
constexpr int64_t chunk_size(int64_t n, int64_t grain) {
  constexpr int64_t most_chunks = 1024;
  const int64_t least = (n + most_chunks - 1) / most_chunks;
  return grain > least ? grain : least;
}

void run_chunks(int64_t n, int64_t grain, ChunkFunction function, void* context, bool in_order);

// Calls f(begin, end) for every chunk of [0, n), each at least `grain` long but the last; inline
// when there is only one. The first exception that a chunk throws is rethrown here, after which
// chunks not yet begun are skipped. `in_order`: chunks are taken in ascending order.
template <class F> void parallel_for(int64_t n, int64_t grain, F&& f, bool in_order = false) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (n <= grain) {
    f(int64_t{0}, n);
    return;
  }
  using Body = std::remove_reference_t<F>;
  auto call = [](void* context, int64_t begin, int64_t end) {
    (*static_cast<Body*>(context))(begin, end);
  };
  run_chunks(n, grain, call, const_cast<void*>(static_cast<const void*>(std::addressof(f))),
             in_order);
}

// Calls f(i) for every i of [0, n).
template <class F> void parallel_each(int64_t n, int64_t grain, F&& f) {
  parallel_for(n, grain, [&f](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// Calls f(begin, end) for chunks of [0, n) whose items may wait for those before them.
template <class F> void parallel_ordered(int64_t n, F&& f) { parallel_for(n, 1, f, true); }

}  // namespace taeda
