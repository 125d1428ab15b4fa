// Conversions from and to the dtypes that are stored only. Each has a wide dtype that it is read
// into and written from; between wide dtypes the loops of the instruction set convert.
#include "base/dtype.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda {
namespace {

constexpr int64_t kChunk = 512;  // elements

// `n` elements between memory with a stride (in bytes) and a buffer of wide ones.
using Move = void (*)(char* memory, int64_t stride, char* wide, int64_t n);

struct Codec {
  DType wide;
  Move read, write;
};

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

template <class T, class Wide> constexpr Codec codec() {
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

// How `d` is read and written where it meets `other`.
Codec codec_of(DType d, DType other) {
  return visit_storage_only(d, [&]<class T>(Tag<T>) {
    if constexpr (!std::is_integral_v<T>) return codec<T, float>();
    else if constexpr (sizeof(T) < 8) return codec<T, int64_t>();
    else return is_inexact(other) ? codec<T, double>() : codec<T, int64_t>();
  });
}

// One row. dst and src are stored, or wide already.
void convert_row(DType to, DType from, char* dst, int64_t d, char* src, int64_t s, int64_t n) {
  alignas(16) char read[kChunk * 8], written[kChunk * 8];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t m = std::min(kChunk, n - begin);
    char *in = src + begin * s, *out = dst + begin * d;
    DType in_type = from;
    int64_t in_stride = s;
    if (is_storage_only(from)) {
      const Codec c = codec_of(from, to);
      c.read(in, s, read, m);
      in = read;
      in_type = c.wide;
      in_stride = static_cast<int64_t>(itemsize(c.wide));
    }
    if (!is_storage_only(to)) {
      cast_rows(static_cast<uint8_t>(to), static_cast<uint8_t>(in_type), out, d, 0, in, in_stride,
                0, m, 1);
      continue;
    }
    const Codec c = codec_of(to, from);
    if (in != read || in_type != c.wide) {
      cast_rows(static_cast<uint8_t>(c.wide), static_cast<uint8_t>(in_type), written,
                static_cast<int64_t>(itemsize(c.wide)), 0, in, in_stride, 0, m, 1);
      in = written;
    }
    c.write(out, d, in, m);
  }
}

}  // namespace

uint8_t dtype_of_size(int64_t bytes) {
  return static_cast<uint8_t>(bytes == 1   ? DType::UInt8
                              : bytes == 2 ? DType::Int16
                              : bytes == 4 ? DType::Int32
                              : bytes == 8 ? DType::Int64
                                           : DType::Complex128);
}

void cast_stored(uint8_t to, uint8_t from, char* dst, int64_t d0, int64_t d1, const char* src,
                 int64_t s0, int64_t s1, int64_t n0, int64_t n1) {
  if (to == from) {
    const auto same = dtype_of_size(static_cast<int64_t>(itemsize(static_cast<DType>(to))));
    cast_rows(same, same, dst, d0, d1, src, s0, s1, n0, n1);
    return;
  }
  for (int64_t j = 0; j < n1; ++j) {
    convert_row(static_cast<DType>(to), static_cast<DType>(from), dst + j * d1, d0,
                const_cast<char*>(src) + j * s1, s0, n0);
  }
}

}  // namespace taeda
