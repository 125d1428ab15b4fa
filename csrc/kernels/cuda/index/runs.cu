// Runs of equal neighbours, and of equal rows.
#include "kernels/runs.h"

#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"
#include "kernels/reduce.h"
#include "kernels/sort_keys.h"

namespace taeda::cuda {

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y);

namespace {

using namespace sort_keys;

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
    const int64_t best = plain::runs::last_of_mode(sorted, n);
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

const RunKernels run_table{take_first, count_runs, split, of_rows, modes};

}  // namespace

void add_run_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(run_table)});
}

}  // namespace taeda::cuda
