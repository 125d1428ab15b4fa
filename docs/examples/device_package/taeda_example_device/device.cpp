// A device whose memory is a part of the host's, with matrix products of its own. It can therefore
// use the CPU's kernels for the rest of what most programs need: functions of elements, and sums.
#include <cstdlib>
#include <cstring>

#include "kernels/device_plugin.h"
#include "kernels/gemm.h"
#include "kernels/pointwise.h"
#include "kernels/reduce.h"

namespace {

using namespace taeda;

// ---- the runtime ----

int count() { return 1; }

void* allocate(size_t nbytes, int) {
  void* block = std::aligned_alloc(64, (nbytes + 63) / 64 * 64);
  if (!block) throw OutOfMemory(str("example: out of memory for ", nbytes, " bytes"));
  return block;
}

void deallocate(void* block, size_t, int) noexcept { std::free(block); }

// Kernels are done when they return, so there is nothing to wait for.
void copy(void* to, Device, const void* from, Device, size_t nbytes) {
  std::memcpy(to, from, nbytes);
}
void synchronize(int) {}

// ---- matrix products of float32 ----

using Matrix = MatrixRef<float>;

float element(const Matrix& m, int64_t row, int64_t column) {
  return m.trans == Trans::No ? m.data[row * m.stride + column] : m.data[column * m.stride + row];
}

// c = alpha * op(a) op(b) + beta * c
void gemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c,
          int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    float* row = c + i * ldc;
    for (int64_t j = 0; j < n; ++j) row[j] = beta == 0 ? 0 : beta * row[j];
    for (int64_t l = 0; l < k; ++l) {
      const float factor = alpha * element(a, i, l);
      for (int64_t j = 0; j < n; ++j) row[j] += factor * element(b, l, j);
    }
  }
}

void batched(int64_t batch, int64_t m, int64_t n, int64_t k, float alpha, Matrix a, int64_t a_step,
             Matrix b, int64_t b_step, float beta, float* c, int64_t ldc, int64_t c_step) {
  for (int64_t i = 0; i < batch; ++i) {
    gemm(m, n, k, alpha, a, b, beta, c, ldc);
    a.data += a_step;
    b.data += b_step;
    c += c_step;
  }
}

// c = op(a) op(b), and `start` added to every row: a linear layer with its bias.
void onto(int64_t m, int64_t n, int64_t k, Matrix a, Matrix b, const float* start, float* c,
          int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) std::memcpy(c + i * ldc, start, size_t(n) * sizeof(float));
  gemm(m, n, k, 1, a, b, 1, c, ldc);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const DevicePlugin* taeda_device(const DeviceHost& host) {
  static const GemmKernels<float> products{gemm, batched, onto};
  static const DeviceTable tables[] = {
      device_table(products),
      device_table(host.cpu<PointwiseKernels>()),
      device_table(host.cpu<ReduceKernels>()),
  };
  static const DevicePlugin plugin{
      kDeviceInterface, {count, allocate, deallocate, copy, synchronize}, tables};
  return &plugin;
}
