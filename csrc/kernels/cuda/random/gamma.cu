// Gamma, Dirichlet and binomial random numbers, and the derivatives of the first two.
#include "kernels/gamma.h"

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/random/doubles.h"
#include "kernels/cuda/random/fill.h"
#include "kernels/cuda/random/tables.h"

namespace taeda::cuda {
namespace {

// Words that a deviate may take: 64 rounds, which one in more than 10^20 exceeds.
constexpr int64_t kWords = 256;

// out[i] = f(i, engine), where each element has an engine of its own.
template <class T, class F> __global__ void draw_kernel(int64_t n, Place place, F f, T* out) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Philox philox(place, static_cast<uint64_t>(i));
  Doubles engine{philox};
  out[i] = f(i, engine);
}
template <class T, class F> void draw(Engine& engine, int64_t n, T* out, F f) {
  if (n == 0) return;
  launch(draw_kernel<T, F>, static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, n,
         take(engine, kWords), f, out);
}

template <class T> void gamma_draws(Engine& engine, T* out, const T* alpha, int64_t n) {
  draw(engine, n, out, [=] __device__(int64_t i, Doubles& one) {
    const T x = static_cast<T>(gamma_deviate(one, alpha[i]));
    return x < std::numeric_limits<T>::min() ? std::numeric_limits<T>::min() : x;
  });
}

// A group for each row: gamma deviates over their sum, strictly between 0 and 1.
template <class T>
__global__ void to_simplex(const double* draws, int64_t rows, int64_t k, T* out) {
  constexpr T least = std::numeric_limits<T>::min();
  constexpr T most = 1 - std::numeric_limits<T>::epsilon() / 2;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    double total = 0;
    for (int64_t j = threadIdx.x; j < k; j += blockDim.x) total += draws[row * k + j];
    total = group_sum(total);
    for (int64_t j = threadIdx.x; j < k; j += blockDim.x) {
      const T share = static_cast<T>(draws[row * k + j] / total);
      out[row * k + j] = share < least ? least : share > most ? most : share;
    }
  }
}
template <class T>
void dirichlet_draws(Engine& engine, T* out, const T* alpha, int64_t rows, int64_t k) {
  const Workspace room(static_cast<size_t>(rows * k) * sizeof(double));
  double* const draws = room.as<double>();
  draw(engine, rows * k, draws, [=] __device__(int64_t i, Doubles& one) {
    const double x = gamma_deviate(one, static_cast<double>(alpha[i]));
    return x < std::numeric_limits<double>::min() ? std::numeric_limits<double>::min() : x;
  });
  launch(to_simplex<T>, blocks_for(rows * kThreads), kThreads, 0, draws, rows, k, out);
}

template <class T>
void binomial_draws(Engine& engine, T* out, const T* count, const T* p, int64_t n) {
  draw(engine, n, out, [=] __device__(int64_t i, Doubles& one) {
    return static_cast<T>(
        binomial_deviate(one, static_cast<double>(count[i]), static_cast<double>(p[i])));
  });
}

template <class T> void gamma_gradients(int64_t n, const T* alpha, const T* x, T* out) {
  each(n, [=] __device__(int64_t i) {
    out[i] = static_cast<T>(gamma::gamma_gradient(alpha[i], x[i]));
  });
}
template <class T>
void dirichlet_gradients(int64_t n, const T* x, const T* alpha, const T* total, T* out) {
  each(n, [=] __device__(int64_t i) {
    out[i] = static_cast<T>(gamma::dirichlet_gradient(x[i], alpha[i], total[i]));
  });
}

template <class T>
const GammaKernels<T> table{gamma_draws<T>, dirichlet_draws<T>, binomial_draws<T>,
                            gamma_gradients<T>, dirichlet_gradients<T>};

}  // namespace

void add_gamma_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
