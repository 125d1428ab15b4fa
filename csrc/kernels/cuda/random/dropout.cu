// Dropout: a draw for each element, and the elements that it keeps.
#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {
namespace {

template <class T, int N> struct alignas(sizeof(T) * N) Neighbours {
  T v[N];
};
// The i-th N neighbours from p on.
template <int N, class T> __device__ Neighbours<T, N>& neighbours(T* p, int64_t i) {
  return reinterpret_cast<Neighbours<T, N>*>(p)[i];
}
template <int N, class T> __device__ const Neighbours<T, N>& neighbours(const T* p, int64_t i) {
  return reinterpret_cast<const Neighbours<T, N>*>(p)[i];
}

// What is dropped: memory of n elements.
template <class T> struct Operands {
  int64_t n;
  const T* x;
  bool* keep;
  T* y;
  Wide<T> scale;

  __device__ T scaled(T x, bool kept) const {
    return convert<T>(convert<Wide<T>>(x) * (kept ? scale : Wide<T>(0)));
  }
  // How many neighbours are read at once: 16 bytes of x, or less where memory does not have them.
  int width() const {
    int w = 16 / sizeof(T);
    const auto aligned = [&](const void* p, size_t bytes) {
      return reinterpret_cast<uintptr_t>(p) % (bytes * static_cast<size_t>(w)) == 0;
    };
    while (w > 1 &&
           !(n % w == 0 && aligned(x, sizeof(T)) && aligned(y, sizeof(T)) && aligned(keep, 1)))
      w /= 2;
    return w;
  }
};

// A thread draws four numbers for N neighbours at a time, or several times four.
template <int N, class T>
__global__ void __launch_bounds__(kThreads) drop_neighbours(Operands<T> o, Place place, Wide<T> p) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  Philox philox(place, static_cast<uint64_t>(thread));
  for (int64_t i = thread; i < o.n / N; i += threads) {
    const Neighbours<T, N> in = neighbours<N>(o.x, i);
    Neighbours<bool, N> kept;
    Neighbours<T, N> out;
#pragma unroll
    for (int first = 0; first < N; first += 4) {
      const Uniform<float> u(philox.next());
#pragma unroll
      for (int k = first; k < N && k < first + 4; ++k) {
        kept.v[k] = u.v[k - first] < p;
        out.v[k] = o.scaled(in.v[k], kept.v[k]);
      }
    }
    neighbours<N>(o.keep, i) = kept;
    neighbours<N>(o.y, i) = out;
  }
}
// Where elements are read one by one, a thread's are as far apart as in a fill.
template <class T>
__global__ void __launch_bounds__(kThreads) drop_each(Operands<T> o, Place place, Wide<T> p) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  Philox philox(place, static_cast<uint64_t>(thread));
  for (int64_t first = thread; first < o.n; first += 4 * threads) {
    const Uniform<float> u(philox.next());
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t i = first + k * threads;
      if (i >= o.n) break;
      o.keep[i] = u.v[k] < p;
      o.y[i] = o.scaled(o.x[i], o.keep[i]);
    }
  }
}

template <class T>
void dropout(Engine& engine, int64_t n, double p, const T* x, double scale, bool* keep, T* y) {
  if (n == 0) return;
  const Operands<T> o{n, x, keep, y, static_cast<Wide<T>>(scale)};
  const Grid grid(n, 4);
  const auto run = [&](auto kernel) {
    launch(kernel, grid.blocks, kThreads, 0, o, take(engine, 4 * grid.rounds),
           static_cast<Wide<T>>(p));
  };
  switch (o.width()) {
    case 8:
      if constexpr (sizeof(T) == 2) run(drop_neighbours<8, T>);
      break;
    case 4:
      if constexpr (sizeof(T) <= 4) run(drop_neighbours<4, T>);
      break;
    case 2: run(drop_neighbours<2, T>); break;
    default: run(drop_each<T>);
  }
}

template <int N, class T> __global__ void scale_neighbours(Operands<T> o) {
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < o.n / N; i += threads) {
    const Neighbours<T, N> in = neighbours<N>(o.x, i);
    const Neighbours<bool, N> kept = neighbours<N>(o.keep, i);
    Neighbours<T, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) out.v[k] = o.scaled(in.v[k], kept.v[k]);
    neighbours<N>(o.y, i) = out;
  }
}

template <class T> void scale_kept(int64_t n, const T* x, const bool* keep, double scale, T* y) {
  if (n == 0) return;
  constexpr int widest = 16 / sizeof(T);
  const Operands<T> o{n, x, const_cast<bool*>(keep), y, static_cast<Wide<T>>(scale)};
  if (o.width() == widest)
    launch(scale_neighbours<widest, T>, blocks_for(n / widest), kThreads, 0, o);
  else launch(scale_neighbours<1, T>, blocks_for(n), kThreads, 0, o);
}

template <class T> const DropoutKernels<T> table{dropout<T>, scale_kept<T>};

}  // namespace

void add_dropout_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>),
                       device_table(table<Half>), device_table(table<BFloat16>)});
}

}  // namespace taeda::cuda
