#include "kernels/cpu/join.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"

namespace taeda::cpu {

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
  auto rows_at_once = static_cast<int64_t>(std::max<size_t>(1, grain / std::max<size_t>(row_bytes, 1)));
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
