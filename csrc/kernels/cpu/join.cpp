#include "kernels/cpu/join.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/thread_pool.h"

namespace taeda::cpu {

namespace {

template <class T> void interleave(char* dst, const std::vector<Piece>& pieces, int64_t rows) {
  auto* to = reinterpret_cast<T*>(dst);
  auto width = static_cast<int64_t>(pieces.size());
  parallel_for(rows, std::max<int64_t>(1, 32768 / width), [&](int64_t begin, int64_t end) {
    for (int64_t k = 0; k < width; ++k) {
      auto* from = reinterpret_cast<const T*>(pieces[static_cast<size_t>(k)].data);
      T* o = to + k;
      for (int64_t r = begin; r < end; ++r) o[r * width] = from[r];
    }
  });
}

}  // namespace

void join_rows(char* dst, const std::vector<Piece>& pieces, int64_t rows) {
  constexpr size_t grain = 256 << 10;
  size_t row_bytes = 0;
  for (const Piece& p : pieces) row_bytes += p.row_bytes;
  if (rows == 1) {
    // Few long rows: the bytes of each piece are what is shared out.
    for (const Piece& p : pieces) {
      parallel_for(static_cast<int64_t>(p.row_bytes), grain, [&](int64_t begin, int64_t end) {
        std::memcpy(dst + begin, p.data + begin, static_cast<size_t>(end - begin));
      });
      dst += p.row_bytes;
    }
    return;
  }
  // Pieces of one element each, as when scalars are stacked along the last dimension: typed moves
  // beat memcpy.
  bool same_size = true;
  for (const Piece& p : pieces) same_size = same_size && p.row_bytes == pieces[0].row_bytes;
  if (same_size && !pieces.empty()) {
    switch (pieces[0].row_bytes) {
      case 1: return interleave<uint8_t>(dst, pieces, rows);
      case 2: return interleave<uint16_t>(dst, pieces, rows);
      case 4: return interleave<uint32_t>(dst, pieces, rows);
      case 8: return interleave<uint64_t>(dst, pieces, rows);
      default: break;
    }
  }
  auto rows_at_once =
      static_cast<int64_t>(std::max<size_t>(1, grain / std::max<size_t>(row_bytes, 1)));
  parallel_for(rows, rows_at_once, [&](int64_t begin, int64_t end) {
    char* to = dst + static_cast<size_t>(begin) * row_bytes;
    for (int64_t r = begin; r < end; ++r) {
      for (const Piece& p : pieces) {
        std::memcpy(to, p.data + static_cast<size_t>(r) * p.row_bytes, p.row_bytes);
        to += p.row_bytes;
      }
    }
  });
}

}  // namespace taeda::cpu
