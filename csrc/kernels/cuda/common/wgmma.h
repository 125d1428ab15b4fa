// Products of 64 x 16 by 16 x 64 tiles by a warpgroup, four warps in a row (wgmma). Of sm_90a
// alone. The left side and the result are in registers, 16 rows of each warp, as those of mma.h;
// the right side is read from shared memory while the warps go on.
//
// What a thread has copied to shared memory is seen by products after its publish_copies() and a
// barrier. Between begin_products() and wait_for_products() the registers of products belong to
// them: keep() says after it that they have changed.
#pragma once

#include "kernels/cuda/common/mma.h"

namespace taeda::cuda {

constexpr int kWarpgroup = 128;

// Rows of 64 halves, swizzled: chunks of 8 are exchanged by the row's last three bits. Begins at a
// multiple of 1024 bytes.
struct Panel {
  static constexpr int kRowBytes = 128;
  static constexpr int bytes(int rows) { return rows * kRowBytes; }
};

#ifdef TAEDA_HOST_SHIM

inline void begin_products() {}
inline void commit_products() {}
template <int kMost> void wait_for_products() {}
inline void publish_copies() {}
template <class T> void keep(T&) {}

using RightSide = const char*;
inline RightSide right_side(SharedAddress panel) { return panel; }
inline RightSide moved(RightSide r, int bytes) { return r + bytes; }

template <class T, bool kTransposed>
void multiply_add_64(float (*c)[4], const uint32_t (&a)[4], RightSide right, bool add) {
  struct Own {
    uint32_t a[4];
  };
  const shim::Gathered<Own> all(Own{{a[0], a[1], a[2], a[3]}});
  const int first_row = lane_of_warp() / 4, first_column = lane_of_warp() % 4 * 2;
  const auto right_at = [&](int row, int column) {  // of the panel that `right` is in
    const auto begin = reinterpret_cast<uintptr_t>(right);
    const uintptr_t at = begin + static_cast<uintptr_t>(row * Panel::kRowBytes + column * 2);
    return *reinterpret_cast<const T*>(at ^ (at >> 7 & 7) << 4);
  };
  for (int n = 0; n < 8; ++n)
    for (int i = 0; i < 4; ++i) {
      const int row = first_row, column = n * 8 + first_column + i % 2;
      float sum = add ? c[n][i] : 0;
      for (int k = 0; k < 16; ++k)
        sum += half_of<T>(all[row * 4 + k % 8 / 2].a[i / 2 + k / 8 * 2], k % 2) *
               static_cast<float>(kTransposed ? right_at(k, column) : right_at(column, k));
      c[n][i] = sum;
    }
}

#else

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// What was begun since the last time is a group.
__device__ inline void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until all groups of the warpgroup but the last kMost are done.
template <int kMost> __device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kMost) : "memory");
}
__device__ inline void publish_copies() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void keep(float& v) { asm volatile("" : "+f"(v)::"memory"); }
__device__ __forceinline__ void keep(uint32_t& v) { asm volatile("" : "+r"(v)::"memory"); }

// Of the descriptor of 64 columns or rows in a panel, the half that says where they begin.
using RightSide = uint32_t;
__device__ inline RightSide right_side(SharedAddress panel) {
  return (panel & 0x3FFFF) >> 4 | 1 << 16;
}
__device__ inline RightSide moved(RightSide r, int bytes) {
  return r + static_cast<uint32_t>(bytes >> 4);
}
// The other half: the distance of groups of 8 rows, and the swizzle, of 128 bytes.
constexpr uint32_t kPanelLayout = 8 * Panel::kRowBytes / 16 | 1u << 30;

// c = a right, or c += a right. kTransposed: the panel's rows are those of the right side; else
// they are its columns.
template <class T, bool kTransposed>
__device__ __forceinline__ void multiply_add_64(float (*c)[4], const uint32_t (&a)[4],
                                                RightSide right, bool add) {
  if constexpr (same_type<T, Half>)
    asm volatile(
        "{.reg .pred add; .reg .b64 right; setp.ne.b32 add, %38, 0; mov.b64 right, {%36, %39};\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, right, add, 1, 1, %37;}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
          "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
          "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
          "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
          "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
          "+f"(c[7][2]), "+f"(c[7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(right), "n"(int{kTransposed}),
          "r"(int{add}), "r"(kPanelLayout));
  else
    asm volatile(
        "{.reg .pred add; .reg .b64 right; setp.ne.b32 add, %38, 0; mov.b64 right, {%36, %39};\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, right, add, 1, 1, %37;}"
        : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
          "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
          "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
          "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
          "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
          "+f"(c[7][2]), "+f"(c[7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(right), "n"(int{kTransposed}),
          "r"(int{add}), "r"(kPanelLayout));
}

#endif

}  // namespace taeda::cuda
