// Tensor cores: products of 16 x 16 and 16 x 8 tiles by a warp (mma.sync), their operands read from
// shared memory (ldmatrix), and copies to shared memory that go on behind (cp.async). From sm_80.
//
// Lane l of a warp holds of a 16 x 8 result the elements (l / 4, l % 4 * 2 + {0, 1}) and
// (l / 4 + 8, the same). Of the 16 x 16 left side: pairs (l / 4 + {0, 8, 0, 8},
// l % 4 * 2 + {0, 0, 8, 8}). Of the 16 x 8 right side: pairs of rows l % 4 * 2 + {0, 8} in column
// l / 4. Two results side by side are therefore, rounded, a left side.
#pragma once

#include <bit>
#include <cmath>

#include "base/half.h"
#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/launch.h"

namespace taeda::cuda {

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % 32); }

#ifdef TAEDA_HOST_SHIM

inline unsigned thread_read_again() { return threadIdx.x; }

using SharedAddress = char*;
inline SharedAddress shared_address(void* p) { return static_cast<char*>(p); }

inline float exp2_approximate(float v) { return std::exp2(v); }
template <class T> uint32_t pack(float low, float high) {
  return T(low).bits | static_cast<uint32_t>(T(high).bits) << 16;
}

template <class T> float half_of(uint32_t pair, int which) {
  return std::bit_cast<T>(static_cast<uint16_t>(pair >> (16 * which)));
}
template <class T>
void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  struct Own {
    uint32_t a[4], b[2];
  };
  const shim::Gathered<Own> all(Own{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  const int row = lane_of_warp() / 4, column = lane_of_warp() % 4 * 2;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 16; ++k) {
      const uint32_t left = all[row * 4 + k % 8 / 2].a[i / 2 + k / 8 * 2];
      const uint32_t right = all[(column + i % 2) * 4 + k % 8 / 2].b[k / 8];
      c[i] += half_of<T>(left, k % 2) * half_of<T>(right, k % 2);
    }
}

// Four 8 x 8 matrices of halves: lanes 8i to 8i + 7 say where the rows of matrix i are.
template <bool kTransposed> void load_matrices(uint32_t (&to)[4], SharedAddress row) {
  const shim::Gathered<SharedAddress> rows(row);
  const int r = lane_of_warp() / 4, c = lane_of_warp() % 4 * 2;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j) {
      const int from = kTransposed ? c + j : r, at = kTransposed ? r : c + j;
      reinterpret_cast<uint16_t*>(&to[i])[j] =
          reinterpret_cast<const uint16_t*>(rows[8 * i + from])[at];
    }
}

template <int kBytes> void copy_async(SharedAddress to, const void* from, bool inside) {
  shim::copy_later(to, inside ? from : nullptr, kBytes);
}
inline void commit_copies() { shim::commit_copies(); }
template <int kMost> void wait_for_copies() { shim::wait_for_copies(kMost); }

#else

// threadIdx.x, where what follows from it shall be computed again and not stay in registers.
__device__ inline unsigned thread_read_again() {
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

using SharedAddress = uint32_t;
__device__ inline SharedAddress shared_address(void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline float exp2_approximate(float v) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
}

// Two numbers rounded to T, the first in the lower half.
template <class T> __device__ inline uint32_t pack(float low, float high) {
  uint32_t pair;
  if constexpr (same_type<T, Half>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// c += a b
template <class T>
__device__ inline void multiply_add(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  if constexpr (same_type<T, Half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of halves: lanes 8i to 8i + 7 say where the rows of matrix i are.
template <bool kTransposed>
__device__ inline void load_matrices(uint32_t (&to)[4], SharedAddress row) {
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row));
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row));
}

// Copies 4 or 16 bytes; zeros where they are not inside.
template <int kBytes>
__device__ inline void copy_async(SharedAddress to, const void* from, bool inside) {
  const int bytes = inside ? kBytes : 0;
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
}
// What was copied since the last time is a group.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all groups of this thread but the last kMost are there.
template <int kMost> __device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kMost) : "memory");
}

#endif

}  // namespace taeda::cuda
