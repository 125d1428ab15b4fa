#include "kernels/join.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"

namespace taeda::cpu {

namespace {

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void zip(const T* __restrict a, const T* __restrict b,
                                                int64_t n, T* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    to[2 * i] = a[i];
    to[2 * i + 1] = b[i];
  }
}

template <class T> void interleave(void* dst, std::span<const JoinPiece> pieces, int64_t rows) {
  auto* to = static_cast<T*>(dst);
  auto width = static_cast<int64_t>(pieces.size());
  parallel_for(rows, 32768 / width, [&](int64_t begin, int64_t end) {
    if (width == 2) {
      zip(static_cast<const T*>(pieces[0].data) + begin,
          static_cast<const T*>(pieces[1].data) + begin, end - begin, to + 2 * begin);
      return;
    }
    for (int64_t k = 0; k < width; ++k) {
      auto* from = static_cast<const T*>(pieces[static_cast<size_t>(k)].data);
      T* o = to + k;
      for (int64_t r = begin; r < end; ++r) o[r * width] = from[r];
    }
  });
}

void join_rows(void* dst, std::span<const JoinPiece> pieces, int64_t rows) {
  // Pieces of one element each, as when scalars are stacked along the last dimension: typed moves
  // beat memcpy.
  bool same_size = true;
  for (const JoinPiece& p : pieces) same_size = same_size && p.row_bytes == pieces[0].row_bytes;
  if (same_size && !pieces.empty()) {
    switch (pieces[0].row_bytes) {
      case 1: return interleave<uint8_t>(dst, pieces, rows);
      case 2: return interleave<uint16_t>(dst, pieces, rows);
      case 4: return interleave<uint32_t>(dst, pieces, rows);
      case 8: return interleave<uint64_t>(dst, pieces, rows);
      default: break;
    }
  }
  size_t row_bytes = 0, shortest = SIZE_MAX;
  for (const JoinPiece& p : pieces) {
    row_bytes += p.row_bytes;
    shortest = std::min(shortest, p.row_bytes);
  }
  // The bytes of the result are what is shared out, wherever a piece ends.
  const int64_t total = rows * static_cast<int64_t>(row_bytes);
  const bool streamed = is_streamed(total) && shortest >= 1024;
  parallel_for(total, 256 << 10, [&](int64_t begin, int64_t end) {
    size_t row = static_cast<size_t>(begin) / row_bytes;
    size_t skip = static_cast<size_t>(begin) % row_bytes;
    size_t left = static_cast<size_t>(end - begin);
    char* to = static_cast<char*>(dst) + begin;
    for (; left > 0; ++row) {
      for (const JoinPiece& p : pieces) {
        if (skip >= p.row_bytes) {
          skip -= p.row_bytes;
          continue;
        }
        const size_t n = std::min(p.row_bytes - skip, left);
        const char* from = static_cast<const char*>(p.data) + row * p.row_bytes + skip;
        if (streamed) stream_copy(to, from, n);
        else std::memcpy(to, from, n);
        to += n;
        left -= n;
        skip = 0;
      }
    }
    if (streamed) stream_fence();
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::JoinKernels taeda::JoinKernels::cpu = {cpu::join_rows};
