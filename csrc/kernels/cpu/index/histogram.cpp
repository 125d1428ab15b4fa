#include "kernels/histogram.h"

#include <algorithm>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/index/extremes.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kFewBins = 4096;  // of which several tables fit into a cache
constexpr int64_t kParts = 16, kPart = 65536, kBlock = 512;

// Counts the bins of n elements: of a block of m from `first` on `bins_of` returns them, perhaps in
// the memory given to it, `bins` for what does not count. Where there are few bins, parts of the
// elements have tables of their own, four each: a count would wait for itself where a number comes
// again soon.
template <class F> void count_bins(int64_t n, int64_t bins, int64_t* out, F&& bins_of) {
  const bool few = bins <= kFewBins && n / 8 >= bins;
  const int64_t length = few ? std::max(kPart, (n + kParts - 1) / kParts) : n;
  const int64_t parts = few ? (n + length - 1) / length : 1;
  const auto width = static_cast<size_t>(bins) + 1;
  std::vector<uint32_t> tables(few ? 4 * width * static_cast<size_t>(parts) : 0);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    int32_t memory[kBlock];
    int64_t* const counts = out;  // copies, which no count can change
    const int64_t counted = few ? 0 : bins;
    for (int64_t p = begin; p < end; ++p) {
      uint32_t *a = tables.data() + 4 * width * static_cast<size_t>(p), *b = a + width,
               *c = b + width, *d = c + width;
      const int64_t last = std::min(n, (p + 1) * length);
      for (int64_t first = p * length; first < last; first += kBlock) {
        const int64_t m = std::min(kBlock, last - first);
        const auto* bin = bins_of(first, m, memory);
        int64_t i = 0;
        for (; few && i + 4 <= m; i += 4) {
          ++a[bin[i]];
          ++b[bin[i + 1]];
          ++c[bin[i + 2]];
          ++d[bin[i + 3]];
        }
        for (; few && i < m; ++i) ++a[bin[i]];
        for (; i < m; ++i) {
          if (static_cast<int64_t>(bin[i]) < counted) ++counts[bin[i]];
        }
      }
    }
  });
  for (size_t t = 0; t < tables.size(); t += width) {
    for (size_t i = 0; i + 1 < width; ++i) out[i] += static_cast<int64_t>(tables[t + i]);
  }
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void even_bins(const T* x, int64_t n, T low, T high,
                                                      int32_t bins, int32_t* bin) {
  for (int64_t i = 0; i < n; ++i) {
    const bool inside = x[i] >= low && x[i] <= high;
    const int32_t at = even_bin(inside ? x[i] : low, low, high, bins);
    bin[i] = inside ? at : bins;
  }
}

template <class F> void visit_whole(DType dtype, F&& f) {
  visit_real(dtype, "bincount", [&]<class T>(Tag<T> tag) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

std::pair<int64_t, int64_t> whole_range(const void* data, int64_t n, DType dtype) {
  int64_t least = 0, most = 0;
  visit_whole(dtype, [&]<class T>(Tag<T>) {
    const auto* x = static_cast<const T*>(data);
    const auto e = extremes_of(x, n);
    least = static_cast<int64_t>(e.least);
    most = static_cast<int64_t>(e.most);
  });
  return {least, most};
}

void count_whole(const void* data, int64_t n, DType dtype, int64_t bins, int64_t* out) {
  visit_whole(dtype, [&]<class T>(Tag<T>) {
    const auto* x = static_cast<const T*>(data);
    count_bins(n, bins, out, [x](int64_t first, int64_t, int32_t*) { return x + first; });
  });
}

template <class T>
void count_even(const T* x, int64_t n, T low, T high, int64_t bins, int64_t* out) {
  count_bins(n, bins, out, [&](int64_t first, int64_t m, int32_t* bin) {
    even_bins(x + first, m, low, high, static_cast<int32_t>(bins), bin);
    return bin;
  });
}

template <class T>
void count_between(const T* x, int64_t n, const T* edges, int64_t bins, int64_t* out) {
  const T low = edges[0], high = edges[bins], scale = static_cast<T>(bins) / (high - low);
  count_bins(n, bins, out, [&](int64_t first, int64_t m, int32_t* bin) {
    for (int64_t i = 0; i < m; ++i) {
      const T v = x[first + i];
      const bool inside = v >= low && v <= high;
      bin[i] = static_cast<int32_t>(inside ? bin_between(v, edges, bins, scale) : bins);
    }
    return bin;
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::CountKernels taeda::CountKernels::cpu = {cpu::whole_range, cpu::count_whole};
TAEDA_FLOAT_KERNELS(HistogramKernels, cpu::count_even<T>, cpu::count_between<T>)
