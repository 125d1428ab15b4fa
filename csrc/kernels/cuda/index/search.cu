// Binary searches in sorted lines, and whether an element is one of others.
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/sort.h"
#include "kernels/cuda/index/tables.h"
#include "kernels/sort.h"
#include "kernels/sort_keys.h"

namespace taeda::cuda {
namespace {

using namespace sort_keys;

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

const SearchKernels search_table{search, find_members};

}  // namespace

void add_search_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(search_table)});
}

}  // namespace taeda::cuda
