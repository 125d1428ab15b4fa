// Binary searches in sorted lines, and whether an element is one of others.
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/index/sort_keys.h"

namespace taeda::cpu {

namespace {
// Where `Together` values belong in a sorted line, each in as many steps and without a branch,
// which could not be predicted; none waits for another.
template <bool Right, int Together, class T>
void find_some(const T* sorted, int64_t length, const T* values, int64_t* out) {
  const auto goes_right = [](T at, T value) {
    return static_cast<int64_t>(Right ? !(at > value) : !(at >= value));
  };
  int64_t at[Together] = {};
  for (int64_t left = length; left > 1;) {
    const int64_t half = left / 2;
#pragma GCC unroll 8
    for (int t = 0; t < Together; ++t)
      at[t] += half & -goes_right(sorted[at[t] + half - 1], values[t]);
    left -= half;
  }
  for (int t = 0; t < Together; ++t) out[t] = at[t] + goes_right(sorted[at[t]], values[t]);
}
template <bool Right, class T>
void find_all(const T* sorted, int64_t length, const T* values, int64_t n, int64_t* out) {
  constexpr int together = 8;
  int64_t i = 0;
  for (; i + together <= n; i += together)
    find_some<Right, together>(sorted, length, values + i, out + i);
  for (; i < n; ++i) find_some<Right, 1>(sorted, length, values + i, out + i);
}

void search_sorted(const void* sorted, const int64_t* order, const void* values, int64_t* out,
                   int64_t lines, int64_t line_length, int64_t values_per_line, DType dtype,
                   bool right) {
  visit_real(dtype, "searchsorted", [&]<class T>(Tag<T>) {
    auto* s = static_cast<const T*>(sorted);
    auto* v = static_cast<const T*>(values);
    bool shared = lines == 1;
    int64_t total = values_per_line * lines;
    if (shared && !order && !is_nan(s[line_length - 1])) {
      const auto run = right ? find_all<true, T> : find_all<false, T>;
      return parallel_for(total, 2048, [&](int64_t begin, int64_t end) {
        run(s, line_length, v + begin, end - begin, out + begin);
      });
    }
    parallel_for(total, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t base = shared ? 0 : i / values_per_line * line_length, low = 0, high = line_length;
        T value = v[i];
        while (low < high) {
          int64_t middle = low + (high - low) / 2;
          T m = s[base + (order ? order[base + middle] : middle)];
          // Written so that NaN goes to the end.
          const bool goes_right = right ? !(m > value) : !(m >= value);
          if (goes_right) low = middle + 1;
          else high = middle;
        }
        out[i] = low;
      }
    });
  });
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void mark_equal(const T* __restrict x, int64_t n, T value,
                                                       uint8_t* __restrict found) {
  for (int64_t i = 0; i < n; ++i) found[i] |= static_cast<uint8_t>(x[i] == value);
}

void find_members(const void* x, int64_t n, const void* tests, int64_t count, DType dtype,
                  uint8_t* found) {
  constexpr int64_t few = 16, block = 1024;
  visit_real(dtype, "isin", [&]<class T>(Tag<T>) {
    const auto *from = static_cast<const T*>(x), *set = static_cast<const T*>(tests);
    const Scratch<T> sorted(count > few ? count : 0);
    int64_t numbers = 0;
    if (count > few) {
      T* end = std::copy_if(set, set + count, sorted.data(), [](T v) { return !is_nan(v); });
      std::sort(sorted.data(), end, [](T a, T b) { return key_of(a) < key_of(b); });
      numbers = end - sorted.data();
    }
    parallel_for(n, count > few ? 2048 : 32768, [&](int64_t begin, int64_t end) {
      std::fill(found + begin, found + end, uint8_t(0));
      if (count <= few) {
        for (int64_t i = begin; i < end; i += block) {
          for (int64_t j = 0; j < count; ++j)
            mark_equal(from + i, std::min(block, end - i), set[j], found + i);
        }
        return;
      }
      if (numbers == 0) return;
      for (int64_t i = begin; i < end; ++i) {
        const T* at = sorted.data();
        for (int64_t left = numbers; left > 1;) {  // the last that is not greater
          const int64_t half = left / 2;
          at += at[half] <= from[i] ? half : 0;
          left -= half;
        }
        found[i] = *at == from[i];
      }
    });
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::SearchKernels taeda::SearchKernels::cpu = {cpu::search_sorted, cpu::find_members};
