// Conversions from and to the dtypes that are stored only: each has a wide dtype that it is read
// into and written from.
#pragma once

#include "base/dtype.h"

namespace taeda {

// `n` elements between memory with a stride (in bytes) and a buffer of wide ones.
using StorageMove = void (*)(char* memory, int64_t stride, char* wide, int64_t n);

struct StorageCodec {
  DType wide;
  StorageMove read, write;
};

namespace stored {

template <class Wide, class T> Wide widen(T v) { return static_cast<Wide>(v); }
template <class T, class Wide> T narrow(Wide v) {
  if constexpr (std::is_same_v<T, uint64_t> && std::is_same_v<Wide, double>) {
    // Negative numbers wrap around, as integers do; what has no integer is 0.
    if (v >= 0) return v < 0x1p64 ? static_cast<uint64_t>(v) : 0;
    return v > -0x1p63 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : 0;
  } else {
    return static_cast<T>(v);
  }
}

template <class T, class Wide> constexpr StorageCodec codec() {
  return {dtype_of<Wide>,
          [](char* memory, int64_t stride, char* wide, int64_t n) {
            auto* w = reinterpret_cast<Wide*>(wide);
            for (int64_t i = 0; i < n; ++i)
              w[i] = widen<Wide>(*reinterpret_cast<const T*>(memory + i * stride));
          },
          [](char* memory, int64_t stride, char* wide, int64_t n) {
            const auto* w = reinterpret_cast<const Wide*>(wide);
            for (int64_t i = 0; i < n; ++i)
              *reinterpret_cast<T*>(memory + i * stride) = narrow<T>(w[i]);
          }};
}

}  // namespace stored

// How `d` is read and written where it meets `other`.
inline StorageCodec storage_codec(DType d, DType other) {
  return visit_storage_only(d, [&]<class T>(Tag<T>) {
    if constexpr (is_complex_type<T>) return stored::codec<T, cfloat>();
    else if constexpr (!std::is_integral_v<T>) return stored::codec<T, float>();
    else if constexpr (sizeof(T) < 8) return stored::codec<T, int64_t>();
    else return is_inexact(other) ? stored::codec<T, double>() : stored::codec<T, int64_t>();
  });
}

}  // namespace taeda
