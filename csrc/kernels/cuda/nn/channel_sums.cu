// Sums over what (samples, channels, spatial) has of each channel: in parts, by many blocks, which
// a second kernel merges in order.
//
// Where spatial is 1, neighbours in memory are of different channels, and so are neighbouring
// threads (`columns`). Otherwise a group of threads walks over the neighbours of one channel,
// sample by sample (`segments`).
#include "kernels/cuda/common/group.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/common/moments.h"
#include "kernels/cuda/nn/norm.h"

namespace taeda::cuda {
namespace {

// Elements of a channel go to parts, `each` to a part but for the last. Results of parts are
// [2][parts][channels].
struct Parts {
  int64_t total, each;
  int parts;

  Parts(int64_t total, int64_t wanted, int64_t multiple = 1) : total(total) {
    each = (total + wanted - 1) / wanted;
    each = std::max<int64_t>((each + multiple - 1) / multiple * multiple, multiple);
    parts = static_cast<int>(std::max<int64_t>((total + each - 1) / each, 1));
  }
  __device__ int64_t count(int64_t part) const {
    const int64_t left = total - part * each;
    return left < each ? left : each;
  }
};

// ---- columns ----
inline constexpr int kMostRows = 128;  // that a thread adds up in T

struct Columns {
  Parts parts;
  dim3 block, grid;
};
template <int N> Columns columns_of(const ChannelShape& s) {
  unsigned across = 1;
  while (across < kWarp && across * N < s.channels) across *= 2;
  const unsigned down = kThreads / across;
  const auto blocks = static_cast<unsigned>((s.channels + across * N - 1) / (across * N));
  const int64_t least = (s.samples + down * kMostRows - 1) / (down * kMostRows);
  const int64_t most = std::max<int64_t>(s.samples / (down * 4), 1);
  const int64_t wanted = int64_t{used_device().multiprocessors} * 8 / blocks;
  const Parts parts(
      s.samples, std::clamp<int64_t>(wanted, std::max<int64_t>(least, 1), std::max(least, most)));
  if (parts.parts > 65535) missing_kernel();
  return {parts, dim3(across, down), dim3(blocks, static_cast<unsigned>(parts.parts))};
}

// The rows of a thread: from `begin` on, every blockDim.y-th.
struct ThreadRows {
  int64_t channel, begin, end;  // of the first of its N channels
  __device__ int count(unsigned y) const {
    const int64_t left = end - (begin - threadIdx.y + y);
    return left > 0 ? static_cast<int>((left + blockDim.y - 1) / blockDim.y) : 0;
  }
};
template <int N> __device__ ThreadRows rows_of(const Parts& parts) {
  const int64_t first = blockIdx.y * parts.each;
  return {(int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N, first + threadIdx.y,
          first + parts.count(blockIdx.y)};
}
// Value k of all threads and channels of a block: [down][across * N].
template <class T, int N> __device__ void share(T* all, const T (&own)[N]) {
  T* to = all + (threadIdx.y * blockDim.x + threadIdx.x) * N;
#pragma unroll
  for (int j = 0; j < N; ++j) to[j] = own[j];
}

// The stats of N columns: of each, the same for all rows, or of the row.
template <bool OfRows, int N, class T>
__device__ __forceinline__ void load_stats(const T* from, int64_t at, T (&to)[N]) {
#pragma unroll
  for (int j = 0; j < N; ++j) to[j] = from[OfRows ? at : at + j];
}

template <class S, int N, bool OfRows, class T = Number<S>>
__global__ void gradient_columns(int64_t channels, const __grid_constant__ Parts parts,
                                 const __grid_constant__ ChannelStats<T> stats, const S* g,
                                 const S* x, double* sums) {
  __shared__ T all_gx[kThreads * N], all_g[kThreads * N];
  const ThreadRows rows = rows_of<N>(parts);
  T sum_gx[N] = {}, sum_g[N] = {};
  if (rows.channel < channels) {
    const int64_t stat = stats.at(0, rows.channel);
    T mean[N], rstd[N];
    if constexpr (!OfRows) {
      load_stats<OfRows>(stats.mean, stat, mean);
      load_stats<OfRows>(stats.rstd, stat, rstd);
    }
#pragma unroll 4
    for (int64_t row = rows.begin; row < rows.end; row += blockDim.y) {
      T from_g[N], from_x[N];
      load_numbers<S, N>(g + row * channels + rows.channel, from_g);
      load_numbers<S, N>(x + row * channels + rows.channel, from_x);
      if constexpr (OfRows) {
        load_stats<OfRows>(stats.mean, row * stats.sample_step + stat, mean);
        load_stats<OfRows>(stats.rstd, row * stats.sample_step + stat, rstd);
      }
#pragma unroll
      for (int j = 0; j < N; ++j) {
        sum_g[j] += from_g[j];
        sum_gx[j] += from_g[j] * ((from_x[j] - mean[j]) * rstd[j]);
      }
    }
  }
  share(all_gx, sum_gx);
  share(all_g, sum_g);
  __syncthreads();
  const unsigned width = blockDim.x * N, own = threadIdx.y * blockDim.x + threadIdx.x;
  const int64_t channel = int64_t{blockIdx.x} * width + own;
  if (own >= width || channel >= channels) return;
  double gx = 0, of_g = 0;
  for (unsigned y = 0; y < blockDim.y; ++y) {
    gx += all_gx[y * width + own];
    of_g += all_g[y * width + own];
  }
  sums[blockIdx.y * channels + channel] = gx;
  sums[(parts.parts + blockIdx.y) * channels + channel] = of_g;
}

template <class S, int N, class T = Number<S>>
__global__ void moment_columns(int64_t channels, const __grid_constant__ Parts parts, const S* x,
                               double* moments) {
  __shared__ T firsts[kThreads * N], sums[kThreads * N], squares[kThreads * N];
  const ThreadRows rows = rows_of<N>(parts);
  T first[N] = {}, sum[N] = {}, square[N] = {};
  if (rows.channel < channels && rows.begin < rows.end) {
    load_numbers<S, N>(x + rows.begin * channels + rows.channel, first);
#pragma unroll 4
    for (int64_t row = rows.begin + blockDim.y; row < rows.end; row += blockDim.y) {
      T from[N];
      load_numbers<S, N>(x + row * channels + rows.channel, from);
#pragma unroll
      for (int j = 0; j < N; ++j) {
        const T apart = from[j] - first[j];
        sum[j] += apart;
        square[j] += apart * apart;
      }
    }
  }
  share(firsts, first);
  share(sums, sum);
  share(squares, square);
  __syncthreads();
  const unsigned width = blockDim.x * N, own = threadIdx.y * blockDim.x + threadIdx.x;
  const int64_t channel = int64_t{blockIdx.x} * width + own;
  if (own >= width || channel >= channels) return;
  Moments all{0, 0, 0};
#pragma unroll 1
  for (unsigned y = 0; y < blockDim.y; ++y) {
    MomentBatch<T> batch(firsts[y * width + own]);
    batch.sum = sums[y * width + own];
    batch.squares = squares[y * width + own];
    const int count = rows.count(y);
    if (count > 0) all = merged(all, batch.moments(count));
  }
  moments[blockIdx.y * channels + channel] = all.mean;
  moments[(parts.parts + blockIdx.y) * channels + channel] = all.m2;
}

// ---- segments ----
// Elements of a channel, pack by pack: pack i of it is in sample i / packs.
template <int N> struct Segments {
  int64_t channels, spatial;
  Divisor packs;  // of a sample

  explicit Segments(const ChannelShape& s)
      : channels(s.channels),
        spatial(s.spatial),
        packs(s.spatial / N) {
    if (s.spatial / N >= kMostElements) missing_kernel();
  }
  struct Place {
    int64_t sample, at;
  };
  __device__ __forceinline__ Place place(int64_t channel, int64_t i) const {
    const int64_t within = packs.divide(i);
    return {i, (i * channels + channel) * spatial + within * N};
  }
};
template <int N> Parts segment_parts(const ChannelShape& s) {
  const int64_t total = s.samples * s.spatial;
  const int64_t most = std::clamp<int64_t>(total / (kThreads * N * 4), 1, 65535);
  const int64_t wanted =
      int64_t{used_device().multiprocessors} * 32 / std::max(s.channels, int64_t{1});
  return Parts(total, std::clamp<int64_t>(wanted, 1, most), N);
}

template <class S, int N, class T = Number<S>>
__global__ void gradient_segments(const __grid_constant__ Segments<N> s,
                                  const __grid_constant__ Parts parts,
                                  const __grid_constant__ ChannelStats<T> stats, const S* g,
                                  const S* x, double* sums) {
  const int64_t channel = group_index(), first = blockIdx.y * parts.each / N;
  const int64_t end = channel < s.channels ? first + parts.count(blockIdx.y) / N : 0;
  Pair<double> own{0, 0};
#pragma unroll 4
  for (int64_t i = first + threadIdx.x; i < end; i += blockDim.x) {
    const auto place = s.place(channel, i);
    T from_g[N], from_x[N];
    load_numbers<S, N>(g + place.at, from_g);
    load_numbers<S, N>(x + place.at, from_x);
    const int64_t stat = stats.at(place.sample, channel);
    const T mean = stats.mean[stat], rstd = stats.rstd[stat];
    Pair<T> part{0, 0};
#pragma unroll
    for (int j = 0; j < N; ++j)
      part = part + Pair<T>{from_g[j] * ((from_x[j] - mean) * rstd), from_g[j]};
    own = own + Pair<double>{part.a, part.b};
  }
  own = group_sum(own);
  if (threadIdx.x != 0 || channel >= s.channels) return;
  sums[blockIdx.y * s.channels + channel] = own.a;
  sums[(parts.parts + blockIdx.y) * s.channels + channel] = own.b;
}

template <class S, int N, class T = Number<S>>
__global__ void moment_segments(const __grid_constant__ Segments<N> s,
                                const __grid_constant__ Parts parts, const S* x, double* moments) {
  constexpr int ahead = 4;
  const int64_t channel = group_index(), first = blockIdx.y * parts.each / N;
  const int64_t end = channel < s.channels ? first + parts.count(blockIdx.y) / N : 0;
  Moments own{0, 0, 0};
  for (int64_t at = first + threadIdx.x; at < end; at += int64_t{blockDim.x} * ahead) {
    Pack<S, N> held[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      const int64_t i = at + k * int64_t{blockDim.x};
      if (i < end) held[k] = load_pack<S, N>(x + s.place(channel, i).at);
    }
    MomentBatch<T> batch(number(held[0].v[0]));
    int count = 0;
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      if (at + k * int64_t{blockDim.x} >= end) continue;
      count += N;
#pragma unroll
      for (int j = 0; j < N; ++j) batch.add(number(held[k].v[j]));
    }
    own = merged(own, batch.moments(count));
  }
  own = group_all(own, merged);
  if (threadIdx.x != 0 || channel >= s.channels) return;
  moments[blockIdx.y * s.channels + channel] = own.mean;
  moments[(parts.parts + blockIdx.y) * s.channels + channel] = own.m2;
}

// ---- parts to results ----
// Threads of one threadIdx.x share a channel.
inline constexpr unsigned kMergers = 8;
const dim3 merge_block(kWarp, kMergers);
unsigned merge_blocks(int64_t channels) {
  return static_cast<unsigned>((channels + kWarp - 1) / kWarp);
}

template <class T>
__global__ void merge_gradients(int64_t channels, int parts, const double* sums, T* gw, T* gb) {
  __shared__ double all_gx[kMergers][kWarp], all_g[kMergers][kWarp];
  const int64_t channel = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  double gx = 0, g = 0;
  if (channel < channels) {
#pragma unroll 4
    for (int part = threadIdx.y; part < parts; part += kMergers) {
      gx += sums[part * channels + channel];
      g += sums[(parts + part) * channels + channel];
    }
  }
  all_gx[threadIdx.y][threadIdx.x] = gx;
  all_g[threadIdx.y][threadIdx.x] = g;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  for (unsigned y = 1; y < kMergers; ++y) {
    gx += all_gx[y][threadIdx.x];
    g += all_g[y][threadIdx.x];
  }
  if (gw) gw[channel] = static_cast<T>(gx);
  if (gb) gb[channel] = static_cast<T>(g);
}

template <class T>
__global__ void merge_moments(int64_t channels, const __grid_constant__ Parts parts, double eps,
                              const double* moments, T* mean, T* var, T* invstd) {
  __shared__ Moments all[kMergers][kWarp];
  const int64_t channel = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  Moments own{0, 0, 0};
  if (channel < channels) {
#pragma unroll 1
    for (int part = threadIdx.y; part < parts.parts; part += kMergers)
      own = merged(own, {static_cast<double>(parts.count(part)), moments[part * channels + channel],
                         moments[(parts.parts + part) * channels + channel]});
  }
  all[threadIdx.y][threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
#pragma unroll 1
  for (unsigned y = 1; y < kMergers; ++y) own = merged(own, all[y][threadIdx.x]);
  const double v = own.m2 < 0 ? 0 : own.m2 / own.count;
  mean[channel] = static_cast<T>(own.count > 0 ? own.mean : portable::kNan);
  var[channel] = static_cast<T>(v);
  invstd[channel] = static_cast<T>(1 / ::sqrt(static_cast<double>(static_cast<T>(v)) + eps));
}

// `run` with kPack<S> of so many neighbours at a time where x and g allow it, else with 1.
template <class S, class F> void by_width(int64_t neighbours, const S* x, const S* g, F run) {
  constexpr int N = kPack<S>;
  if (neighbours % N == 0 && aligned(x, g)) run(Tag<std::integral_constant<int, N>>());
  else run(Tag<std::integral_constant<int, 1>>());
}
dim3 segment_block(const Parts& parts, int N) { return groups_for((parts.each + N - 1) / N); }

}  // namespace

template <class S>
void channel_moments(const ChannelShape& s, double eps, const S* x, Number<S>* mean, Number<S>* var,
                     Number<S>* invstd) {
  using T = Number<S>;
  const auto merge = [&](const Parts& parts, const Workspace& memory) {
    launch(merge_moments<T>, merge_blocks(s.channels), merge_block, 0, s.channels, parts, eps,
           memory.as<double>(), mean, var, invstd);
  };
  const auto bytes = [&](const Parts& parts) {
    return 2 * sizeof(double) * static_cast<size_t>(parts.parts * s.channels);
  };
  by_width<S>(s.spatial == 1 ? s.channels : s.spatial, x, nullptr, [&]<class Width>(Tag<Width>) {
    constexpr int N = Width::value;
    if (s.spatial == 1) {
      const Columns c = columns_of<N>(s);
      const Workspace memory(bytes(c.parts));
      launch(moment_columns<S, N>, c.grid, c.block, 0, s.channels, c.parts, x, memory.as<double>());
      return merge(c.parts, memory);
    }
    const Parts parts = segment_parts<N>(s);
    const Workspace memory(bytes(parts));
    const dim3 block = segment_block(parts, N);
    launch(moment_segments<S, N>, dim3(blocks_of(s.channels, block), unsigned(parts.parts)), block,
           0, Segments<N>(s), parts, x, memory.as<double>());
    merge(parts, memory);
  });
}

template <class S>
void channel_gradients(const ChannelShape& s, const ChannelStats<Number<S>>& stats, const S* g,
                       const S* x, Number<S>* gw, Number<S>* gb) {
  using T = Number<S>;
  const auto merge = [&](const Parts& parts, const Workspace& memory) {
    launch(merge_gradients<T>, merge_blocks(s.channels), merge_block, 0, s.channels, parts.parts,
           memory.as<double>(), gw, gb);
  };
  const auto bytes = [&](const Parts& parts) {
    return 2 * sizeof(double) * static_cast<size_t>(parts.parts * s.channels);
  };
  const bool of_rows = stats.sample_step != 0;
  const int64_t columns = of_rows ? stats.channels_each : s.channels;
  by_width<S>(s.spatial == 1 ? columns : s.spatial, x, g, [&]<class Width>(Tag<Width>) {
    constexpr int N = Width::value;
    if (s.spatial == 1) {
      const Columns c = columns_of<N>(s);
      const Workspace memory(bytes(c.parts));
      launch(of_rows ? gradient_columns<S, N, true> : gradient_columns<S, N, false>, c.grid,
             c.block, 0, s.channels, c.parts, stats, g, x, memory.as<double>());
      return merge(c.parts, memory);
    }
    const Parts parts = segment_parts<N>(s);
    const Workspace memory(bytes(parts));
    const dim3 block = segment_block(parts, N);
    launch(gradient_segments<S, N>, dim3(blocks_of(s.channels, block), unsigned(parts.parts)),
           block, 0, Segments<N>(s), parts, stats, g, x, memory.as<double>());
    merge(parts, memory);
  });
}

template void channel_moments<float>(const ChannelShape&, double, const float*, float*, float*,
                                     float*);
template void channel_gradients<float>(const ChannelShape&, const ChannelStats<float>&,
                                       const float*, const float*, float*, float*);
template void channel_moments<double>(const ChannelShape&, double, const double*, double*, double*,
                                      double*);
template void channel_gradients<double>(const ChannelShape&, const ChannelStats<double>&,
                                        const double*, const double*, double*, double*);
template void channel_moments<Half>(const ChannelShape&, double, const Half*, float*, float*,
                                    float*);
template void channel_gradients<Half>(const ChannelShape&, const ChannelStats<float>&, const Half*,
                                      const Half*, float*, float*);
template void channel_moments<BFloat16>(const ChannelShape&, double, const BFloat16*, float*,
                                        float*, float*);
template void channel_gradients<BFloat16>(const ChannelShape&, const ChannelStats<float>&,
                                          const BFloat16*, const BFloat16*, float*, float*);

}  // namespace taeda::cuda
