// Windows laid out in columns and summed back, and blocks read by lists of indices, as padding
// does. Sums are gathered: one thread adds up what an element gets, in a fixed order.
#include "kernels/fold.h"

#include "kernels/cuda/common/find.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/common/vector.h"
#include "kernels/cuda/nn/tables.h"
#include "kernels/pad.h"

namespace taeda::cuda {
namespace {

// What is added up: half precision in float, integers as they wrap around.
template <class T> __device__ Number<T> plus(Number<T> a, Number<T> b) {
  if constexpr (same_type<T, bool>) return a || b;
  else if constexpr (is_integer<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else return a + b;
}
// ---- windows ----
template <class T> void to_columns_as(const FoldShape& given, const T* x, T* columns) {
  const FoldShape s = given;
  const Divisor across(s.out[1]), down(s.out[0]), taps_across(s.kernel[1]), taps_down(s.kernel[0]);
  each(s.planes * s.kernel[0] * s.kernel[1] * s.out[0] * s.out[1], [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t ow = across.divide(i), oh = down.divide(i), kw = taps_across.divide(i),
                  kh = taps_down.divide(i);
    const int64_t row = oh * s.stride[0] - s.padding[0] + kh * s.dilation[0];
    const int64_t column = ow * s.stride[1] - s.padding[1] + kw * s.dilation[1];
    const bool is_inside = row >= 0 && row < s.in[0] && column >= 0 && column < s.in[1];
    columns[own] = is_inside ? x[(i * s.in[0] + row) * s.in[1] + column] : T{};
  });
}
void to_columns(const FoldShape& s, const void* x, void* columns, DType dtype) {
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    to_columns_as(s, static_cast<const T*>(x), static_cast<T*>(columns));
  });
}

// The place along a dimension whose window has its tap `tap` at element i, or -1.
__device__ int64_t place_of(const FoldShape& s, int d, int64_t i, int64_t tap) {
  const int64_t from = i + s.padding[d] - tap * s.dilation[d];
  if (from < 0 || from % s.stride[d] != 0) return -1;
  const int64_t place = from / s.stride[d];
  return place < s.out[d] ? place : -1;
}
template <class T> void from_columns_as(const FoldShape& given, const T* columns, T* x) {
  const FoldShape s = given;
  const Divisor across(s.in[1]), down(s.in[0]);
  each(s.planes * s.in[0] * s.in[1], [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t column = across.divide(i), row = down.divide(i);
    Number<T> sum(0);
    for (int64_t kh = 0; kh < s.kernel[0]; ++kh) {
      const int64_t oh = place_of(s, 0, row, kh);
      for (int64_t kw = 0; oh >= 0 && kw < s.kernel[1]; ++kw) {
        const int64_t ow = place_of(s, 1, column, kw);
        if (ow < 0) continue;
        const int64_t tap = (i * s.kernel[0] + kh) * s.kernel[1] + kw;
        sum = plus<T>(sum, number(columns[(tap * s.out[0] + oh) * s.out[1] + ow]));
      }
    }
    x[own] = rounded<T>(sum);
  });
}
void from_columns(const FoldShape& s, const void* columns, void* x, DType dtype) {
  visit_numbers(dtype, "fold", [&]<class T>(Tag<T>) {
    from_columns_as(s, static_cast<const T*>(columns), static_cast<T*>(x));
  });
}

// ---- blocks ----
struct Block {
  int dims;
  int64_t planes, volume = 1, source_volume = 1;
  int64_t source[kMostDims], result[kMostDims];
  Divisor by_source[kMostDims], by_result[kMostDims];
  const int64_t* indices[kMostDims];

