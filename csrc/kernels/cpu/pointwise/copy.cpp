#include <algorithm>
#include <cstring>
#include <optional>

#include "base/thread_pool.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "tensor/plan.h"

namespace taeda {
namespace {

constexpr int64_t kCopyGrain = 32768;  // elements that are worth a thread's attention

// Moves 2-D tiles where the source runs fastest along the other dimension, so that both sides use
// whole cache lines.
template <class T>
void transpose_tiles(char* dst, int64_t d1, const char* src, int64_t s0, int64_t n0, int64_t begin,
                     int64_t end) {
  constexpr int64_t tile = 32;
  for (int64_t j = begin; j < end; j += tile) {
    const int64_t jn = std::min(tile, end - j);
    for (int64_t i = 0; i < n0; i += tile) {
      const int64_t in = std::min(tile, n0 - i);
      T buffer[tile][tile];
      for (int64_t a = 0; a < in; ++a) {
        const T* s = reinterpret_cast<const T*>(src + (i + a) * s0) + j;
        for (int64_t b = 0; b < jn; ++b) buffer[b][a] = s[b];
      }
      for (int64_t b = 0; b < jn; ++b)
        std::memcpy(dst + (j + b) * d1 + i * int64_t(sizeof(T)), buffer[b], size_t(in) * sizeof(T));
    }
  }
}

// A copy of planes whose source runs fastest along the second dimension, of up to 8 bytes an
// element. `plane_offset(k, o)`: where plane o of operand k begins.
template <class F> void run_transpose(const Plan& plan, int64_t planes, F&& plane_offset) {
  const int64_t n = plan.sizes[0], m = plan.sizes[1], d = plan.strides[0][1],
                s = plan.strides[1][0];
  const auto item = static_cast<int64_t>(itemsize(plan.dtype[0]));
  bool aligned = reinterpret_cast<uintptr_t>(plan.data[0]) % 64 == 0;
  for (size_t i = 1; i < plan.sizes.size(); ++i) aligned &= plan.strides[0][i] % 64 == 0;
  const auto kernel =
      TAEDA_PICK(transpose_kernels).of(item, aligned && cpu::is_streamed(plan.numel * item));
  // Tiles of each plane: a band of rows of src, and as many columns as are worth a thread's
  // attention.
  const int64_t rows = std::min(n, cpu::simd::transpose_rows(item));
  const int64_t columns = std::min(m, (kCopyGrain / rows + 63) / 64 * 64);
  const int64_t bands = (n + rows - 1) / rows, parts = (m + columns - 1) / columns;
  parallel_each(planes * bands * parts, kCopyGrain / (rows * columns), [&](int64_t t) {
    const int64_t o = t / parts / bands, i = t / parts % bands * rows, j = t % parts * columns;
    kernel(plan.data[0] + plane_offset(0, o) + j * d + i * item, d,
           plan.data[1] + plane_offset(1, o) + i * s + j * item, s, std::min(rows, n - i),
           std::min(columns, m - j));
  });
}

// Planes of n x m elements, so few that each is done sooner than its kernel begins; N: both, or 0
// where they are others.
constexpr int64_t kTinyPlane = 32;
template <class T, int64_t N>
void transpose_tiny_planes(const Plan& plan, int64_t begin, int64_t end) {
  const Dims &d = plan.strides[0], &s = plan.strides[1];
  const int64_t n = N ? N : plan.sizes[0], m = N ? N : plan.sizes[1];
  const int64_t to_step = d[1] / int64_t{sizeof(T)}, from_step = s[0] / int64_t{sizeof(T)};
  for (int64_t o = begin; o < end; ++o) {
    T* to = reinterpret_cast<T*>(plan.data[0] + o * d[2]);
    const T* from = reinterpret_cast<const T*>(plan.data[1] + o * s[2]);
#pragma GCC unroll 4
    for (int64_t j = 0; j < m; ++j) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < n; ++i) to[j * to_step + i] = from[i * from_step + j];
    }
  }
}
template <class T> void transpose_tiny_planes(const Plan& plan) {
  const int64_t n = plan.sizes[0], m = plan.sizes[1], planes = plan.sizes[2];
  parallel_for(planes, kCopyGrain / (n * m), [&](int64_t begin, int64_t end) {
    if (n == 3 && m == 3) transpose_tiny_planes<T, 3>(plan, begin, end);
    else if (n == 4 && m == 4) transpose_tiny_planes<T, 4>(plan, begin, end);
    else transpose_tiny_planes<T, 0>(plan, begin, end);
  });
}

