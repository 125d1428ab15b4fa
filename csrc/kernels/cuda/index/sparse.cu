// Matrices in compressed rows. Rows and columns that do not fit are reported, and passed over; the
// host need not wait. Sums are made in a fixed order.
#include "kernels/sparse.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/fault.h"
#include "kernels/cuda/common/find.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"

namespace taeda::cuda {
namespace {

struct Rows {
  CsrRows m;
  Fault* fault;

  // The elements of row i.
  struct Range {
    int64_t first, last;
  };
  __device__ Range range(int64_t i) const {
    const int64_t first = m.start[i], last = m.start[i + 1];
    const bool begins = i > 0 || first == 0, ends = i + 1 < m.rows || last == m.count;
    if (begins && ends && first >= 0 && first <= last && last <= m.count) return {first, last};
    report(fault, last, m.count);
    return {0, 0};
  }
  // Whether element k has a column; which one.
  __device__ bool column(int64_t k, int64_t* c) const {
    *c = m.column[k];
    if (*c >= 0 && *c < m.columns) return true;
    report(fault, *c, m.columns);
    return false;
  }
};

// A group of threads has a row of the matrix.
template <class S>
__global__ void multiply_rows(const __grid_constant__ Rows a, const S* values, const S* x,
                              int64_t width, S* y) {
  const int64_t i = group_index();
  Rows::Range range{0, 0};
  if (i < a.m.rows) range = a.range(i);
  for (int64_t j = 0; j < width; ++j) {
    S own(0);
    for (int64_t k = range.first + threadIdx.x; k < range.last; k += blockDim.x) {
      int64_t c;
      if (a.column(k, &c)) own = own + (values ? values[k] * x[c * width + j] : x[c * width + j]);
    }
    const S sum = group_sum(own);
    if (threadIdx.x == 0 && i < a.m.rows) y[i * width + j] = sum;
  }
}
// A thread has an element of the result.
template <class S>
void multiply_elements(const Rows& given, const S* values, const S* x, int64_t width, S* y) {
  const Rows a = given;
  const Divisor by_width(width);
  each(a.m.rows * width, [=] __device__(int64_t i) {
    S* to = y + i;
    const int64_t j = by_width.divide(i);
    const Rows::Range range = a.range(i);
    S sum(0);
    for (int64_t k = range.first; k < range.last; ++k) {
      int64_t c;
      if (a.column(k, &c)) sum = sum + (values ? values[k] * x[c * width + j] : x[c * width + j]);
    }
    *to = sum;
  });
}
template <class T>
bool product(const CsrRows& m, const T* values, const T* x, int64_t width, T* y) {
  using S = Stored<T>;
  const Rows a{m, used_device().fault};
  const auto* v = reinterpret_cast<const S*>(values);
  const auto* from = reinterpret_cast<const S*>(x);
  auto* to = reinterpret_cast<S*>(y);
  constexpr int64_t narrow = 8;
  if (width > narrow || m.rows == 0) {
    multiply_elements(a, v, from, width, to);
    return true;
  }
  const dim3 block = groups_for(m.count / m.rows / 2 + 1);
  launch(multiply_rows<S>, blocks_of(m.rows, block), block, 0, a, v, from, width, to);
  return true;
}

// The row that element k lies in.
__device__ int64_t row_of(const CsrRows& m, int64_t k) {
  const int64_t row = first_behind(m.rows, [&](int64_t i) { return m.start[i + 1] > k; });
  return row < m.rows ? row : m.rows - 1;
}
void check_rows(const Rows& given) {
  const Rows a = given;
  each(a.m.rows, [=] __device__(int64_t i) { a.range(i); });
}

// A group of threads has an element of the matrix.
template <class S>
__global__ void multiply_pairs(const __grid_constant__ Rows a, const S* x, const S* y,
                               int64_t width, S* out) {
  const int64_t k = group_index();
  S own(0);
  int64_t c = 0;
  if (k < a.m.count && a.column(k, &c)) {
    const int64_t row = row_of(a.m, k);
    for (int64_t j = threadIdx.x; j < width; j += blockDim.x)
      own = own + x[row * width + j] * y[c * width + j];
  }
  const S sum = group_sum(own);
  if (threadIdx.x == 0 && k < a.m.count) out[k] = sum;
}
template <class T> bool inner(const CsrRows& m, const T* a, const T* b, int64_t width, T* out) {
  using S = Stored<T>;
  if (m.count == 0 || m.rows == 0) return m.count == 0;
  const Rows rows{m, used_device().fault};
  check_rows(rows);
  const dim3 block = groups_for(width);
  launch(multiply_pairs<S>, blocks_of(m.count, block), block, 0, rows,
         reinterpret_cast<const S*>(a), reinterpret_cast<const S*>(b), width,
         reinterpret_cast<S*>(out));
  return true;
}

void list_numbers(int64_t count, const int64_t* index, int64_t size, uint32_t* key,
                  uint32_t* place) {
  Fault* fault = used_device().fault;
  each(count, [=] __device__(int64_t i) {
    const bool is_inside = index[i] >= 0 && index[i] < size;
    if (!is_inside) report(fault, index[i], size);
    key[i] = is_inside ? static_cast<uint32_t>(index[i]) : 0;
    place[i] = static_cast<uint32_t>(i);
  });
}
bool group_rows(int64_t count, const int64_t* index, int64_t size, int64_t* start, int64_t* order) {
  if (count >= kMostElements || size >= kMostElements) missing_kernel();
  const Workspace memory(static_cast<size_t>(4 * count) * sizeof(uint32_t));
  auto* key = memory.as<uint32_t>();
  uint32_t *place = key + count, *sorted = place + count, *sorted_places = sorted + count;
  list_numbers(count, index, size, key, place);
  if (count > 0)
    sort_pairs(count, std::bit_width(static_cast<uint32_t>(size)), key, sorted, place,
               sorted_places);
  each(count, [=] __device__(int64_t i) { order[i] = sorted_places[i]; });
  each(size + 1, [=] __device__(int64_t i) {
    start[i] = first_behind(count, [=](int64_t k) { return sorted[k] >= i; });
  });
  return true;
}
bool expand_rows(const CsrRows& given, int64_t* row) {
  const CsrRows m = given;
  if (m.rows == 0) return m.count == 0;
  check_rows({m, used_device().fault});
  each(m.count, [=] __device__(int64_t k) { row[k] = row_of(m, k); });
  return true;
}

template <class T> const SparseKernels<T> table{product<T>, inner<T>};
const CsrKernels csr_table{group_rows, expand_rows};

}  // namespace

void add_sparse_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>),
                       device_table(table<int64_t>), device_table(table<std::complex<float>>),
                       device_table(table<std::complex<double>>), device_table(csr_table)});
}

}  // namespace taeda::cuda
