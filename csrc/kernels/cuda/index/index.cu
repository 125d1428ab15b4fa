// Lists of indices, rows by index, and masks.
#include "kernels/index.h"

#include "kernels/creation.h"
#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/fault.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"
#include "kernels/embedding.h"
#include "kernels/join.h"
#include "kernels/reduce.h"

namespace taeda::cuda {

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y);

namespace {

constexpr int64_t kNone = INT64_MAX;

// The first i < n for which outside(i) is true, or kNone; the host waits for it.
template <class F> int64_t find_first(int64_t n, F outside) {
  if (n == 0) return kNone;
  const Workspace memory(sizeof(int64_t));
  auto* first = memory.as<unsigned long long>();
  each(1, [=] __device__(int64_t) { *first = kNone; });
  each(n, [=] __device__(int64_t i) {
    if (outside(i)) atomicMin(first, static_cast<unsigned long long>(i));
  });
  return static_cast<int64_t>(read_back(first));
}

std::optional<int64_t> find_outside(const int64_t* index, int64_t n, int64_t low, int64_t high) {
  const int64_t first =
      find_first(n, [=] __device__(int64_t i) { return index[i] < low || index[i] >= high; });
  if (first == kNone) return std::nullopt;
  return read_back(index + first);
}

void keep_inside(const int64_t* index, int64_t n, int64_t low, int64_t high, int64_t* out) {
  Fault* fault = used_device().fault;
  each(n, [=] __device__(int64_t i) {
    const bool is_inside = index[i] >= low && index[i] < high;
    if (!is_inside) report(fault, index[i], high);
    out[i] = is_inside ? index[i] : 0;
  });
}

// Kernels stand in functions of their own: nvcc has none in generic lambdas.
template <class T>
void take_as(T* to, const T* from, const int64_t* index, int64_t n, int64_t size) {
  each(n, [=] __device__(int64_t i) { to[i] = from[index[i] < 0 ? index[i] + size : index[i]]; });
}
bool take_elements(void* out, const void* x, const int64_t* index, int64_t n, int64_t size,
                   DType dtype) {
  if (is_blocking() && find_outside(index, n, -size, size)) return false;
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    take_as(static_cast<T*>(out), static_cast<const T*>(x), index, n, size);
  });
  return true;
}

void add_offsets(const int64_t* index, int64_t n, int64_t size, int64_t stride, bool first,
                 int64_t* offsets) {
  each(n, [=] __device__(int64_t i) {
    const int64_t offset = (index[i] < 0 ? index[i] + size : index[i]) * stride;
    offsets[i] = first ? offset : offsets[i] + offset;
  });
}

void mark(const int64_t* index, int64_t n, int64_t classes, int64_t* out) {
  each(n, [=] __device__(int64_t i) { out[i * classes + index[i]] = 1; });
}

void split(const int64_t* index, int64_t n, int64_t size, int64_t wrap, int64_t* rows,
           int64_t* rest) {
  each(n, [=] __device__(int64_t i) {
    const int64_t at = index[i] < 0 ? index[i] + wrap : index[i];
    if (rows) rows[i] = at / size;
    rest[i] = rows ? at % size : at;
  });
}

void coordinates(const int64_t* indices, int64_t n, DimsRef sizes, int64_t* const* out,
                 int64_t step) {
  int64_t inner = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    const int64_t size = sizes[d], below = inner;
    int64_t* to = out[d];
    each(n, [=] __device__(int64_t i) { to[i * step] = indices[i] / below % size; });
    inner *= size;
  }
}

// ---- masks ----
// Where the true elements go: how many there are up to each.
void count_up_to(const uint8_t* mask, int64_t n, int64_t* count) {
  each(n, [=] __device__(int64_t i) { count[i] = mask[i] != 0; });
  scan(Scan::Sum, DType::Int64, {1, n, 1}, count, count);
}
struct Places {
  Workspace memory;
  Places(const uint8_t* mask, int64_t n) : memory(static_cast<size_t>(n) * sizeof(int64_t)) {
    count_up_to(mask, n, memory.as<int64_t>());
  }
  const int64_t* counts() const { return memory.as<int64_t>(); }
};

int64_t count_true(const uint8_t* mask, int64_t n) {
  if (n == 0) return 0;
  const Places places(mask, n);
  return read_back(places.counts() + n - 1);
}
void true_indices(const uint8_t* mask, int64_t n, int64_t* out, int64_t) {
  const Places places(mask, n);
  const int64_t* count = places.counts();
  each(n, [=] __device__(int64_t i) {
    if (mask[i]) out[count[i] - 1] = i;
  });
}
template <class T>
void take_true_as(const T* from, const uint8_t* mask, int64_t n, const int64_t* count, T* to) {
  each(n, [=] __device__(int64_t i) {
    if (mask[i]) to[count[i] - 1] = from[i];
  });
}
void take_true(const void* x, const uint8_t* mask, int64_t n, void* out, int64_t, DType dtype) {
  const Places places(mask, n);
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    take_true_as(static_cast<const T*>(x), mask, n, places.counts(), static_cast<T*>(out));
  });
}
template <class T>
void put_true_as(T* to, const uint8_t* mask, int64_t n, const int64_t* count, const T* values) {
  each(n, [=] __device__(int64_t i) {
    if (mask[i]) to[i] = values[count[i] - 1];
  });
}
void put_true(void* out, const uint8_t* mask, int64_t n, const void* from, int64_t, DType dtype) {
  const Places places(mask, n);
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    put_true_as(static_cast<T*>(out), mask, n, places.counts(), static_cast<const T*>(from));
  });
}

