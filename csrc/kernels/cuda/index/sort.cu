// Lines in order, and elements by their rank. All lines are sorted at once, by keys that are
// ordered as their elements are.
#include "kernels/sort.h"

#include <algorithm>
#include <bit>

#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"
#include "kernels/sort_keys.h"

namespace taeda::cuda {
namespace {

using namespace sort_keys;

constexpr int64_t kMostAtOnce = int64_t{1} << 26;  // elements, in 32 bytes each

struct LineLayout {
  int dims = 0;
  Divisor sizes[kMostDims], by_n;
  int64_t x_strides[kMostDims], out_strides[kMostDims];
  int64_t lines = 1, n, x_stride, k, out_stride;

  explicit LineLayout(const SortLines& l)
      : by_n(l.n),
        n(l.n),
        x_stride(l.x_stride),
        k(l.k),
        out_stride(l.out_stride) {
    if (l.outer.size() > kMostDims || n >= kMostElements) missing_kernel();
    for (size_t d = l.outer.size(); d-- > 0; ++dims) {
      sizes[dims] = Divisor(l.outer[d]);
      x_strides[dims] = l.x_strides[d];
      out_strides[dims] = l.out_strides[d];
      lines *= l.outer[d];
    }
  }
  // Where a line begins.
  __device__ void locate(int64_t line, int64_t* x, int64_t* out) const {
    *x = *out = 0;
    for (int d = 0; d < dims; ++d) {
      const int64_t i = sizes[d].divide(line);
      *x += i * x_strides[d];
      *out += i * out_strides[d];
    }
  }
};

// Some whole lines.
struct Lines {
  int64_t first, count;
};

// The line's number above the key, where there is room for both.
template <class T, class K, class P>
void write_keys(const T* x, const LineLayout& given, Lines lines, Bits<T> flip, K* keys,
                P* places) {
  const LineLayout l = given;
  each(lines.count * l.n, [=] __device__(int64_t i) {
    int64_t line = i, at, out;
    const int64_t j = l.by_n.divide(line);
    l.locate(lines.first + line, &at, &out);
    K key = static_cast<Bits<T>>(key_of(x[at + j * l.x_stride]) ^ flip);
    if constexpr (sizeof(T) < sizeof(K)) key |= static_cast<K>(line) << (sizeof(T) * 8);
    keys[i] = key;
    places[i] = static_cast<P>(i);
  });
}

template <class K, class P>
void write_lines(const P* places, int64_t total, const LineLayout& l, K* keys) {
  const Divisor by_n = l.by_n;
  each(total, [=] __device__(int64_t i) {
    int64_t line = places[i];
    by_n.divide(line);
    keys[i] = static_cast<K>(line);
  });
}

// The lines' elements in order, each as line * n + index.
template <class T, class K, class P> class Order {
 public:
  Order(const T* x, const LineLayout& l, Lines lines, bool descending)
      : memory_(static_cast<size_t>(lines.count * l.n) * 2 * (sizeof(K) + sizeof(P))) {
    const int64_t total = lines.count * l.n;
    auto *keys = memory_.as<K>(), *sorted = keys + total;
    auto *places = reinterpret_cast<P*>(sorted + total), *order = places + total;
    const auto line_bits = std::bit_width(static_cast<uint64_t>(lines.count - 1));
    const bool together = sizeof(T) < sizeof(K);
    write_keys(x, l, lines, descending ? static_cast<Bits<T>>(~Bits<T>(0)) : Bits<T>(0), keys,
               places);
    sort_pairs(total, static_cast<int>(sizeof(T) * 8) + (together ? line_bits : 0), keys, sorted,
               places, order);
    places_ = order;
    if (together || lines.count == 1) return;
    write_lines(order, total, l, keys);  // their elements keep the order that they have now
    sort_pairs(total, line_bits, keys, sorted, order, places);
    places_ = places;
  }
  const P* places() const { return places_; }

 private:
  Workspace memory_;
  P* places_;
};

template <class T, class P>
void write_sorted(const T* x, const LineLayout& given, Lines lines, const P* places, T* values,
                  int64_t* indices) {
  const LineLayout l = given;
  const Divisor by_k(l.k);
  each(lines.count * l.k, [=] __device__(int64_t i) {
    int64_t line = i, at, out;
    const int64_t rank = by_k.divide(line);
    const int64_t index = places[line * l.n + rank] - line * l.n;
    l.locate(lines.first + line, &at, &out);
    values[out + rank * l.out_stride] = x[at + index * l.x_stride];
    indices[out + rank * l.out_stride] = index;
  });
}

// The rank that is asked for of a line whose numbers come before `nans` NaN; or the first NaN's.
__device__ int64_t rank_of(Select what, int64_t rank, int64_t n, int64_t nans) {
  if (what == Select::Rank) return rank;
  if (what == Select::NanMedian) return nans < n ? (n - nans - 1) / 2 : 0;
  return nans > 0 ? n - nans : (n - 1) / 2;
}

template <class T, class P>
void write_selected(const T* x, const LineLayout& given, Lines lines, const P* places, Select what,
                    int64_t rank, T* values, int64_t* indices) {
  const LineLayout l = given;
  each(lines.count, [=] __device__(int64_t line) {
    int64_t at, out;
    l.locate(lines.first + line, &at, &out);
    const auto index_of = [&](int64_t r) { return places[line * l.n + r] - line * l.n; };
    int64_t low = 0, high = l.n;  // of the first NaN
    while (kFloat<T> && low < high) {
      const int64_t middle = (low + high) / 2;
      if (is_nan(x[at + index_of(middle) * l.x_stride])) high = middle;
      else low = middle + 1;
    }
    const int64_t index = index_of(rank_of(what, rank, l.n, kFloat<T> ? l.n - low : 0));
    values[out] = x[at + index * l.x_stride];
    indices[out] = index;
  });
}

// write(lines, places) for some lines after others.
template <class K, class P, class T, class F>
void order_lines(const T* x, const LineLayout& l, bool descending, F write) {
  const int64_t at_once = std::max<int64_t>(1, kMostAtOnce / std::max<int64_t>(1, l.n));
  for (int64_t first = 0; first < l.lines; first += at_once) {
    const Lines lines{first, std::min(at_once, l.lines - first)};
    write(lines, Order<T, K, P>(x, l, lines, descending).places());
  }
}
template <class T, class F>
void order_all(const T* x, const LineLayout& l, bool descending, F write) {
  if (l.n == 0) return;
  if (sizeof(T) <= 4 && l.lines == 1) order_lines<uint32_t, uint32_t>(x, l, descending, write);
  else order_lines<uint64_t, int64_t>(x, l, descending, write);
}

template <class F> void visit_sortable(DType dtype, F&& f) {
  visit_real(dtype == DType::Bool ? DType::UInt8 : dtype, "sort", [&]<class T>(Tag<T> tag) {
    if constexpr (!std::is_same_v<T, bool>) f(tag);
  });
}

void sort(const void* x, void* values, int64_t* indices, const SortLines& lines, DType dtype,
          bool descending, bool) {
  const LineLayout l(lines);
  visit_sortable(dtype, [&]<class T>(Tag<T>) {
    const auto* from = static_cast<const T*>(x);
    order_all(from, l, descending, [&](Lines some, const auto* places) {
      write_sorted(from, l, some, places, static_cast<T*>(values), indices);
    });
  });
}

void select(const void* x, void* values, int64_t* indices, const SortLines& lines, DType dtype,
            Select what, int64_t rank) {
  const LineLayout l(lines);
  visit_sortable(dtype, [&]<class T>(Tag<T>) {
    const auto* from = static_cast<const T*>(x);
    order_all(from, l, false, [&](Lines some, const auto* places) {
      write_selected(from, l, some, places, what, rank, static_cast<T*>(values), indices);
    });
  });
}

const SortKernels sort_table{sort};
const SelectKernels select_table{select};

}  // namespace

void add_sort_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(sort_table), device_table(select_table)});
}

}  // namespace taeda::cuda
