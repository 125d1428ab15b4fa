#include "kernels/cpu/embedding.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace taeda::cpu {

template <class T>
void add_rows(int64_t count, int64_t rows, int64_t width, const T* g, const int64_t* index,
              int64_t skip, T* out) {
  // Parts of the table are dealt out; each looks through all indices for its own. Few parts, so
  // that looking stays cheap.
  constexpr int64_t most_parts = 16, work = 1 << 15;
  const int64_t total = (rows + count) * std::max<int64_t>(width, 1);
  const int64_t parts = std::clamp<int64_t>(total / work, 1, most_parts);
  parallel_for(rows, (rows + parts - 1) / parts, [&](int64_t begin, int64_t end) {
    std::fill(out + begin * width, out + end * width, T(0));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = index[i];
      if (row < begin || row >= end || row == skip) continue;
      const T* __restrict from = g + i * width;
      T* __restrict to = out + row * width;
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
  });
}

template void add_rows(int64_t, int64_t, int64_t, const float*, const int64_t*, int64_t, float*);
template void add_rows(int64_t, int64_t, int64_t, const double*, const int64_t*, int64_t, double*);

}  // namespace taeda::cpu