// A loop of its own for what streamed results are most often converted between; null for others.
StreamedCast streamed_cast(DType to, DType from) {
  const StreamedCasts& casts = *loops().streamed;
  if (from == DType::Float32 && is_half(to)) return casts.to_half[to == DType::BFloat16];
  if (to == DType::Float32 && is_half(from)) return casts.from_half[from == DType::BFloat16];
  return nullptr;
}

// Copies between contiguous operands with non-temporal stores. False where an operand is not
// contiguous or the result is too small for them.
bool run_streamed(const Plan& plan) {
  constexpr int64_t bytes = 512, ahead = 8192;
  const auto to = static_cast<uint8_t>(plan.dtype[0]), from = static_cast<uint8_t>(plan.dtype[1]);
  const auto item = static_cast<int64_t>(itemsize(plan.dtype[0])),
             source = static_cast<int64_t>(itemsize(plan.dtype[1]));
  if (plan.strides[0][0] != item || plan.strides[1][0] != source ||
      reinterpret_cast<uintptr_t>(plan.data[0]) % 64 != 0 || !cpu::is_streamed(plan.numel * item))
    return false;
  const StreamedCast cast = streamed_cast(plan.dtype[0], plan.dtype[1]);
  const int64_t block = bytes / item, blocks = (plan.numel + block - 1) / block;
  parallel_for(blocks, kCopyGrain / block, [&](int64_t begin, int64_t end) {
    char* dst = plan.data[0] + begin * bytes;
    const char* src = plan.data[1] + begin * block * source;
    int64_t n = std::min((end - begin) * block, plan.numel - begin * block);
    if (cast) return cast(dst, src, n);
    if (to == from) cpu::stream_copy(dst, src, static_cast<size_t>(n * item));
    for (; to != from && n > 0; n -= block, dst += bytes, src += block * source) {
      alignas(64) char buffer[bytes];
      const int64_t some = std::min(block, n);
      for (int64_t k = 0; k < some * source; k += 64) __builtin_prefetch(src + ahead + k);
      cast_rows(to, from, buffer, item, 0, src, source, 0, some, 1);
      cpu::stream_near(dst, buffer, static_cast<size_t>(some * item));
    }
    cpu::stream_fence();
  });
  return true;
}

// Short rows that lie side by side on both sides, moved as one element of that size; null where
// they are not such.
std::optional<Plan> with_rows_as_elements(const Plan& plan) {
  const auto item = static_cast<int64_t>(itemsize(plan.dtype[0])), row = plan.sizes[0] * item;
  if (plan.dtype[0] != plan.dtype[1] || plan.sizes.size() < 2 || plan.sizes[0] < 2 || row > 16 ||
      (row & (row - 1)) != 0 || plan.strides[0][0] != item || plan.strides[1][0] != item)
    return {};
  int64_t all = row;  // whether everything is a multiple of it
  for (int k = 0; k < 2; ++k) {
    all |= static_cast<int64_t>(reinterpret_cast<uintptr_t>(plan.data[k]));
    for (size_t i = 1; i < plan.sizes.size(); ++i) all |= plan.strides[k][i];
  }
  if (all % row != 0) return {};
  Plan wide = plan;
  const auto rest = [](const Dims& d) { return Dims(DimsRef(d.data() + 1, d.size() - 1)); };
  wide.numel /= plan.sizes[0];
  wide.sizes = rest(plan.sizes);
  for (int k = 0; k < 2; ++k) {
    wide.dtype[k] = static_cast<DType>(dtype_of_size(row));
    wide.strides[k] = rest(plan.strides[k]);
  }
  return wide;
}

