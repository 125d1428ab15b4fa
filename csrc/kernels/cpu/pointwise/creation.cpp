#include "kernels/creation.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/common/stream.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kFillGrain = 32768;  // elements that are worth a thread's attention

[[gnu::optimize("O3")]] void step_up(uint64_t* to, int64_t n, uint64_t from, uint64_t step) {
  for (int64_t i = 0; i < n; ++i, from += step) to[i] = from;
}

void range(int64_t n, uint64_t start, uint64_t step, uint64_t* y) {
  parallel_for(n, kFillGrain, [&](int64_t begin, int64_t end) {
    step_up(y + begin, end - begin, start + static_cast<uint64_t>(begin) * step, step);
  });
}

void triangle(const TriangleShape& s, const void* x, void* y) {
  auto* data = static_cast<char*>(y);
  const auto* source = static_cast<const char*>(x);
  const int64_t row_bytes = s.columns * s.item;
  const bool streamed = x && is_streamed(s.all_rows * row_bytes) && row_bytes >= 1024;
  parallel_for(s.all_rows, kFillGrain / s.columns, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = std::clamp<int64_t>(r % s.rows + s.diagonal + s.lower, 0, s.columns);
      const int64_t row = r * row_bytes, cut = row + at * s.item;
      const int64_t stop = row + row_bytes;
      const auto gone = static_cast<size_t>(s.lower ? stop - cut : cut - row);
      const auto kept = static_cast<size_t>(row_bytes) - gone;
      const int64_t from = s.lower ? row : cut;
      std::memset(data + (s.lower ? cut : row), 0, gone);
      if (streamed) stream_copy(data + from, source + from, kept);
      else if (x) std::memcpy(data + from, source + from, kept);
    }
    if (streamed) stream_fence();
  });
}

void triangle_indices(const TriangleShape& s, int64_t count, int64_t* y) {
  const int64_t* const end = y + count;
  // The first row that has elements.
  for (int64_t r = std::max<int64_t>(0, s.lower ? -s.diagonal - 1 : 0); y < end; ++r) {
    const int64_t cut = std::clamp<int64_t>(r + s.diagonal + s.lower, 0, s.columns);
    const int64_t stop = s.lower ? cut : s.columns;
    for (int64_t k = s.lower ? 0 : cut; k < stop; ++k, ++y) {
      y[0] = r;
      y[count] = k;
    }
  }
}

}  // namespace
}  // namespace taeda::cpu

const taeda::CreationKernels taeda::CreationKernels::cpu = {cpu::range, cpu::triangle,
                                                            cpu::triangle_indices};
