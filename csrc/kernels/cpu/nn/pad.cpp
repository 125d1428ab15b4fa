#include "kernels/pad.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

// The longest part of a row that lies in one piece in the source: [begin, end).
struct Run {
  int64_t begin = 0, end = 0;
};
Run longest_run(const int64_t* indices, int64_t n) {
  Run best, run;
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0 && indices[i] != indices[i - 1] + 1) run.begin = i;
    run.end = i + 1;
    if (run.end - run.begin > best.end - best.begin) best = run;
  }
  return best;
}

// f(plane, rows of it in the result, rows of it in the source, the source's row for each of the
// result's) for all planes, which threads share.
template <class F> void for_each_plane(const IndexedBlock& l, F&& f) {
  const int outer = l.dims - 1;
  int64_t rows = 1, source_rows = 1;
  for (int d = 0; d < outer; ++d) {
    rows *= l.result[d];
    source_rows *= l.source[d];
  }
  std::vector<int64_t> from(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, step = 1;
    for (int d = outer; d-- > 0;) {
      from[static_cast<size_t>(r)] += l.indices[d][rest % l.result[d]] * step;
      rest /= l.result[d];
      step *= l.source[d];
    }
  }
  const int64_t grain = std::max<int64_t>(1, 32768 / (rows * l.result[outer]));
  parallel_each(l.planes, grain, [&](int64_t p) { f(p, rows, source_rows, from.data()); });
}

template <class T>
[[gnu::optimize("O3")]] void add_run(T* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(to[j] + from[j]);
}

void read_block(void* out, const void* x, const IndexedBlock& l, DType dtype) {
  const int last = l.dims - 1;
  const int64_t n = l.result[last], m = l.source[last], *indices = l.indices[last];
  const Run run = longest_run(indices, n);
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    const size_t bytes = static_cast<size_t>(run.end - run.begin) * sizeof(T);
    for_each_plane(l, [&](int64_t plane, int64_t rows, int64_t source_rows, const int64_t* from) {
      for (int64_t r = 0; r < rows; ++r) {
        T* to = static_cast<T*>(out) + (plane * rows + r) * n;
        const T* row = static_cast<const T*>(x) + (plane * source_rows + from[r]) * m;
        for (int64_t j = 0; j < run.begin; ++j) to[j] = row[indices[j]];
        std::memcpy(to + run.begin, row + indices[run.begin], bytes);
        for (int64_t j = run.end; j < n; ++j) to[j] = row[indices[j]];
      }
    });
  });
}

void accumulate_block(void* gx, const void* g, const IndexedBlock& l, DType dtype) {
  const int last = l.dims - 1;
  const int64_t n = l.result[last], m = l.source[last], *indices = l.indices[last];
  const Run run = longest_run(indices, n);
  visit_all(dtype, [&]<class T>(Tag<T>) {
    for_each_plane(l, [&](int64_t plane, int64_t rows, int64_t source_rows, const int64_t* from) {
      T* target = static_cast<T*>(gx) + plane * source_rows * m;
      std::fill_n(target, source_rows * m, T(0));
      for (int64_t r = 0; r < rows; ++r) {
        const T* row = static_cast<const T*>(g) + (plane * rows + r) * n;
        T* to = target + from[r] * m;
        auto add = [&](int64_t j) { to[indices[j]] = static_cast<T>(to[indices[j]] + row[j]); };
        for (int64_t j = 0; j < run.begin; ++j) add(j);
        add_run(to + indices[run.begin], row + run.begin, run.end - run.begin);
        for (int64_t j = run.end; j < n; ++j) add(j);
      }
    });
  });
}

}  // namespace
}  // namespace taeda::cpu

const taeda::PadKernels taeda::PadKernels::cpu = {cpu::read_block, cpu::accumulate_block};
