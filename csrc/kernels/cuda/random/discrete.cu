// Fills with integers, and with zeros and ones.
#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {
namespace {

template <class T> void geometric(Engine& engine, T* out, int64_t n, double p) {
  if constexpr (!same_type<T, bool>) {
    using W = Wide<T>;
    const W q = static_cast<W>(p);
    fill<Uniform<W>>(engine, out, n, [=] __device__(W u) {
      return convert<T>(std::ceil(fast_log(u) / std::log1p(-q)));
    });
  }
}

template <class T> void bernoulli(Engine& engine, T* out, int64_t n, double p) {
  using W = Wide<T>;
  const W limit = static_cast<W>(p);
  fill<Uniform<W>>(engine, out, n, [=] __device__(W u) { return convert<T>(u < limit); });
}

// base + (a draw modulo range), where 64 bits are drawn for ranges whose remainders would be uneven
// by more than a sixteenth.
constexpr uint64_t kWide = uint64_t{1} << 28;

template <class T> void range(Engine& engine, T* out, int64_t n, uint64_t range, int64_t base) {
  const auto shift = static_cast<uint64_t>(base);
  if (range == 0) {
    fill<Words64>(engine, out, n, [=] __device__(uint64_t x) {
      return convert<T>(static_cast<int64_t>(x + shift));
    });
  } else if (range >= kWide) {
    fill<Words64>(engine, out, n, [=] __device__(uint64_t x) {
      return convert<T>(static_cast<int64_t>(x % range + shift));
    });
  } else {
    const auto narrow = static_cast<uint32_t>(range);
    fill<Words32>(engine, out, n, [=] __device__(uint32_t x) {
      return convert<T>(static_cast<int64_t>(x % narrow + shift));
    });
  }
}

// 0 .. the largest integer, or the largest that the digits of a float hold exactly.
template <class T> void random(Engine& engine, T* out, int64_t n) {
  if constexpr (same_type<T, int64_t> || same_type<T, double>) {
    constexpr uint64_t count = same_type<T, double> ? (uint64_t{1} << 53) + 1 : uint64_t{1} << 63;
    fill<Words64>(engine, out, n, [=] __device__(uint64_t x) {
      return convert<T>(static_cast<int64_t>(x % count));
    });
  } else {
    constexpr uint32_t count = same_type<T, float>      ? (1u << 24) + 1
                               : same_type<T, Half>     ? (1u << 11) + 1
                               : same_type<T, BFloat16> ? (1u << 8) + 1
                               : same_type<T, bool>
                                   ? 2
                                   : static_cast<uint32_t>(std::numeric_limits<T>::max()) + 1;
    fill<Words32>(engine, out, n, [=] __device__(uint32_t x) {
      return convert<T>(static_cast<int64_t>(x % count));
    });
  }
}

// Probabilities for each element: a thread draws for four neighbours.
template <class P, class T>
__global__ void bernoulli_each_kernel(int64_t n, Place place, const P* p, T* out) {
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (4 * thread >= n) return;
  Philox philox(place, static_cast<uint64_t>(thread));
  const Uniform<float> u(philox.next());
  for (int k = 0; k < 4 && 4 * thread + k < n; ++k)
    out[4 * thread + k] = convert<T>(static_cast<P>(u.v[k]) <= p[4 * thread + k]);
}
template <class P, class T> void bernoulli_each(Engine& engine, T* out, const P* p, int64_t n) {
  if (n == 0) return;
  const auto blocks = static_cast<unsigned>((n + 4 * 512 - 1) / (4 * 512));
  launch(bernoulli_each_kernel<P, T>, blocks, 512, 0, n, take(engine, 12), p, out);
}

template <class T>
const RandomKernels<T> table{
    geometric<T>, bernoulli<T>, bernoulli_each<float, T>, bernoulli_each<double, T>,
    range<T>,     random<T>};

template <class... T> void add(std::vector<DeviceTable>& to) {
  (to.push_back(device_table(table<T>)), ...);
}

}  // namespace

void add_discrete_tables(std::vector<DeviceTable>& to) {
  add<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>(to);
}

}  // namespace taeda::cuda
