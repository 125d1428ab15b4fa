// Elements as unsigned keys in the same order, and the lines that are sorted.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/index/extremes.h"
#include "kernels/sort.h"

namespace taeda::cpu {

template <class T>
using Bits =
    std::conditional_t<sizeof(T) <= 2, std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>,
                       std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
template <class T>
constexpr bool kFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T> bool is_nan(T v) {
  if constexpr (kFloat<T>) return v != v;
  else return false;
}

template <class T> Bits<T> key_of(T v) {
  using U = Bits<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
  U u = std::bit_cast<U>(v);
  if constexpr (kFloat<T>) {
    if (v != v) return static_cast<U>(~U(0));
    if (v == T(0)) u = 0;
    return static_cast<U>(u & top ? ~u : u | top);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<U>(u ^ top);
  } else {
    return u;
  }
}

// Whether elements of the same key may differ: zeros and NaN.
template <class T> bool is_shared(Bits<T> key) {
  constexpr auto zero = static_cast<Bits<T>>(Bits<T>(1) << (sizeof(T) * 8 - 1));
  if constexpr (kFloat<T>) return key == zero || key == static_cast<Bits<T>>(~Bits<T>(0));
  else return false;
}
// The element that has this key; one of them where it is shared.
template <class T> T of_key(Bits<T> key) {
  using U = Bits<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
  if constexpr (kFloat<T>) return std::bit_cast<T>(static_cast<U>(key & top ? key ^ top : ~key));
  else if constexpr (std::is_signed_v<T>) return std::bit_cast<T>(static_cast<U>(key ^ top));
  else return key;
}

template <class T>
[[gnu::optimize("O3"), gnu::noinline]] void write_keys(const T* x, int64_t stride, int64_t n,
                                                       Bits<T> flip, Bits<T>* keys) {
  for (int64_t j = 0; j < n; ++j) keys[j] = static_cast<Bits<T>>(key_of(x[j * stride]) ^ flip);
}

struct Line {
  int64_t x = 0, out = 0;
};
inline Line line_at(const SortLines& l, int64_t index) {
  Line r;
  for (size_t i = l.outer.size(); i-- > 0;) {
    const int64_t at =
        i > 0 ? index % l.outer[i] : index;  // a division costs as much as a few elements
    if (i > 0) index /= l.outer[i];
    r.x += at * l.x_strides[i];
    r.out += at * l.out_strides[i];
  }
  return r;
}
template <class F> void for_each_line(const SortLines& l, F&& f) {
  int64_t lines = 1;
  for (int64_t s : l.outer) lines *= s;
  parallel_for(lines, 4096 / std::max<int64_t>(l.n, 1), std::forward<F>(f));
}

// f(tag of the element type)
template <class F> void visit_sortable(DType dtype, F&& f) {
  visit_real(dtype == DType::Bool ? DType::UInt8 : dtype, "sort", [&](auto tag) {
    if constexpr (!std::is_same_v<typename decltype(tag)::type, bool>) f(tag);
  });
}

// The k first of each line in ascending (descending) order, with their indices; in that order where
// `ordered`.
void first_of_lines(const void* x, void* values, int64_t* indices, const SortLines& l, DType dtype,
                    bool descending, bool ordered);

}  // namespace taeda::cpu
