#include "kernels/functors/storage_only.h"

#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda {
namespace {

constexpr int64_t kChunk = 512;  // elements

// One row. dst and src are stored, or wide already.
void convert_row(DType to, DType from, char* dst, int64_t d, char* src, int64_t s, int64_t n) {
  alignas(16) char read[kChunk * 8], written[kChunk * 8];
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t m = std::min(kChunk, n - begin);
    char *in = src + begin * s, *out = dst + begin * d;
    DType in_type = from;
    int64_t in_stride = s;
    if (is_storage_only(from)) {
      const StorageCodec c = storage_codec(from, to);
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
    const StorageCodec c = storage_codec(to, from);
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
