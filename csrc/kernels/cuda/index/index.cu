// Lists of indices, rows by index, and masks.
#include "kernels/index.h"

#include "kernels/creation.h"
#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/fault.h"
#include "kernels/cuda/common/find.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"
#include "kernels/embedding.h"
#include "kernels/frexp.h"
#include "kernels/join.h"
#include "kernels/reduce.h"

namespace taeda::cuda {

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y);

namespace {

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

// Sequence `rank` of all increasing ones of r numbers below n: C(n - 1 - v, r - 1) begin with v.
void sequences(int64_t n, int64_t r, bool repeated, int64_t count, int64_t* out) {
  if (r == 0) return;
  // One that does not decrease is an increasing one once i is added to its element i.
  const int64_t numbers = repeated ? n + r - 1 : n;
  each(count, [=] __device__(int64_t own) {
    int64_t rank = own, value = 0;
    int64_t alike = count * r / numbers;  // how many have `value` next
    for (int64_t i = 0; i < r; ++i, ++value) {
      const int64_t rest = r - 1 - i;
      for (; rank >= alike; ++value) {
        const int64_t above = numbers - 1 - value;
        rank -= alike;
        alike = alike * (above - rest) / above;
      }
      out[own * r + i] = repeated ? value - i : value;
      if (rest > 0) alike = alike * rest / (numbers - 1 - value);
    }
  });
}

__global__ void write_repeated(const int64_t* ends, int64_t n, int64_t* out) {
  const int64_t total = ends[n - 1], step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t k = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; k < total; k += step)
    out[k] = first_behind(n, [=](int64_t i) { return ends[i] > k; });
}
void repeat(const int64_t* counts, int64_t n, int64_t* out) {
  if (n == 0) return;
  const Workspace memory(static_cast<size_t>(n) * sizeof(int64_t));
  auto* ends = memory.as<int64_t>();
  scan(Scan::Sum, DType::Int64, {1, n, 1}, counts, ends);
  launch(write_repeated, blocks_for(kMostElements), kThreads, 0, ends, n, out);
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

// How many elements the first rows of a triangle have that begins with a row of `start` elements,
// each row with one more, none less than 0 or more than `columns`.
__device__ int64_t up_to_row(int64_t rows, int64_t start, int64_t columns) {
  const auto from_zero = [=](int64_t n) {
    if (n <= 0) return int64_t{0};
    const int64_t ramp = n < columns ? n : columns;
    return ramp * (ramp - 1) / 2 + (n - ramp) * columns;
  };
  return from_zero(start + rows) - from_zero(start);
}
void triangle_indices(const TriangleShape& given, int64_t count, int64_t* y) {
  const TriangleShape s = given;
  each(count, [=] __device__(int64_t k) {
    const int64_t start = s.diagonal + (s.lower ? 1 : 0);
    const auto before = [=](int64_t row) {
      const int64_t below = up_to_row(row, start, s.columns);
      return s.lower ? below : row * s.columns - below;
    };
    const int64_t row = first_behind(s.rows, [=](int64_t r) { return before(r + 1) > k; });
    const int64_t own = k - before(row), left_out = row + s.diagonal;
    y[k] = row;
    y[count + k] = s.lower || left_out < 0 ? own : own + left_out;
  });
}

template <class T> void frexp(int64_t n, const T* x, T* mantissa, int32_t* power) {
  each(n, [=] __device__(int64_t i) {
    int e = 0;
    mantissa[i] = ::frexp(x[i], &e);
    power[i] = ::isfinite(x[i]) ? e : 0;
  });
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
// Indices sorted, so that equal ones follow one another, and where each of them stood.
void number_rows(int64_t count, const int64_t* index, uint32_t* keys, uint32_t* places) {
  each(count, [=] __device__(int64_t i) {
    keys[i] = static_cast<uint32_t>(index[i]);
    places[i] = static_cast<uint32_t>(i);
  });
}
struct SortedRows {
  Workspace memory;
  const uint32_t *index, *order;

  SortedRows(int64_t count, int64_t rows, const int64_t* given)
      : memory(static_cast<size_t>(4 * count) * sizeof(uint32_t)) {
    if (count >= kMostElements || rows >= kMostElements) missing_kernel();
    auto* keys = memory.as<uint32_t>();
    uint32_t *places = keys + count, *sorted = places + count, *sorted_places = sorted + count;
    number_rows(count, given, keys, places);
    sort_pairs(count, std::bit_width(static_cast<uint32_t>(rows)), keys, sorted, places,
               sorted_places);
    index = sorted;
    order = sorted_places;
  }
};
// A block adds up the rows of one index in their order, each thread some columns.
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
  const SortedRows sorted(count, rows, index);
  launch(add_sorted<T>, static_cast<unsigned>(count), 128, 0, count, width, sorted.index,
         sorted.order, static_cast<uint32_t>(skip), g, out);
}

// A group of threads has a row, once where it is named several times.
template <class T>
__global__ void shorten_sorted(int64_t count, int64_t width, const uint32_t* index, double most,
                               double p, T* table) {
  const int64_t i = group_index();
  const bool works = i < count && (i == 0 || index[i - 1] != index[i]);
  T* row = works ? table + index[i] * width : nullptr;
  const bool largest = ::isinf(p);
  double own = 0;
  for (int64_t c = threadIdx.x; works && c < width; c += blockDim.x) {
    const double v = ::fabs(static_cast<double>(row[c]));
    if (largest) own = v > own ? v : own;
    else own += p == 2 ? v * v : p == 1 ? v : ::pow(v, p);
  }
  const double all = group_all(own, [=](double a, double b) {
    return !largest ? a + b : a > b ? a : b;
  });
  const double norm = largest || p == 1 ? all : p == 2 ? ::sqrt(all) : ::pow(all, 1 / p);
  if (!works || norm <= most) return;
  const T scale = static_cast<T>(most / (norm + 1e-7));
  for (int64_t c = threadIdx.x; c < width; c += blockDim.x) row[c] *= scale;
}
template <class T>
void shorten_rows(int64_t count, int64_t rows, int64_t width, const int64_t* index, double most,
                  double p, T* table) {
  if (count == 0 || width == 0) return;
  const SortedRows sorted(count, rows, index);
  const dim3 block = groups_for(width);
  launch(shorten_sorted<T>, blocks_of(count, block), block, 0, count, width, sorted.index, most, p,
         table);
}

const IndexKernels index_table{.find_outside = find_outside,
                               .keep_inside = is_blocking() ? nullptr : keep_inside,
                               .take_elements = take_elements,
                               .add_offsets = add_offsets,
                               .mark = mark,
                               .split = split,
                               .coordinates = coordinates,
                               .sequences = sequences,
                               .repeat = repeat,
                               .count_true = count_true,
                               .true_indices = true_indices,
                               .take_true = take_true,
                               .put_true = put_true};
const CreationKernels creation_table{
    .range = range, .triangle = triangle, .triangle_indices = triangle_indices};
const JoinKernels join_table{join_rows};
template <class T> const FrexpKernels<T> frexp_table{frexp<T>};
template <class T>
const EmbeddingKernels<T> embedding_table{
    .sum_rows = sum_rows<T>, .add_rows = add_rows<T>, .shorten_rows = shorten_rows<T>};

}  // namespace

void add_list_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(),
            {device_table(index_table), device_table(creation_table), device_table(join_table),
             device_table(frexp_table<float>), device_table(frexp_table<double>),
             device_table(embedding_table<float>), device_table(embedding_table<double>)});
}

}  // namespace taeda::cuda
