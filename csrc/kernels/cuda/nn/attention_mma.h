// Tiles of attention in half precision: in shared memory, and as operands of tensor cores.
#pragma once

#include "kernels/cuda/common/mma.h"
#include "kernels/cuda/nn/attention.h"

namespace taeda::cuda {

constexpr int kWarps = 4, kBlock = 32 * kWarps;

// Rows of D halves in shared memory, swizzled: chunks of 8 are exchanged within a row, so that
// those of 8 rows at the same place are in different banks.
template <int D> struct Tile {
  static constexpr int kChunks = D / 8, kRowBytes = D * 2;
  static constexpr int bytes(int rows) { return rows * kRowBytes; }
  __device__ static int offset(int row, int chunk) {
    return row * kRowBytes + ((chunk ^ (row & 7)) << 4);
  }
};

// Begins to copy kRows rows of a matrix from `first`; what is beyond its rows or columns is 0. A
// thread copies chunks at one place of some rows.
template <class Rows, int kRows, class T>
__device__ __forceinline__ void copy_rows(SharedAddress tile, const AttentionMatrices<const T>& m,
                                          int first, int64_t rows, int64_t columns) {
  constexpr int kAtOnce = kBlock / Rows::kChunks;
  static_assert(kRows % kAtOnce == 0 && kAtOnce % 8 == 0);
  const auto thread = static_cast<int>(thread_read_again());
  const int chunk = thread % Rows::kChunks, row = thread / Rows::kChunks;
  const int left = chunk * 8 < columns ? static_cast<int>(rows) - first - row : 0;
  const auto step = static_cast<int>(m.row);
  const T* from = m.data + int64_t{first + row} * step + chunk * 8;
  tile += Rows::offset(row, chunk);
#pragma unroll
  for (int i = 0; i < kRows; i += kAtOnce) {
    copy_async<16>(tile + i * Rows::kRowBytes, from, i < left);
    from += step * kAtOnce;
  }
}

// Where a lane finds its row of the four 8 x 8 matrices of a load.
template <int D> struct Lanes {
  SharedAddress row;
  int swizzle;

  // A left side of 16 rows x 16 columns, or with rows and columns exchanged a right side of 16
  // rows x 16 columns: matrices (0, 0), (8, 0), (0, 8), (8, 8).
  __device__ static Lanes down_first(SharedAddress tile) {
    const int lane = lane_again();
    return at(tile, lane % 16, lane / 16);
  }
  // A right side of 16 columns, which are the tile's rows: matrices (0, 0), (0, 8), (8, 0), (8, 8).
  __device__ static Lanes across_first(SharedAddress tile) {
    const int lane = lane_again();
    return at(tile, lane / 16 * 8 + lane % 8, lane / 8 % 2);
  }
  // first_row: of 8. chunk: even.
  template <bool kTransposed = false>
  __device__ __forceinline__ void load(uint32_t (&to)[4], int first_row, int chunk) const {
    load_matrices<kTransposed>(to, row + first_row * Tile<D>::kRowBytes + ((chunk ^ swizzle) << 4));
  }

 private:
  // The places of all chunks would stay in registers through a loop over tiles.
  __device__ static int lane_again() { return static_cast<int>(thread_read_again() % 32); }
  __device__ static Lanes at(SharedAddress tile, int row, int chunk) {
    return {tile + row * Tile<D>::kRowBytes, chunk ^ (row & 7)};
  }
};

// 16 kM x 8 kN numbers of a warp.
template <int kM, int kN> struct Sums {
  float at[kM][kN][4];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i) at[m][n][i] = 0;
  }
  // f(number, m, half, column) for those of this lane, and the same of others. The row is
  // row_in_sums(m, half).
  template <class F, class... Others>
  __device__ __forceinline__ void each(F f, const Others&... others) {
    const int column = lane_of_warp() % 4 * 2;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          f(at[m][n][i], others.at[m][n][i]..., m, i / 2, n * 8 + column + i % 2);
  }
};
__device__ inline int row_in_sums(int m, int half) {
  return m * 16 + half * 8 + lane_of_warp() / 4;
}