  explicit Block(const IndexedBlock& b) : dims(b.dims), planes(b.planes) {
    if (dims > kMostDims) missing_kernel();
    for (int d = 0; d < dims; ++d) {
      source[d] = b.source[d];
      result[d] = b.result[d];
      by_source[d] = Divisor(source[d]);
      by_result[d] = Divisor(result[d]);
      indices[d] = b.indices[d];
      volume *= result[d];
      source_volume *= source[d];
    }
  }
};

template <class T> void read_block_as(const Block& given, const T* x, T* out) {
  const Block b = given;
  each(b.planes * b.volume, [=] __device__(int64_t i) {
    const int64_t own = i;
    int64_t from = 0, step = 1;
    for (int d = b.dims - 1; d >= 0; --d) {
      from += b.indices[d][b.by_result[d].divide(i)] * step;
      step *= b.source[d];
    }
    out[own] = x[i * b.source_volume + from];
  });
}
void read_block(void* out, const void* x, const IndexedBlock& given, DType dtype) {
  const Block b(given);
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    read_block_as(b, static_cast<const T*>(x), static_cast<T*>(out));
  });
}

// Of each dimension its indices in ascending order, and where in its list each of them stands.
struct Readers {
  const uint32_t *sorted[kMostDims], *order[kMostDims];
};
void list_indices(const int64_t* indices, int64_t n, uint32_t* key, uint32_t* place) {
  each(n, [=] __device__(int64_t i) {
    key[i] = static_cast<uint32_t>(indices[i]);
    place[i] = static_cast<uint32_t>(i);
  });
}
__device__ int64_t first_at(const uint32_t* sorted, int64_t n, int64_t wanted) {
  return first_behind(n, [=](int64_t i) { return sorted[i] >= wanted; });
}

// For each element the places in the result that read it are all combinations of one list for
// each dimension.
template <class T> void accumulate_as(const Block& given, const Readers& lists, const T* g, T* gx) {
  const Block b = given;
  const Readers readers = lists;
  each(b.planes * b.source_volume, [=] __device__(int64_t i) {
    const int64_t own = i;
    int64_t first[kMostDims], at[kMostDims], last[kMostDims];
    bool any = true;
    for (int d = b.dims - 1; d >= 0; --d) {
      const int64_t wanted = b.by_source[d].divide(i);
      first[d] = at[d] = first_at(readers.sorted[d], b.result[d], wanted);
      last[d] = first_at(readers.sorted[d], b.result[d], wanted + 1);
      any &= first[d] < last[d];
    }
    Number<T> sum(0);
    while (any) {
      int64_t from = i;
      for (int d = 0; d < b.dims; ++d) from = from * b.result[d] + readers.order[d][at[d]];
      sum = plus<T>(sum, number(g[from]));
      int d = b.dims - 1;
      while (d >= 0 && ++at[d] == last[d]) {
        at[d] = first[d];
        --d;
      }
      any = d >= 0;
    }
    gx[own] = rounded<T>(sum);
  });
}
void accumulate_block(void* gx, const void* g, const IndexedBlock& given, DType dtype) {
  const Block b(given);
  int64_t indices = 0;
  for (int d = 0; d < b.dims; ++d) {
    if (b.result[d] >= kMostElements || b.source[d] >= kMostElements) missing_kernel();
    indices += b.result[d];
  }
  const Workspace memory(static_cast<size_t>(4 * indices) * sizeof(uint32_t));
  auto* lists = memory.as<uint32_t>();
  Readers readers;
  for (int d = 0; d < b.dims; ++d) {
    const int64_t n = b.result[d];
    uint32_t *key = lists, *place = key + n, *sorted = place + n, *order = sorted + n;
    list_indices(b.indices[d], n, key, place);
    sort_pairs(n, std::bit_width(static_cast<uint32_t>(b.source[d])), key, sorted, place, order);
    readers.sorted[d] = sorted;
    readers.order[d] = order;
    lists += 4 * n;
  }
  visit_numbers(dtype, "pad", [&]<class T>(Tag<T>) {
    accumulate_as(b, readers, static_cast<const T*>(g), static_cast<T*>(gx));
  });
}

const FoldKernels fold_table{to_columns, from_columns};
const PadKernels pad_table{read_block, accumulate_block};

}  // namespace

void add_fold_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(fold_table), device_table(pad_table)});
}

}  // namespace taeda::cuda
