// softmax, log_softmax and their derivatives, along the middle of (outer, size, inner).
#include "kernels/softmax.h"

#include "kernels/cuda/nn/softmax.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

struct Line {
  bool inside;
  int64_t begin;
};
__device__ Line line_of(const SoftmaxShape& s) {
  const int64_t line = group_index();
  return {line < s.outer * s.inner, line / s.inner * s.size * s.inner + line % s.inner};
}

template <class T>
__global__ void softmax_lines(const __grid_constant__ SoftmaxShape s, bool log, const T* x, T* y) {
  const Line line = line_of(s);
  auto own = SumOfExp<T>::start();
  for (int64_t i = threadIdx.x; line.inside && i < s.size; i += blockDim.x)
    own.add(x[line.begin + i * s.inner]);
  const SumOfExp<T> all = group_all(own, SumOfExp<T>::merge);
  const T log_sum = portable::log(all.sum), scale = T(1) / all.sum;
  for (int64_t i = threadIdx.x; line.inside && i < s.size; i += blockDim.x) {
    const int64_t at = line.begin + i * s.inner;
    const T v = x[at] - all.most;
    y[at] = log ? v - log_sum : portable::exp(v) * scale;
  }
}

template <class T>
__global__ void softmax_gradient(const __grid_constant__ SoftmaxShape s, bool log, const T* g,
                                 const T* y, T* gx) {
  const Line line = line_of(s);
  T own = 0;
  for (int64_t i = threadIdx.x; line.inside && i < s.size; i += blockDim.x) {
    const int64_t at = line.begin + i * s.inner;
    own += log ? g[at] : g[at] * y[at];
  }
  const T sum = group_sum(own);
  for (int64_t i = threadIdx.x; line.inside && i < s.size; i += blockDim.x) {
    const int64_t at = line.begin + i * s.inner;
    gx[at] = log ? g[at] - portable::exp(y[at]) * sum : y[at] * (g[at] - sum);
  }
}

template <class T> void softmax(const SoftmaxShape& s, bool log, const T* x, T* y) {
  if (s.outer * s.size * s.inner == 0) return;
  const dim3 block = groups_for(s.size, s.inner > 1);
  launch(softmax_lines<T>, blocks_of(s.outer * s.inner, block), block, 0, s, log, x, y);
}
template <class T>
void softmax_backward(const SoftmaxShape& s, bool log, const T* g, const T* y, T* gx) {
  if (s.outer * s.size * s.inner == 0) return;
  const dim3 block = groups_for(s.size, s.inner > 1);
  launch(softmax_gradient<T>, blocks_of(s.outer * s.inner, block), block, 0, s, log, g, y, gx);
}

template <class T> const SoftmaxKernels<T> table{softmax<T>, softmax_backward<T>};

}  // namespace

void add_softmax_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