// A left side in registers: 16 kM rows x 16 kSteps columns.
template <int kM, int kSteps> struct Left {
  uint32_t at[kSteps][kM][4];
};
template <class T, int kM, int kN>
__device__ __forceinline__ Left<kM, kN / 2> rounded(const Sums<kM, kN>& s) {
  Left<kM, kN / 2> to;
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n) {
      to.at[n / 2][m][n % 2 * 2] = pack<T>(s.at[m][n][0], s.at[m][n][1]);
      to.at[n / 2][m][n % 2 * 2 + 1] = pack<T>(s.at[m][n][2], s.at[m][n][3]);
    }
  return to;
}

// Left sides from rows in shared memory, or already in registers.
template <int D, int kM> struct LeftInMemory {
  SharedAddress rows;
  struct Loader {
    Lanes<D> lanes;
    __device__ __forceinline__ void load(uint32_t (&to)[kM][4], int step) const {
#pragma unroll
      for (int m = 0; m < kM; ++m) lanes.load(to[m], 16 * m, 2 * step);
    }
  };
  __device__ __forceinline__ Loader loader() const { return {Lanes<D>::down_first(rows)}; }
};
template <int D, int kM> struct LeftInRegisters {
  uint32_t at[D / 16][kM][4];
  __device__ __forceinline__ void load(uint32_t (&to)[kM][4], int step) const {
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i) to[m][i] = at[step][m][i];
  }
  __device__ __forceinline__ const LeftInRegisters& loader() const { return *this; }
};

// to += left right^T, of rows of D: 8 kN of the right.
template <class T, int D, int kM, int kN, class Given>
__device__ __forceinline__ void add_dots(Sums<kM, kN>& to, const Given& left, SharedAddress right) {
  const auto& loader = left.loader();
  const auto lanes = Lanes<D>::across_first(right);
#pragma unroll
  for (int step = 0; step < D / 16; ++step) {
    uint32_t a[kM][4];
    loader.load(a, step);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      uint32_t b[4];
      lanes.load(b, n * 8, 2 * step);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add<T>(to.at[m][n], a[m], b[0], b[1]);
        multiply_add<T>(to.at[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}
// to += left right, of 16 kSteps rows of D.
template <class T, int D, int kM, int kSteps>
__device__ __forceinline__ void add_product(Sums<kM, D / 8>& to, const Left<kM, kSteps>& left,
                                            SharedAddress right) {
  const auto lanes = Lanes<D>::down_first(right);
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int n = 0; n < D / 8; n += 2) {
      uint32_t b[4];
      lanes.template load<true>(b, 16 * step, n);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add<T>(to.at[m][n], left.at[step][m], b[0], b[1]);
        multiply_add<T>(to.at[m][n + 1], left.at[step][m], b[2], b[3]);
      }
    }
  }
}

// The warp's rows of a result: rounded into `tile`, its rows of a tile that it reads no more, and
// from there to memory, from row `first`.
template <class Rows, class T, int kM>
__device__ __forceinline__ void store_rows(char* tile, const Sums<kM, Rows::kChunks>& s,
                                           const AttentionMatrices<T>& to, int first, int64_t rows,
                                           int64_t columns) {
  struct alignas(16) Chunk {
    uint32_t pairs[4];
  };
  __syncwarp();
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < Rows::kChunks; ++n)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        *reinterpret_cast<uint32_t*>(tile + Rows::offset(row_in_sums(m, half), n) +
                                     lane_of_warp() % 4 * 4) =
            pack<T>(s.at[m][n][2 * half], s.at[m][n][2 * half + 1]);
  __syncwarp();
#pragma unroll
  for (int i = lane_of_warp(); i < 16 * kM * Rows::kChunks; i += 32) {
    const int row = i / Rows::kChunks, chunk = i % Rows::kChunks;
    if (first + row < rows && chunk * 8 < columns)
      *reinterpret_cast<Chunk*>(to.data + (first + row) * to.row + chunk * 8) =
          *reinterpret_cast<const Chunk*>(tile + Rows::offset(row, chunk));
  }
}

