// Searching in sorted lines, runs of equal neighbours, and counting into bins.
#include <bit>

#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"
#include "kernels/histogram.h"
#include "kernels/reduce.h"
#include "kernels/runs.h"
#include "kernels/sort.h"
#include "kernels/sort_keys.h"

namespace taeda::cuda {

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y);

namespace {

using namespace sort_keys;

// ---- searching ----

// How many of n in order come before: `comes_before` is true of those, and false of the rest.
template <class F> __device__ int64_t count_before(int64_t n, F comes_before) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (comes_before(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

template <class T>
void search_as(const T* sorted, const int64_t* order, const T* values, int64_t* out, int64_t lines,
               int64_t length, int64_t values_per_line, bool right) {
  each(lines * values_per_line, [=] __device__(int64_t i) {
    const int64_t base = lines == 1 ? 0 : i / values_per_line * length;
    const T value = values[i];
    out[i] = count_before(length, [&](int64_t at) {
      const T v = sorted[base + (order ? order[base + at] : at)];
      return right ? !(v > value) : !(v >= value);  // NaN goes to the end
    });
  });
}
void search(const void* sorted, const int64_t* order, const void* values, int64_t* out,
            int64_t lines, int64_t length, int64_t values_per_line, DType dtype, bool right) {
  visit_real(dtype, "searchsorted", [&]<class T>(Tag<T>) {
    search_as(static_cast<const T*>(sorted), order, static_cast<const T*>(values), out, lines,
              length, values_per_line, right);
  });
}

template <class T>
void find_members_as(const T* x, int64_t n, const T* tests, int64_t count, uint8_t* found) {
  using K = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
  using P = std::conditional_t<sizeof(T) <= 4, uint32_t, int64_t>;
  if (count >= kMostElements) missing_kernel();
  const Workspace memory(static_cast<size_t>(count) * 2 * (sizeof(K) + sizeof(P)));
  auto *keys = memory.as<K>(), *sorted = keys + count;
  auto *places = reinterpret_cast<P*>(sorted + count), *order = places + count;
  each(count, [=] __device__(int64_t i) {
    keys[i] = key_of(tests[i]);
    places[i] = static_cast<P>(i);
  });
  if (count > 0) sort_pairs(count, static_cast<int>(sizeof(T) * 8), keys, sorted, places, order);
  each(n, [=] __device__(int64_t i) {
    const K key = key_of(x[i]);
    const int64_t at = count_before(count, [&](int64_t j) { return sorted[j] < key; });
    found[i] = !is_nan(x[i]) && at < count && sorted[at] == key;
  });
}
void find_members(const void* x, int64_t n, const void* tests, int64_t count, DType dtype,
                  uint8_t* found) {
  visit_real(dtype, "isin", [&]<class T>(Tag<T>) {
    find_members_as(static_cast<const T*>(x), n, static_cast<const T*>(tests), count, found);
  });
}

// ---- runs ----

// For each of n > 0 elements the number of its run, from 1 on, where starts(i) says whether element
// i > 0 differs from the one before it.
template <class F> void number_runs(int64_t n, int64_t* run, F starts) {
  each(n, [=] __device__(int64_t i) { run[i] = i == 0 || starts(i); });
  scan(Scan::Sum, DType::Int64, {1, n, 1}, run, run);
}
template <class T> void number_runs_of(const T* x, int64_t n, int64_t* run) {
  number_runs(n, run, [=] __device__(int64_t i) { return x[i] != x[i - 1]; });
}
Workspace indices_for(int64_t n) { return Workspace(static_cast<size_t>(n) * sizeof(int64_t)); }

// begins[k] = where run k begins; k of each element: run[i] - 1.
void find_begins(const int64_t* run, int64_t n, int64_t* begins) {
  each(n, [=] __device__(int64_t i) {
    if (i == 0 || run[i] != run[i - 1]) begins[run[i] - 1] = i;
  });
}
void write_lengths(const int64_t* begins, int64_t runs, int64_t n, int64_t* lengths) {
  each(runs,
       [=] __device__(int64_t k) { lengths[k] = (k + 1 < runs ? begins[k + 1] : n) - begins[k]; });
}

template <class T> int64_t take_first_as(const T* x, int64_t n, T* first) {
  const Workspace memory = indices_for(n);
  auto* run = memory.as<int64_t>();
  number_runs_of(x, n, run);
  each(n, [=] __device__(int64_t i) {
    if (i == 0 || run[i] != run[i - 1]) first[run[i] - 1] = x[i];
  });
  return read_back(run + n - 1);
}
int64_t take_first(DType dtype, const void* x, int64_t n, void* first) {
  return visit_real(dtype, "unique", [&]<class T>(Tag<T>) {
    return take_first_as(static_cast<const T*>(x), n, static_cast<T*>(first));
  });
}

int64_t count_runs(DType dtype, const void* x, int64_t n) {
  if (n == 0) return 0;
  const Workspace memory = indices_for(n);
  auto* run = memory.as<int64_t>();
  visit_real(dtype, "unique",
             [&]<class T>(Tag<T>) { number_runs_of(static_cast<const T*>(x), n, run); });
  return read_back(run + n - 1);
}

template <class T>
void split_as(const T* x, int64_t n, int64_t runs, const int64_t* order, T* first, int64_t* lengths,
              int64_t* run_of) {
  const Workspace memory = indices_for(n + runs);
  auto *run = memory.as<int64_t>(), *begins = run + n;
  number_runs_of(x, n, run);
  find_begins(run, n, begins);
  write_lengths(begins, runs, n, lengths);
  each(runs, [=] __device__(int64_t k) { first[k] = x[begins[k]]; });
  if (run_of) each(n, [=] __device__(int64_t i) { run_of[order ? order[i] : i] = run[i] - 1; });
}
void split(DType dtype, const void* x, int64_t n, int64_t runs, const int64_t* order, void* first,
           int64_t* lengths, int64_t* run_of) {
  visit_real(dtype, "unique", [&]<class T>(Tag<T>) {
    split_as(static_cast<const T*>(x), n, runs, order, static_cast<T*>(first), lengths, run_of);
  });
}

// ---- rows ----

// Sorts `order`, row numbers, by one column of x; `stride` numbers lie between its rows. Rows with
// the same number keep their order.
template <class T>
void sort_by_column(const T* column, int64_t stride, int64_t n, uint64_t* keys, uint64_t* sorted,
                    int64_t* order, int64_t* reordered) {
  each(n, [=] __device__(int64_t i) { keys[i] = key_of(column[order[i] * stride]); });
  sort_pairs(n, static_cast<int>(sizeof(T) * 8), keys, sorted, order, reordered);
  each(n, [=] __device__(int64_t i) { order[i] = reordered[i]; });
}

template <class T>
void number_rows(const T* x, int64_t n, int64_t m, const int64_t* order, int64_t* run) {
  number_runs(n, run, [=] __device__(int64_t i) {
    for (int64_t j = 0; j < m; ++j)
      if (x[order[i] * m + j] != x[order[i - 1] * m + j]) return true;
    return false;
  });
}

// m: numbers in a row, two for a complex one.
template <class T>
int64_t runs_of_rows(const T* x, int64_t n, int64_t m, bool sort, int64_t* first, int64_t* lengths,
                     int64_t* run_of) {
  if (n >= kMostElements) missing_kernel();
  const Workspace memory = indices_for(6 * n);
  auto *order = memory.as<int64_t>(), *reordered = order + n, *run = reordered + n,
       *begins = run + n;
  auto *keys = reinterpret_cast<uint64_t*>(begins + n), *sorted = keys + n;
  each(n, [=] __device__(int64_t i) { order[i] = i; });
  for (int64_t j = m; sort && j-- > 0;) sort_by_column(x + j, m, n, keys, sorted, order, reordered);
  number_rows(x, n, m, order, run);
  const int64_t runs = read_back(run + n - 1);
  find_begins(run, n, begins);
  write_lengths(begins, runs, n, lengths);
  each(runs, [=] __device__(int64_t k) { first[k] = order[begins[k]]; });
  each(n, [=] __device__(int64_t i) { run_of[order[i]] = run[i] - 1; });
  return runs;
}
int64_t of_rows(DType dtype, const void* x, int64_t n, int64_t m, bool sort, int64_t* first,
                int64_t* lengths, int64_t* run_of) {
  if (n == 0) return 0;
  if (is_complex(dtype)) {
    dtype = dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
    m *= 2;
  }
  return visit_real(dtype, "unique", [&]<class T>(Tag<T>) {
    return runs_of_rows(static_cast<const T*>(x), n, m, sort, first, lengths, run_of);
  });
}

template <class T>
void modes_as(const T* all, const int64_t* orders, T* values, int64_t* indices, int64_t rows,
              int64_t n) {
  each(rows, [=] __device__(int64_t row) {
    const T* sorted = all + row * n;
    int64_t best = 0, best_length = 0;
    for (int64_t begin = 0, end; begin < n; begin = end) {
      for (end = begin + 1; end < n && sorted[end] == sorted[begin];) ++end;
      if (end - begin > best_length) {
        best_length = end - begin;
        best = end - 1;
      }
    }
    values[row] = sorted[best];
    indices[row] = orders[row * n + best];
  });
}
void modes(DType dtype, const void* sorted, const int64_t* order, void* values, int64_t* indices,
           int64_t rows, int64_t n) {
  visit_real(dtype, "mode", [&]<class T>(Tag<T>) {
    modes_as(static_cast<const T*>(sorted), order, static_cast<T*>(values), indices, rows, n);
  });
}

// ---- bins ----

constexpr int64_t kSharedBins = 4096;  // counted in shared memory first
using Count = unsigned long long;      // as atomicAdd has it

// out[bin(i)] += 1 for all i < n where bin(i) lies in [0, bins).
template <class F> __global__ void count_shared(int64_t n, int bins, F bin, int64_t* out) {
  auto* counts = static_cast<unsigned*>(dynamic_shared());
  for (int b = static_cast<int>(threadIdx.x); b < bins; b += static_cast<int>(blockDim.x))
    counts[b] = 0;
  __syncthreads();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t b = bin(i);
    if (b >= 0 && b < bins) atomicAdd(counts + b, 1u);
  }
  __syncthreads();
  for (int b = static_cast<int>(threadIdx.x); b < bins; b += static_cast<int>(blockDim.x))
    if (counts[b] > 0) atomicAdd(reinterpret_cast<Count*>(out + b), Count{counts[b]});
}
template <class F> void count_bins(int64_t n, int64_t bins, F bin, int64_t* out) {
  if (n == 0) return;
  if (bins <= kSharedBins) {
    launch(count_shared<F>, blocks_for(n), kThreads, static_cast<size_t>(bins) * sizeof(unsigned),
           n, static_cast<int>(bins), bin, out);
    return;
  }
  each(n, [=] __device__(int64_t i) {
    const int64_t b = bin(i);
    if (b >= 0 && b < bins) atomicAdd(reinterpret_cast<Count*>(out + b), Count{1});
  });
}

template <class F> void visit_whole(DType dtype, F&& f) {
  visit_real(dtype, "bincount", [&]<class T>(Tag<T> tag) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

template <class T> void range_as(const T* x, int64_t n, long long* ends) {
  each(1, [=] __device__(int64_t) { ends[0] = ends[1] = static_cast<long long>(x[0]); });
  const int64_t threads = int64_t{blocks_for(n)} * kThreads;
  each(threads, [=] __device__(int64_t t) {
    if (t >= n) return;
    T least = x[t], most = x[t];
    for (int64_t i = t + threads; i < n; i += threads) {
      if (x[i] < least) least = x[i];
      if (x[i] > most) most = x[i];
    }
    atomicMin(ends, static_cast<long long>(least));
    atomicMax(ends + 1, static_cast<long long>(most));
  });
}
std::pair<int64_t, int64_t> range(const void* x, int64_t n, DType dtype) {
  const Workspace memory = indices_for(2);
  auto* ends = memory.as<long long>();
  visit_whole(dtype, [&]<class T>(Tag<T>) { range_as(static_cast<const T*>(x), n, ends); });
  return {read_back(ends), read_back(ends + 1)};
}

template <class T> void count_as(const T* x, int64_t n, int64_t bins, int64_t* out) {
  count_bins(n, bins, [=] __device__(int64_t i) { return static_cast<int64_t>(x[i]); }, out);
}
void count(const void* x, int64_t n, DType dtype, int64_t bins, int64_t* out) {
  visit_whole(dtype, [&]<class T>(Tag<T>) { count_as(static_cast<const T*>(x), n, bins, out); });
}

template <class T> void even(const T* x, int64_t n, T low, T high, int64_t bins, int64_t* out) {
  count_bins(
      n, bins,
      [=] __device__(int64_t i) {
        return x[i] >= low && x[i] <= high ? even_bin(x[i], low, high, bins) : -1;
      },
      out);
}

template <class T> void between(const T* x, int64_t n, const T* edges, int64_t bins, int64_t* out) {
  count_bins(
      n, bins,
      [=] __device__(int64_t i) {
        const T low = edges[0], high = edges[bins];
        return x[i] >= low && x[i] <= high
                   ? bin_between(x[i], edges, bins, static_cast<T>(bins) / (high - low))
                   : -1;
      },
      out);
}

const SearchKernels search_table{search, find_members};
const RunKernels run_table{take_first, count_runs, split, of_rows, modes};
const CountKernels count_table{range, count};
template <class T> const HistogramKernels<T> histogram_table{even<T>, between<T>};

}  // namespace

void add_search_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(search_table), device_table(run_table), device_table(count_table),
             device_table(histogram_table<float>), device_table(histogram_table<double>)});
}

}  // namespace taeda::cuda
