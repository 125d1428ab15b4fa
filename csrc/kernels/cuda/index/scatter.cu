// Reading and writing by index. What meets at one element is written by one thread in order, so
// that results do not depend on timing.
#include "kernels/scatter.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/index/tables.h"

namespace taeda::cuda {
namespace {

// ---- at offsets ----
struct OffsetLayout {
  int dims = 0;  // of `outer`
  Divisor sizes[kMostDims], by_run, by_count;
  int64_t strides[kMostDims], flat[kMostDims];
  int64_t outer = 1;
  const int64_t* offsets;
  int64_t count, count_flat, run, run_stride, run_flat;

  explicit OffsetLayout(const IndexLayout& l)
      : by_run(l.run),
        by_count(l.count),
        offsets(l.offsets),
        count(l.count),
        count_flat(l.count_flat),
        run(l.run),
        run_stride(l.run_stride),
        run_flat(l.run_flat) {
    if (l.outer.size() > kMostDims) missing_kernel();
    for (size_t d = l.outer.size(); d-- > 0; ++dims) {
      sizes[dims] = Divisor(l.outer[d]);
      strides[dims] = l.outer_strides[d];
      flat[dims] = l.outer_flat[d];
      outer *= l.outer[d];
    }
  }
  // Where element r of a run in the outer part o begins in the indexed and in the flat array.
  __device__ void locate(int64_t o, int64_t r, int64_t* indexed, int64_t* dense) const {
    *indexed = r * run_stride;
    *dense = r * run_flat;
    for (int d = 0; d < dims; ++d) {
      const int64_t i = sizes[d].divide(o);
      *indexed += i * strides[d];
      *dense += i * flat[d];
    }
  }
};

// Kernels stand in functions of their own: nvcc has none in generic lambdas.
template <class T> void read_as(T* to, const T* from, const OffsetLayout& given) {
  const OffsetLayout l = given;
  each(l.outer * l.count * l.run, [=] __device__(int64_t i) {
    const int64_t r = l.by_run.divide(i), k = l.by_count.divide(i);
    int64_t at, dense;
    l.locate(i, r, &at, &dense);
    to[dense + k * l.count_flat] = from[at + l.offsets[k]];
  });
}
void read(void* flat, const void* indexed, const IndexLayout& l, DType dtype) {
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    read_as(static_cast<T*>(flat), static_cast<const T*>(indexed), OffsetLayout(l));
  });
}

// change(element, value) for all `count` in order.
template <class T, class F>
void in_order(void* indexed, const void* flat, const OffsetLayout& given, F change) {
  const OffsetLayout l = given;
  auto* to = static_cast<T*>(indexed);
  const auto* from = static_cast<const T*>(flat);
  each(l.outer * l.run, [=] __device__(int64_t i) {
    int64_t at, dense;
    const int64_t r = l.by_run.divide(i);
    l.locate(i, r, &at, &dense);
    for (int64_t k = 0; k < l.count; ++k)
      change(to[at + l.offsets[k]], from[dense + k * l.count_flat]);
  });
}

struct Replace {
  template <class T> __device__ void operator()(T& to, const T& v) const { to = v; }
};
struct Combine {
  ScatterMode mode;
  template <class T> __device__ void operator()(T& to, const T& v) const {
    if constexpr (is_half_type<T>) {
      float f = to;
      (*this)(f, static_cast<float>(v));
      to = T(f);
    } else if constexpr (is_complex<T>) {
      to = mode == ScatterMode::Add ? to + v : mode == ScatterMode::Multiply ? to * v : v;
    } else if constexpr (same_type<T, bool>) {
      const bool both = to && v, any = to || v;
      const bool all = mode == ScatterMode::Multiply || mode == ScatterMode::Min;
      to = mode == ScatterMode::Copy ? v : all ? both : any;
    } else {
      switch (mode) {
        case ScatterMode::Copy: to = v; break;
        case ScatterMode::Add:
          if constexpr (is_float<T>) to += v;
          else to = static_cast<T>(static_cast<uint64_t>(to) + static_cast<uint64_t>(v));
          break;
        case ScatterMode::Multiply:
          if constexpr (is_float<T>) to *= v;
          else to = static_cast<T>(static_cast<uint64_t>(to) * static_cast<uint64_t>(v));
          break;
        case ScatterMode::Max: to = v > to || v != v ? v : to; break;
        case ScatterMode::Min: to = v < to || v != v ? v : to; break;
      }
    }
  }
};

void write(void* indexed, const void* flat, const IndexLayout& l, DType dtype) {
  visit_bytes(dtype,
              [&]<class T>(Tag<T>) { in_order<T>(indexed, flat, OffsetLayout(l), Replace{}); });
}
void accumulate(void* indexed, const void* flat, const IndexLayout& l, DType dtype) {
  visit_numbers(dtype, "scatter", [&]<class T>(Tag<T>) {
    in_order<T>(indexed, flat, OffsetLayout(l), Combine{ScatterMode::Add});
  });
}

