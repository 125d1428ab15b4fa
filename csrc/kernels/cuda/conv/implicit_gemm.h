// Convolutions as products of matrices, one for each group (implicit GEMM):
//   result (m x n) = direct (m x k) * gathered (k x n)
// forward       y = w  * patches of x    m: out channels  k: channel, tap   n: image, output
// grad_input   gx = w^T * patches of gy  m: channels      k: out ch., tap   n: image, input
// grad_weight  gw = gy * patches of x    m: out channels  k: image, output  n: channel, tap
// The patches are nowhere in memory: a block gathers the panels it multiplies into shared memory.
// Sums over a long k are computed in parts, which a second kernel adds up in order.
#pragma once

#include <optional>

#include "kernels/conv.h"
#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/conv/cudnn.h"

namespace taeda::cuda {

// What products of T are summed in.
template <class T>
using ConvSum =
    std::conditional_t<is_half_type<T>, float, std::conditional_t<is_float<T>, T, uint64_t>>;

inline int64_t volume(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// From element to element of x, w or y: along the first dimension, the second, and the places.
struct Steps {
  int64_t first, second, place;
};
inline Steps steps_of(int64_t second, const int64_t (&sizes)[3], bool channels_last) {
  const int64_t places = volume(sizes);
  return channels_last ? Steps{second * places, 1, second} : Steps{second * places, places, 1};
}

// What an index of k or n adds: to the address in the direct operand or in the result, to that in
// the gathered operand, and to the coordinates that are read there.
struct Spot {
  int64_t direct, gathered;
  int at[3];
};

// The indices of k or n: each is a place within some sizes, of a channel or an image, which is the
// outer index.
struct Axis {
  int64_t count, places;
  Divisor sizes[3];
  int scale[3], shift[3];  // from a place to the coordinates
  int64_t outer_direct, place_direct, outer_gathered;

  __device__ Spot spot(int64_t i) const {
    Spot s;
    int64_t outer = i;
    for (int d = 2; d >= 0; --d)
      s.at[d] = static_cast<int>(sizes[d].divide(outer)) * scale[d] + shift[d];
    s.direct = outer * outer_direct + (i - outer * places) * place_direct;
    s.gathered = outer * outer_gathered;
    return s;
  }
};

// The operand that patches are taken of. With strides, only every stride-th coordinate is there.
template <class T> struct Gathered {
  const T* data;
  int64_t place;  // its step
  int sizes[3];
  bool strided;
  Divisor strides[3];

  __device__ ConvSum<T> at(int64_t group, const Spot& a, const Spot& b) const {
    int64_t flat = 0;
    for (int d = 0; d < 3; ++d) {
      int c = a.at[d] + b.at[d];
      if (c < 0) return 0;
      if (strided) {
        auto quotient = static_cast<uint32_t>(c);
        if (strides[d].divide(quotient) != 0) return 0;
        c = static_cast<int>(quotient);
      }
      if (c >= sizes[d]) return 0;
      flat = flat * sizes[d] + c;
    }
    return convert<ConvSum<T>>(data[group + a.gathered + b.gathered + flat * place]);
  }
};

template <class T> struct ImplicitGemm {
  int64_t groups, m;
  Axis k, n;
  const T* direct;
  Gathered<T> gathered;
  T* result;
  int64_t direct_row, result_row;                            // steps from row to row
  int64_t direct_group, gathered_group, result_group;        // from group to group
  const T* bias = nullptr;                                   // of the rows of all groups
  int64_t parts = 1, part_length = 0, across = 0, down = 0;  // of k, and tiles of the result
  ConvSum<T>* sums = nullptr;                                // of the parts, unless it is one

  __device__ void store(int64_t group, int64_t row, int64_t to, ConvSum<T> sum) const {
    if (bias) sum += convert<ConvSum<T>>(bias[group * m + row]);
    result[group * result_group + row * result_row + to] = convert<T>(sum);
  }
};

inline constexpr int kPanelDepth = 16;

// A block computes M x N elements of the result, each thread rows_own x columns_own of them.
template <class T, int M, int N>
__global__ void multiply_patches(const __grid_constant__ ImplicitGemm<T> p) {
  using S = ConvSum<T>;
  constexpr int rows_own = 4, columns_own = M * N / rows_own / int{kThreads};
  constexpr int rows_apart = M / rows_own, columns_apart = N / columns_own;
  static_assert(rows_apart * columns_apart == int{kThreads});
  __shared__ S left[kPanelDepth][M + 1], right[kPanelDepth][N + 1];
  __shared__ Spot depths[kPanelDepth], columns[N];
  const int thread = static_cast<int>(threadIdx.x);
  int64_t block = blockIdx.x;
  const int64_t first_column = block % p.across * N;
  block /= p.across;
  const int64_t first_row = block % p.down * M;
  block /= p.down;
  const int64_t part = block % p.parts, group = block / p.parts;
  const int64_t first = part * p.part_length;
  const int64_t last = first + p.part_length < p.k.count ? first + p.part_length : p.k.count;
  const T* direct = p.direct + group * p.direct_group;
  for (int i = thread; i < N; i += int{kThreads}) columns[i] = p.n.spot(first_column + i);

  S sums[rows_own][columns_own] = {};
  for (int64_t k = first; k < last; k += kPanelDepth) {
    if (thread < kPanelDepth) depths[thread] = p.k.spot(k + thread);
    __syncthreads();
    for (int i = thread; i < M * kPanelDepth; i += int{kThreads}) {
      const int depth = i % kPanelDepth, row = i / kPanelDepth;
      left[depth][row] =
          k + depth < last && first_row + row < p.m
              ? convert<S>(direct[(first_row + row) * p.direct_row + depths[depth].direct])
              : S(0);
    }
    for (int i = thread; i < N * kPanelDepth; i += int{kThreads}) {
      const int depth = i / N, column = i % N;
      right[depth][column] =
          k + depth < last && first_column + column < p.n.count
              ? p.gathered.at(group * p.gathered_group, depths[depth], columns[column])
              : S(0);
    }
    __syncthreads();
    const int row = thread / columns_apart, column = thread % columns_apart;
    for (int d = 0; d < kPanelDepth; ++d)
      for (int i = 0; i < rows_own; ++i)
        for (int j = 0; j < columns_own; ++j)
          sums[i][j] += left[d][row + i * rows_apart] * right[d][column + j * columns_apart];
    __syncthreads();
  }

  for (int i = 0; i < rows_own; ++i) {
    for (int j = 0; j < columns_own; ++j) {
      const int own = thread % columns_apart + j * columns_apart;
      const int64_t row = first_row + thread / columns_apart + i * rows_apart;
      if (row >= p.m || first_column + own >= p.n.count) continue;
      if (p.parts == 1) p.store(group, row, columns[own].direct, sums[i][j]);
      else
        p.sums[((part * p.groups + group) * p.m + row) * p.n.count + first_column + own] =
            sums[i][j];
    }
  }
}

template <class T> void add_parts(const ImplicitGemm<T>& p) {
  const int64_t n = p.groups * p.m * p.n.count;
  each(n, [=] __device__(int64_t i) {
    ConvSum<T> sum = 0;
    for (int64_t part = 0; part < p.parts; ++part) sum += p.sums[part * n + i];
    const int64_t row = i / p.n.count;
    p.store(row / p.m, row % p.m, p.n.spot(i % p.n.count).direct, sum);
  });
}

template <int M, int N, class T> void run_tiles(ImplicitGemm<T> p) {
  p.across = (p.n.count + N - 1) / N;
  p.down = (p.m + M - 1) / M;
  // So many parts that the device is busy, none of them short.
  const int64_t tiles = p.across * p.down * p.groups, least = 32 * kPanelDepth;
  const int64_t wanted = int64_t{used_device().multiprocessors} * 4 / tiles;
  p.parts = std::max<int64_t>(1, std::min(wanted, p.k.count / least));
  const int64_t panels = (p.k.count + kPanelDepth - 1) / kPanelDepth;
  p.part_length = (panels + p.parts - 1) / p.parts * kPanelDepth;
  p.parts = (p.k.count + p.part_length - 1) / p.part_length;
  std::optional<Workspace> sums;
  if (p.parts > 1) {
    sums.emplace(static_cast<size_t>(p.parts * p.groups * p.m * p.n.count) * sizeof(ConvSum<T>));
    p.sums = sums->template as<ConvSum<T>>();
  }
  launch(multiply_patches<T, M, N>, static_cast<unsigned>(tiles * p.parts), kThreads, 0, p);
  if (p.parts > 1) add_parts(p);
}

template <class T> void run_implicit_gemm(const ImplicitGemm<T>& p) {
  if (p.m <= 8) run_tiles<4, 256>(p);
  else run_tiles<64, 64>(p);
}

// Axes of taps, outputs and inputs, `outer` times; steps in the direct operand, or the result, and
// from one to the next outer index in the gathered one.
struct Axes {
  const ConvShape& s;

  Axis make(int64_t outer, const int64_t (&sizes)[3], int64_t outer_direct, int64_t place_direct,
            int64_t outer_gathered) const {
    return {outer * volume(sizes),
            volume(sizes),
            {Divisor(sizes[0]), Divisor(sizes[1]), Divisor(sizes[2])},
            {1, 1, 1},
            {},
            outer_direct,
            place_direct,
            outer_gathered};
  }
  Axis taps(int sign, int64_t outer, int64_t outer_direct, int64_t place_direct,
            int64_t outer_gathered) const {
    Axis a = make(outer, s.kernel, outer_direct, place_direct, outer_gathered);
    for (int d = 0; d < 3; ++d) a.scale[d] = sign * static_cast<int>(s.dilation[d]);
    return a;
  }
  Axis outputs(int64_t outer_direct, int64_t place_direct, int64_t outer_gathered) const {
    Axis a = make(s.batch, s.out, outer_direct, place_direct, outer_gathered);
    for (int d = 0; d < 3; ++d) {
      a.scale[d] = static_cast<int>(s.stride[d]);
      a.shift[d] = -static_cast<int>(s.padding[d]);
    }
    return a;
  }
  Axis inputs(int64_t outer_direct, int64_t place_direct, int64_t outer_gathered) const {
    Axis a = make(s.batch, s.in, outer_direct, place_direct, outer_gathered);
    for (int d = 0; d < 3; ++d) a.shift[d] = static_cast<int>(s.padding[d]);
    return a;
  }
};

template <class T>
Gathered<T> gathered(const T* data, int64_t place, const int64_t (&sizes)[3],
                     const int64_t (*strides)[3]) {
  Gathered<T> g{data, place, {}, strides != nullptr, {}};
  for (int d = 0; d < 3; ++d) {
    g.sizes[d] = static_cast<int>(sizes[d]);
    if (strides) g.strides[d] = Divisor((*strides)[d]);
  }
  return g;
}

// Coordinates are 32 bits wide. Where that is too little, which takes 2^31 places along one
// dimension, there is no kernel.
inline void check_coordinates(const ConvShape& s) {
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = (s.kernel[d] - 1) * s.dilation[d];
    if (std::max(s.in[d] + 2 * s.padding[d], reach) > INT32_MAX) missing_kernel();
  }
}

// One of the three products, of the operands that its name in the first lines has.
template <class T>
void convolve_by_gemm(ConvPass pass, const ConvShape& s, const T* direct, const T* patches,
                      T* result, const T* bias = nullptr) {
  check_coordinates(s);
  const int64_t channels = s.in_channels / s.groups, per_group = s.out_channels / s.groups;
  const Steps x = steps_of(s.in_channels, s.in, s.channels_last);
  const Steps w = steps_of(channels, s.kernel, s.channels_last);
  const Steps y = steps_of(s.out_channels, s.out, s.channels_last);
  const int64_t x_group = channels * x.second, w_group = per_group * w.first,
                y_group = per_group * y.second;
  const Axes axes{s};
  switch (pass) {
    case ConvPass::forward:
      return run_implicit_gemm<T>({s.groups, per_group,
                                   axes.taps(1, channels, w.second, w.place, x.second),
                                   axes.outputs(y.first, y.place, x.first), direct,
                                   gathered(patches, x.place, s.in, nullptr), result, w.first,
                                   y.second, w_group, x_group, y_group, bias});
    case ConvPass::grad_input:
      return run_implicit_gemm<T>({s.groups, channels,
                                   axes.taps(-1, per_group, w.first, w.place, y.second),
                                   axes.inputs(x.first, x.place, y.first), direct,
                                   gathered(patches, y.place, s.out, &s.stride), result, w.second,
                                   x.second, w_group, y_group, x_group});
    case ConvPass::grad_weight:
      return run_implicit_gemm<T>({s.groups, per_group, axes.outputs(y.first, y.place, x.first),
                                   axes.taps(1, channels, w.second, w.place, x.second), direct,
                                   gathered(patches, x.place, s.in, nullptr), result, y.second,
                                   w.first, y_group, x_group, w_group});
  }
}

}  // namespace taeda::cuda
