#include "kernels/cpu/common/partial_sums.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/reduce/simd/row_sums.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kAddedTogether = 1 << 14;  // elements that are worth a thread

template <class T> void sum_rows(const T* x, int64_t rows, int64_t step, int64_t columns, T* y) {
  using namespace simd;
  const RowSums& kernels = TAEDA_PICK(row_sums);
  if constexpr (sizeof(T) == 4) kernels.f32(x, rows, step, columns, y);
  else kernels.f64(x, rows, step, columns, y);
}

}  // namespace

template <class T> void add_parts(const T* x, int64_t parts, int64_t n, T* y) {
  constexpr int64_t line = 64;
  const int64_t grain = std::max(line, kAddedTogether / parts / line * line);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    sum_rows(x + begin, parts, n, end - begin, y + begin);
  });
}

template <class T> void add_lanes(const T* x, int64_t n, int64_t lanes, T* y) {
  using namespace simd;
  constexpr int64_t together = 64, max_lanes = 16, bytes = sizeof(T);
  const TransposeKernels& kernels = TAEDA_PICK(transpose_kernels);
  const Transpose transpose = bytes == 4 ? kernels.bytes4 : kernels.bytes8;
  alignas(64) T transposed[max_lanes * together];
  for (int64_t i = 0; i < n; i += together) {
    const int64_t some = std::min(together, n - i);
    transpose(reinterpret_cast<char*>(transposed), together * bytes,
              reinterpret_cast<const char*>(x + i * lanes), lanes * bytes, some, lanes);
    sum_rows<T>(transposed, lanes, together, some, y + i);
  }
}

template void add_parts(const float*, int64_t, int64_t, float*);
template void add_parts(const double*, int64_t, int64_t, double*);
template void add_lanes(const float*, int64_t, int64_t, float*);
template void add_lanes(const double*, int64_t, int64_t, double*);

}  // namespace taeda::cpu