template <class T>
__global__ void take_rows(int64_t count, int64_t width, const T* from, const int64_t* index,
                          T* to) {
  const int64_t row = group_index();
  if (row >= count) return;
  const T* taken = from + index[row] * width;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) to[row * width + i] = taken[i];
}
template <class T>
void take_rows_as(int64_t count, int64_t width, const T* from, const int64_t* index, T* to) {
  const dim3 block = groups_for(width);
  if (count > 0)
    launch(take_rows<T>, blocks_of(count, block), block, 0, count, width, from, index, to);
}
void take_rows(int64_t count, int64_t row_bytes, const void* table, const int64_t* index,
               void* out) {
  const auto run = [&]<class T>(Tag<T>) {
    take_rows_as(count, row_bytes / static_cast<int64_t>(sizeof(T)), static_cast<const T*>(table),
                 index, static_cast<T*>(out));
  };
  const auto place = reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out) |
                     static_cast<uintptr_t>(row_bytes);
  if (place % 16 == 0) run(Tag<Bytes16>());
  else if (place % 4 == 0) run(Tag<uint32_t>());
  else run(Tag<uint8_t>());
}

// ---- along a dimension ----
struct AlongLayout {
  int dims = 0;  // all but `dim`
  Divisor sizes[kMostDims], by_lines;
  int64_t index_strides[kMostDims], target[kMostDims], other[kMostDims];
  int64_t lines = 1, n = 1, index_step = 0, target_step = 0, other_step = 0, size;
  const int64_t* index;

  explicit AlongLayout(const ScatterLayout& l) : size(l.size), index(l.index) {
    if (l.sizes.size() > kMostDims + 1) missing_kernel();
    for (size_t d = l.sizes.size(); d-- > 0;) {
      if (d == l.dim) {
        n = l.sizes[d];
        index_step = l.index_strides[d];
        target_step = l.target_strides[d];
        other_step = l.other_strides[d];
        continue;
      }
      sizes[dims] = Divisor(l.sizes[d]);
      index_strides[dims] = l.index_strides[d];
      target[dims] = l.target_strides[d];
      other[dims] = l.other_strides[d];
      lines *= l.sizes[d];
      ++dims;
    }
    by_lines = Divisor(lines);
  }
  struct Place {
    int64_t index, target, other;
  };
  __device__ Place line(int64_t l) const {
    Place p{0, 0, 0};
    for (int d = 0; d < dims; ++d) {
      const int64_t i = sizes[d].divide(l);
      p.index += i * index_strides[d];
      p.target += i * target[d];
      p.other += i * other[d];
    }
    return p;
  }
};

// Whether all indices are in range. keep_inside() has seen to that, unless the host waits to know.
bool in_range(const AlongLayout& given) {
  const AlongLayout l = given;
  if (l.lines * l.n == 0 || (l.size > 0 && !is_blocking())) return true;
  const Workspace memory(sizeof(int));
  int* outside = memory.as<int>();
  each(1, [=] __device__(int64_t) { *outside = 0; });
  each(l.lines * l.n, [=] __device__(int64_t i) {
    const int64_t line = l.by_lines.divide(i), at = l.index[l.line(line).index + i * l.index_step];
    if (at < 0 || at >= l.size) *outside = 1;
  });
  return read_back(outside) == 0;
}

template <class T> void gather_as(T* to, const T* from, const AlongLayout& given) {
  const AlongLayout l = given;
  each(l.lines * l.n, [=] __device__(int64_t i) {
    const auto p = l.line(l.by_lines.divide(i));
    const int64_t at = l.index[p.index + i * l.index_step];
    to[p.other + i * l.other_step] = from[p.target + at * l.target_step];
  });
}
bool gather(void* out, const void* x, const ScatterLayout& layout, DType dtype) {
  const AlongLayout l(layout);
  if (!in_range(l)) return false;
  visit_bytes(dtype, [&]<class T>(Tag<T>) {
    gather_as(static_cast<T*>(out), static_cast<const T*>(x), l);
  });
  return true;
}

template <class T, class F>
void scatter_in_order(void* target, const void* src, const AlongLayout& given, F change) {
  const AlongLayout l = given;
  auto* to = static_cast<T*>(target);
  const auto* from = static_cast<const T*>(src);
  each(l.lines, [=] __device__(int64_t i) {
    const auto p = l.line(i);
    for (int64_t k = 0; k < l.n; ++k)
      change(to[p.target + l.index[p.index + k * l.index_step] * l.target_step],
             from[p.other + k * l.other_step]);
  });
}

bool scatter(void* target, const void* src, const ScatterLayout& layout, DType dtype,
             ScatterMode mode) {
  const AlongLayout l(layout);
  if (!in_range(l)) return false;
  if (mode == ScatterMode::Copy) {
    visit_bytes(dtype, [&]<class T>(Tag<T>) { scatter_in_order<T>(target, src, l, Replace{}); });
  } else {
    visit_numbers(dtype, "scatter",
                  [&]<class T>(Tag<T>) { scatter_in_order<T>(target, src, l, Combine{mode}); });
  }
  return true;
}

const ScatterKernels table{read, write, accumulate, take_rows, gather, scatter};

}  // namespace

void add_scatter_tables(std::vector<DeviceTable>& to) { to.push_back(device_table(table)); }

}  // namespace taeda::cuda