constexpr int64_t kRow = 256;  // bytes of rows whose copies would be calls each

}  // namespace

void run_copy(const Plan& plan) {
  if (plan.numel == 0) return;
  if (const auto wide = with_rows_as_elements(plan)) return run_copy(*wide);
  const auto to = static_cast<uint8_t>(plan.dtype[0]), from = static_cast<uint8_t>(plan.dtype[1]);
  auto cast = [=](char* dst, int64_t d0, int64_t d1, const char* src, int64_t s0, int64_t s1,
                  int64_t n0,
                  int64_t n1) { cast_rows(to, from, dst, d0, d1, src, s0, s1, n0, n1); };
  const Dims &n = plan.sizes, &d = plan.strides[0], &s = plan.strides[1];
  if (n.size() == 1) {
    if (run_streamed(plan)) return;
    parallel_for(n[0], kCopyGrain, [&](int64_t begin, int64_t end) {
      cast(plan.data[0] + begin * d[0], d[0], 0, plan.data[1] + begin * s[0], s[0], 0, end - begin,
           1);
    });
    return;
  }
  const int64_t outer = plan.numel / n[0] / n[1], plane = n[0] * n[1];
  auto plane_offset = [&](int k, int64_t index) {
    int64_t offset = 0;
    for (size_t i = 2; i < n.size(); ++i) {
      offset += index % n[i] * plan.strides[k][i];
      index /= n[i];
    }
    return offset;
  };
  const auto item = static_cast<int64_t>(itemsize(plan.dtype[0]));
  const bool transposed =
      plan.dtype[0] == plan.dtype[1] && d[0] == item && s[1] == item && s[0] != 0;
  if (transposed && n.size() == 3 && plane <= kTinyPlane && (item == 4 || item == 8))
    return item == 4 ? transpose_tiny_planes<uint32_t>(plan)
                     : transpose_tiny_planes<uint64_t>(plan);
  const bool in_tiles = transposed && n[0] >= 4 && n[1] >= 4;
  if (in_tiles && item <= 8 && (item >= 4 || (n[0] * item >= 16 && n[1] * item >= 16))) {
    run_transpose(plan, outer, plane_offset);
    return;
  }
  const bool in_rows = plan.dtype[0] == plan.dtype[1] && d[0] == item && s[0] == item &&
                       n[0] * item >= 16 && n[0] * item <= kRow;
  auto run = [&](int64_t o, int64_t begin, int64_t end) {  // rows [begin, end) of one plane
    char* dst = plan.data[0] + plane_offset(0, o);
    const char* src = plan.data[1] + plane_offset(1, o);
    if (in_tiles) {
      visit_bytes(plan.dtype[0], [&]<class T>(Tag<T>) {
        transpose_tiles<T>(dst, d[1], src, s[0], n[0], begin, end);
      });
    } else if (in_rows) {
      cpu::simd::streams().rows(dst + begin * d[1], d[1], src + begin * s[1], s[1], n[0] * item,
                                end - begin);
    } else if (n[0] < 8 &&
               n[1] > n[0]) {  // a long inner loop is worth more than the order of writing
      cast(dst + begin * d[1], d[1], d[0], src + begin * s[1], s[1], s[0], end - begin, n[0]);
    } else {
      cast(dst + begin * d[1], d[0], d[1], src + begin * s[1], s[0], s[1], n[0], end - begin);
    }
  };
  if (plane >= 4 * kCopyGrain) {
    const int64_t grain = std::max<int64_t>(32, (kCopyGrain / n[0] + 31) / 32 * 32);
    for (int64_t o = 0; o < outer; ++o) {
      parallel_for(n[1], grain, [&](int64_t begin, int64_t end) { run(o, begin, end); });
    }
  } else {
    parallel_each(outer, kCopyGrain / plane, [&](int64_t o) { run(o, 0, n[1]); });
  }
}

}  // namespace taeda