// What a mask adds to the exponent of base 2. Lowest numbers of a mask stay numbers: where a query
// sees nothing else, it sees all of them alike.
__device__ inline float exponent_of_mask(float mask) {
  const float exponent = mask * static_cast<float>(kLog2E);
  constexpr float lowest = -0x1p127f;
  return exponent < lowest && mask != static_cast<float>(-portable::kInf) ? lowest : exponent;
}

// The softmax of the queries of a warp so far: sums of exponentials relative to `base`, each lane's
// of its own keys. The base follows the largest score once that is 2^kLead times as far, so that
// sums are rarely brought to a new base.
template <int kM> struct Softmax {
  static constexpr float kLead = 8;
  float base[kM][2], sum[kM][2];

  __device__ __forceinline__ Softmax() {
    for (int m = 0; m < kM; ++m)
      for (int half = 0; half < 2; ++half) {
        base[m][half] = static_cast<float>(-portable::kInf);
        sum[m][half] = 0;
      }
  }
  // Scores, `unit` times which are powers of 2, become weights. `out` is brought to the new base,
  // where that has changed, after wait().
  template <int kN, int kColumns, class Wait>
  __device__ __forceinline__ void weigh(Sums<kM, kN>& scores, float unit, Sums<kM, kColumns>& out,
                                        Wait wait) {
    float most[kM][2];
    bool far = false;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float& now = most[m][half];
        now = base[m][half];
#pragma unroll
        for (int n = 0; n < kN; ++n)
          now = fmaxf(now, fmaxf(scores.at[m][n][2 * half], scores.at[m][n][2 * half + 1]));
        now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
        now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
        far |= (now - base[m][half]) * unit > kLead;
      }
    far = __any_sync(~0u, far);
    float before[kM][2], added[kM][2];
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        before[m][half] = base[m][half] * unit;
        if (far) base[m][half] = most[m][half];
        const float start = exponent_of_base(m, half, unit);
        added[m][half] = 0;
#pragma unroll
        for (int n = 0; n < kN; ++n)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            float& v = scores.at[m][n][i];
            v = exp2_approximate(v * unit - start);
            added[m][half] += v;
          }
      }
    if (far) {
      wait();
      float factor[kM][2];
#pragma unroll
      for (int m = 0; m < kM; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          factor[m][half] = exp2_approximate(before[m][half] - exponent_of_base(m, half, unit));
          sum[m][half] *= factor[m][half];
        }
      out.each([&](float& v, int m, int half, int) { v *= factor[m][half]; });
    }
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) sum[m][half] += added[m][half];
  }
  __device__ __forceinline__ float total(int m, int half) const {
    float all = sum[m][half];
    all += __shfl_xor_sync(~0u, all, 1);
    return all + __shfl_xor_sync(~0u, all, 2);
  }

 private:
  // 0 where no key has been seen yet, so that hidden keys weigh nothing.
  __device__ __forceinline__ float exponent_of_base(int m, int half, float unit) const {
    return base[m][half] == static_cast<float>(-portable::kInf) ? 0 : base[m][half] * unit;
  }
};

// ---- Which calls -------------------------------------------------------------------------------

// Whether rows can be copied by 16 bytes.
template <class T> bool has_chunks(const AttentionMatrices<T>& m) {
  return reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.batch % 8 == 0 && m.head % 8 == 0 &&
         m.row % 8 == 0;
}
template <class... M> bool fits_tensor_cores(const AttentionShape& s, const M&... m) {
  constexpr int64_t most = int64_t{1} << 30;  // places are ints
  return s.size <= 128 && s.value_size <= 128 && s.size % 8 == 0 && s.value_size % 8 == 0 &&
         s.size > 0 && s.queries < most && s.keys < most && (has_chunks(m) && ...) &&
         ((m.row < most / 64) && ...);
}
inline bool is_narrow(const AttentionShape& s) { return s.size <= 64 && s.value_size <= 64; }

// Blocks of `rows` rows of each matrix; the first index of a kernel's grid.
inline int64_t parts_of(int64_t length, int rows) { return (length + rows - 1) / rows; }

}  // namespace taeda::cuda
