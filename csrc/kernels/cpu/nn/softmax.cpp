#include "kernels/softmax.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/nn/simd/softmax.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kSoftmaxGrain = 8192;  // elements worth a chunk

// Whether the rows of y are written by non-temporal stores: then each begins at a cache line.
template <class T> bool streams_rows(const SoftmaxShape& s, const T* y) {
  const int64_t bytes = s.size * static_cast<int64_t>(sizeof(T));
  return s.inner == 1 && bytes % 64 == 0 && is_streamed(s.outer * bytes) &&
         reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

// Calls rows(begin, end) where the rows to normalise are contiguous, else columns(offset, width)
// for neighbouring columns.
template <class R, class C>
void for_rows_or_columns(const SoftmaxShape& s, R&& rows, C&& columns,
                         int64_t row_grain = kSoftmaxGrain) {
  const int64_t size = std::max<int64_t>(s.size, 1);
  if (s.inner == 1) {
    parallel_for(s.outer, row_grain / size, rows);
    return;
  }
  // Narrower blocks take longer, but a few of them are needed for threads to share.
  const int64_t quarter = (s.outer * s.inner / 4 + 63) / 64 * 64;
  const int64_t width = std::min(s.inner, std::clamp<int64_t>(quarter, 64, simd::kSoftmaxColumns));
  const int64_t blocks = (s.inner + width - 1) / width;
  parallel_each(s.outer * blocks, kSoftmaxGrain / (size * width), [&](int64_t i) {
    const int64_t column = i % blocks * width;
    columns(i / blocks * s.size * s.inner + column, std::min(width, s.inner - column));
  });
}

template <class T> const typename simd::SoftmaxLoops<T>::Pair& softmax_loops(bool log) {
  const simd::SoftmaxLoops<T>& all = typed<T>(TAEDA_PICK(softmax_kernels));
  return log ? all.log_softmax : all.softmax;
}

template <class T> void softmax(const SoftmaxShape& s, bool log, const T* x, T* y) {
  const auto& f = softmax_loops<T>(log);
  const bool streamed = streams_rows(s, y);
  for_rows_or_columns(
      s,
      [&](int64_t begin, int64_t end) {
        f.rows(end - begin, s.size, x + begin * s.size, y + begin * s.size, streamed);
      },
      [&](int64_t at, int64_t width) { f.columns(s.size, s.inner, width, x + at, y + at); },
      streamed ? 8 * kSoftmaxGrain : kSoftmaxGrain);
}

template <class T>
void softmax_backward(const SoftmaxShape& s, bool log, const T* g, const T* y, T* gx) {
  const auto& f = softmax_loops<T>(log);
  const bool streamed = streams_rows(s, gx);
  for_rows_or_columns(
      s,
      [&](int64_t begin, int64_t end) {
        const int64_t at = begin * s.size;
        f.rows_backward(end - begin, s.size, g + at, y + at, gx + at, streamed);
      },
      [&](int64_t at, int64_t width) {
        f.columns_backward(s.size, s.inner, width, g + at, y + at, gx + at);
      });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(SoftmaxKernels, cpu::softmax<T>, cpu::softmax_backward<T>)

namespace taeda {
template <> const SoftmaxKernels<Half> SoftmaxKernels<Half>::cpu{};
template <> const SoftmaxKernels<BFloat16> SoftmaxKernels<BFloat16>::cpu{};
}  // namespace taeda
