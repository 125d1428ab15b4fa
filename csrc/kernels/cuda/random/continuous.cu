// Fills with numbers of continuous distributions.
#include <numbers>

#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {
namespace {

// Numbers in (0, 1] become [from, to).
template <class T> void uniform(Engine& engine, T* out, int64_t n, double from, double to) {
  using W = Wide<T>;
  const T first = convert<T>(from), last = convert<T>(to);
  const W low = convert<W>(first), end = convert<W>(last),
          range = convert<W>(convert<T>(end - low));
  fill<Uniform<W>>(engine, out, n, [=] __device__(W u) {
    const T value = convert<T>(std::fma(u, range, low));
    return convert<W>(value) == end ? first : value;
  });
}

template <class T> void normal(Engine& engine, T* out, int64_t n, double mean, double std) {
  using W = Wide<T>;
  const W m = static_cast<W>(mean), s = static_cast<W>(std);
  fill<Normal<W>>(engine, out, n, [=] __device__(W z) { return convert<T>(std::fma(z, s, m)); });
}

template <class T> void exponential(Engine& engine, T* out, int64_t n, double rate) {
  using W = Wide<T>;
  const W scale = W(-1) / static_cast<W>(rate);
  fill<Uniform<W>>(engine, out, n, [=] __device__(W u) {
    constexpr W half = std::numeric_limits<W>::epsilon() / 2;
    return convert<T>(scale * (u >= 1 - half ? -half : fast_log(u)));  // never 0
  });
}

template <class T> void cauchy(Engine& engine, T* out, int64_t n, double median, double sigma) {
  using W = Wide<T>;
  const W m = static_cast<W>(median), s = static_cast<W>(sigma);
  fill<Uniform<W>>(engine, out, n, [=] __device__(W u) {
    constexpr W epsilon = std::numeric_limits<W>::epsilon();
    const W inside = u > 1 - epsilon ? 1 - epsilon : u < epsilon ? epsilon : u;
    return convert<T>(std::fma(s, fast_tan(std::numbers::pi_v<W> * (inside - W(0.5))), m));
  });
}

template <class T> void log_normal(Engine& engine, T* out, int64_t n, double mean, double std) {
  using W = Wide<T>;
  const W m = static_cast<W>(mean), s = static_cast<W>(std);
  fill<Normal<W>>(engine, out, n,
                  [=] __device__(W z) { return convert<T>(fast_exp(std::fma(z, s, m))); });
}

template <class T>
const ContinuousKernels<T> table{uniform<T>,     normal<T>, normal<T>,
                                 exponential<T>, cauchy<T>, log_normal<T>};

}  // namespace

void add_continuous_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>),
                       device_table(table<Half>), device_table(table<BFloat16>)});
}

}  // namespace taeda::cuda
