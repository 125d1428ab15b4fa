#include "kernels/embedding.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/index/simd/sparse.h"
#include "kernels/cpu/nn/simd/norm.h"

namespace taeda::cpu {
namespace {

constexpr int64_t most_parts = 1024;

template <class T> void fetch(const T* row, int64_t width) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t j = 0; j < std::min(width, 16 * line); j += line) __builtin_prefetch(row + j);
}

template <class T>
[[gnu::optimize("O3")]] void add_row(const T* __restrict from, int64_t width, T* __restrict to) {
  for (int64_t j = 0; j < width; ++j) to[j] += from[j];
}

template <class T> double norm_of(const T* row, int64_t width, double p) {
  if (p == 2) return std::sqrt(typed<T>(TAEDA_PICK(norm_kernels)).squares(row, width, 0));
  double total = 0;
  for (int64_t j = 0; j < width; ++j) {
    const double v = std::abs(static_cast<double>(row[j]));
    if (std::isinf(p)) total = std::max(total, v);
    else total += p == 1 ? v : std::pow(v, p);
  }
  return std::isinf(p) || p == 1 ? total : std::pow(total, 1 / p);
}

template <class T>
void add_rows(int64_t count, int64_t rows, int64_t width, const T* g, const int64_t* index,
              int64_t skip, T* out) {
  // The table is cut into parts that fit a core's second cache; each is zeroed and filled in one
  // go. `order` has the rows of g sorted by part, otherwise as they came.
  constexpr int64_t part_bytes = 1 << 18;
  const int64_t row_bytes = std::max<int64_t>(1, width * static_cast<int64_t>(sizeof(T)));
  const int64_t least = (rows + most_parts - 1) / most_parts;
  const int64_t part_rows = std::max({part_bytes / row_bytes, least, int64_t{1}});
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  std::vector<int64_t> starts(static_cast<size_t>(parts) + 1), order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) ++starts[static_cast<size_t>(index[i] / part_rows) + 1];
  for (size_t p = 1; p < starts.size(); ++p) starts[p] += starts[p - 1];
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  for (int64_t i = 0; i < count; ++i) {
    order[static_cast<size_t>(next[static_cast<size_t>(index[i] / part_rows)]++)] = i;
  }
  parallel_each(parts, 1, [&](int64_t p) {
    std::fill(out + p * part_rows * width, out + std::min(rows, (p + 1) * part_rows) * width, T(0));
    const int64_t last = starts[static_cast<size_t>(p) + 1];
    for (int64_t k = starts[static_cast<size_t>(p)]; k < last; ++k) {
      const int64_t i = order[static_cast<size_t>(k)];
      if (k + 10 < last) fetch(g + order[static_cast<size_t>(k) + 10] * width, width);
      if (index[i] != skip) add_row(g + i * width, width, out + index[i] * width);
    }
  });
}

template <class T>
bool sum_rows(int64_t bags, int64_t size, int64_t rows, int64_t width, const T* table,
              const int64_t* index, T* out) {
  const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, size * width));
  const bool fetch = simd::fetches_rows(rows, width * static_cast<int64_t>(sizeof(T)));
  std::atomic<bool> ok = true;
  parallel_for(bags, grain, [&](int64_t begin, int64_t end) {
    // Products with a sparse matrix of ones, some of its rows at a time.
    const int64_t most = std::clamp<int64_t>(2048 / std::max<int64_t>(1, size), 1, end - begin);
    std::vector<int64_t> start(static_cast<size_t>(most) + 1);
    for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<int64_t>(i) * size;
    const std::vector<T> ones(width == 1 ? static_cast<size_t>(most * size) : 0, T(1));
    const auto& kernels = typed<T>(TAEDA_PICK(sparse_kernels));
    for (int64_t i = begin; i < end; i += most) {
      const int64_t n = std::min(most, end - i);
      const int64_t* from = index + i * size;
      T* to = out + i * width;
      if (!(width == 1
                ? kernels.times_vector(start.data(), n, from, ones.data(), table, rows, to)
                : kernels.product(start.data(), n, from, nullptr, table, rows, width, fetch, to)))
        ok = false;
    }
  });
  return ok;
}

template <class T>
void shorten_rows(int64_t count, int64_t rows, int64_t width, const int64_t* index, double most,
                  double p, T* table) {
  std::vector<bool> seen(static_cast<size_t>(rows));
  for (int64_t i = 0; i < count; ++i) {
    if (seen[static_cast<size_t>(index[i])]) continue;
    seen[static_cast<size_t>(index[i])] = true;
    T* row = table + index[i] * width;
    const double norm = norm_of(row, width, p);
    if (norm <= most) continue;
    const T scale = static_cast<T>(most / (norm + 1e-7));
    for (int64_t j = 0; j < width; ++j) row[j] *= scale;
  }
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(EmbeddingKernels, cpu::sum_rows<T>, cpu::add_rows<T>, cpu::shorten_rows<T>)
