#include "kernels/cpu/common/partial_sums.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/common/transpose.h"
#include "kernels/cpu/reduce/simd/reduce.h"

namespace taeda::cpu {

template <class T> void add_parts(const T* x, int64_t parts, int64_t n, T* y) {
  constexpr int64_t line = 64, worth = 1 << 14;  // elements for a thread
  const int64_t grain = std::max(line, worth / parts / line * line);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    typed<T>(TAEDA_PICK(row_sums))(x + begin, parts, n, end - begin, y + begin);
  });
}

template <class T> void add_lanes(const T* x, int64_t n, int64_t lanes, T* y) {
  constexpr int64_t together = 64, max_lanes = 16;
  alignas(64) T transposed[max_lanes * together];
  for (int64_t i = 0; i < n; i += together) {
    const int64_t some = std::min(together, n - i);
    transpose(x + i * lanes, lanes, some, lanes, transposed, together);
    typed<T>(TAEDA_PICK(row_sums))(transposed, lanes, together, some, y + i);
  }
}

template void add_parts(const float*, int64_t, int64_t, float*);
template void add_parts(const double*, int64_t, int64_t, double*);
template void add_lanes(const float*, int64_t, int64_t, float*);
template void add_lanes(const double*, int64_t, int64_t, double*);

}  // namespace taeda::cpu
