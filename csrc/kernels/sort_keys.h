// Elements as unsigned keys in the same order: NaN above all numbers, -0 and 0 the same.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "base/half.h"

namespace taeda::sort_keys {

template <class T>
using Bits =
    std::conditional_t<sizeof(T) <= 2, std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>,
                       std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
template <class T>
constexpr bool kFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class T> constexpr bool is_nan(T v) {
  if constexpr (kFloat<T>) return v != v;
  else return false;
}

template <class T> constexpr Bits<T> key_of(T v) {
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
template <class T> constexpr bool is_shared(Bits<T> key) {
  constexpr auto zero = static_cast<Bits<T>>(Bits<T>(1) << (sizeof(T) * 8 - 1));
  if constexpr (kFloat<T>) return key == zero || key == static_cast<Bits<T>>(~Bits<T>(0));
  else return false;
}
// The element that has this key; one of them where it is shared.
template <class T> constexpr T of_key(Bits<T> key) {
  using U = Bits<T>;
  constexpr U top = static_cast<U>(U(1) << (sizeof(U) * 8 - 1));
  if constexpr (kFloat<T>) return std::bit_cast<T>(static_cast<U>(key & top ? key ^ top : ~key));
  else if constexpr (std::is_signed_v<T>) return std::bit_cast<T>(static_cast<U>(key ^ top));
  else return key;
}

}  // namespace taeda::sort_keys