// ---- creation ----
void range(int64_t n, uint64_t start, uint64_t step, uint64_t* y) {
  each(n, [=] __device__(int64_t i) { y[i] = start + static_cast<uint64_t>(i) * step; });
}
template <class T> void triangle_as(const TriangleShape& given, const T* from, T* to) {
  const TriangleShape s = given;
  each(s.all_rows * s.columns, [=] __device__(int64_t i) {
    const int64_t row = i / s.columns % s.rows, column = i % s.columns;
    const bool above = column - row > s.diagonal, below = column - row < s.diagonal;
    to[i] = (s.lower ? above : below) ? T{} : from[i];
  });
}
void triangle(const TriangleShape& s, const void* x, void* y) {
  const auto run = [&]<class T>(Tag<T>) {
    triangle_as(s, static_cast<const T*>(x ? x : y), static_cast<T*>(y));
  };
  switch (s.item) {
    case 1: return run(Tag<uint8_t>());
    case 2: return run(Tag<uint16_t>());
    case 4: return run(Tag<uint32_t>());
    case 8: return run(Tag<uint64_t>());
    default: return run(Tag<Bytes16>());
  }
}

// ---- join ----
// Rows of `width` elements, to where rows have `stride`.
template <class T>
void place_rows(T* to, const T* from, int64_t rows, int64_t width, int64_t stride) {
  each(rows * width, [=] __device__(int64_t i) { to[i / width * stride + i % width] = from[i]; });
}
void join_rows(void* out, std::span<const JoinPiece> pieces, int64_t rows) {
  int64_t all = 0, begin = 0;
  for (const JoinPiece& p : pieces) all += static_cast<int64_t>(p.row_bytes);
  for (const JoinPiece& p : pieces) {
    const auto bytes = static_cast<int64_t>(p.row_bytes);
    const auto copy = [&]<class T>(Tag<T>) {
      constexpr int64_t item = sizeof(T);
      auto* to = reinterpret_cast<T*>(static_cast<char*>(out) + begin);
      place_rows(to, static_cast<const T*>(p.data), rows, bytes / item, all / item);
    };
    const auto place = reinterpret_cast<uintptr_t>(p.data) | reinterpret_cast<uintptr_t>(out) |
                       static_cast<uintptr_t>(bytes | all | begin);
    if (bytes == 0) continue;
    if (place % 16 == 0) copy(Tag<Bytes16>());
    else if (place % 8 == 0) copy(Tag<uint64_t>());
    else if (place % 4 == 0) copy(Tag<uint32_t>());
    else copy(Tag<uint8_t>());
    begin += bytes;
  }
}

// ---- embedding ----
template <class T>
bool sum_rows(int64_t bags, int64_t size, int64_t rows, int64_t width, const T* table,
              const int64_t* index, T* out) {
  if (is_blocking() && find_outside(index, bags * size, 0, rows)) return false;
  each(bags * width, [=] __device__(int64_t i) {
    const int64_t* own = index + i / width * size;
    T sum = 0;
    for (int64_t k = 0; k < size; ++k) sum += table[own[k] * width + i % width];
    out[i] = sum;
  });
  return true;
}
// ---- the gradient of an embedding ----
// Sorted by index, so that the rows of one follow one another, in their order. A block adds up
// the rows of one index, each thread some columns.
template <class T>
__global__ void add_sorted(int64_t count, int64_t width, const uint32_t* index,
                           const uint32_t* places, uint32_t skip, const T* g, T* out) {
  const int64_t first = blockIdx.x;
  const uint32_t row = index[first];
  if (row == skip || (first > 0 && index[first - 1] == row)) return;
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
    T sum = 0;
    for (int64_t i = first; i < count && index[i] == row; ++i)
      sum += g[int64_t{places[i]} * width + c];
    out[row * width + c] = sum;
  }
}
template <class T>
void add_rows(int64_t count, int64_t rows, int64_t width, const T* g, const int64_t* index,
              int64_t skip, T* out) {
  each(rows * width, [=] __device__(int64_t i) { out[i] = T(0); });
  if (count == 0 || width == 0) return;
  if (count >= kMostElements || rows >= kMostElements) missing_kernel();
  const Workspace memory(static_cast<size_t>(4 * count) * sizeof(uint32_t));
  auto* keys = memory.as<uint32_t>();
  uint32_t *places = keys + count, *sorted = places + count, *order = sorted + count;
  each(count, [=] __device__(int64_t i) {
    keys[i] = static_cast<uint32_t>(index[i]);
    places[i] = static_cast<uint32_t>(i);
  });
  sort_pairs(count, std::bit_width(static_cast<uint32_t>(rows)), keys, sorted, places, order);
  launch(add_sorted<T>, static_cast<unsigned>(count), 128, 0, count, width, sorted, order,
         static_cast<uint32_t>(skip), g, out);
}

const IndexKernels index_table{.find_outside = find_outside,
                               .keep_inside = is_blocking() ? nullptr : keep_inside,
                               .take_elements = take_elements,
                               .add_offsets = add_offsets,
                               .mark = mark,
                               .split = split,
                               .coordinates = coordinates,
                               .sequences = nullptr,
                               .repeat = nullptr,
                               .count_true = count_true,
                               .true_indices = true_indices,
                               .take_true = take_true,
                               .put_true = put_true};
const CreationKernels creation_table{
    .range = range, .triangle = triangle, .triangle_indices = nullptr};
const JoinKernels join_table{join_rows};
template <class T>
const EmbeddingKernels<T> embedding_table{
    .sum_rows = sum_rows<T>, .add_rows = add_rows<T>, .shorten_rows = nullptr};

}  // namespace

void add_list_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(index_table), device_table(creation_table), device_table(join_table),
             device_table(embedding_table<float>), device_table(embedding_table<double>)});
}

}  // namespace taeda::cuda
