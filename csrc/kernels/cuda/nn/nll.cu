// Negative log-likelihood of class indices, and cross entropy of logits.
#include "kernels/nll.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/fault.h"
#include "kernels/cuda/nn/softmax.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

__device__ bool is_class(const NllShape& s, int64_t t) { return t >= 0 && t < s.classes; }

// Kernels find a target that is no class, and pass over it; the host need not wait.
int64_t bad_target(const NllShape& s, const int64_t* target) {
  Fault* fault = used_device().fault;
  each(s.batch * s.inner, [=] __device__(int64_t i) {
    if (target[i] != s.ignore_index && !is_class(s, target[i])) report(fault, target[i], s.classes);
  });
  return s.ignore_index;
}

struct Sums {
  double loss, weights;
};
__device__ Sums add_sums(Sums a, Sums b) { return {a.loss + b.loss, a.weights + b.weights}; }

template <class T, class LossOf>
__global__ void sum_losses(const __grid_constant__ NllShape s, const int64_t* target,
                           const T* weight, T* losses, Sums* partial, LossOf loss_of) {
  Sums own{0, 0};
  const int64_t n = s.batch * s.inner, step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    const int64_t t = target[i];
    const bool counts = t != s.ignore_index && is_class(s, t);
    Sums one{0, 0};
    if (counts) {
      one.weights = weight ? static_cast<double>(weight[t]) : 1.0;
      one.loss = one.weights * loss_of(i, (i / s.inner * s.classes + t) * s.inner + i % s.inner);
    }
    if (losses) losses[i] = static_cast<T>(one.loss);
    own = add_sums(own, one);
  }
  const Sums all = group_all(own, add_sums);
  if (threadIdx.x == 0) partial[blockIdx.x] = all;
}
template <class T>
__global__ void finish_losses(int count, const Sums* partial, Reduction reduction, T* loss,
                              double* total) {
  Sums own{0, 0};
  for (int i = threadIdx.x; i < count; i += blockDim.x) own = add_sums(own, partial[i]);
  const Sums all = group_all(own, add_sums);
  if (threadIdx.x != 0) return;
  *total = all.weights;
  if (reduction != kUnreduced)
    *loss = static_cast<T>(reduction == kMean ? all.loss / all.weights : all.loss);
}
template <class T, class LossOf>
void reduced(const NllShape& s, Reduction reduction, const int64_t* target, const T* weight,
             T* loss, double* total, LossOf loss_of) {
  const int64_t n = s.batch * s.inner;
  const auto blocks =
      static_cast<unsigned>(std::clamp<int64_t>((n + kThreads - 1) / kThreads, 1, 256));
  const Workspace partial(blocks * sizeof(Sums));
  T* losses = reduction == kUnreduced ? loss : nullptr;
  launch(sum_losses<T, LossOf>, blocks, kThreads, 0, s, target, weight, losses, partial.as<Sums>(),
         loss_of);
  launch(finish_losses<T>, 1, kThreads, 0, static_cast<int>(blocks), partial.as<Sums>(), reduction,
         loss, total);
}

template <class T> struct NegativeElement {
  const T* x;
  __device__ double operator()(int64_t, int64_t at) const { return -static_cast<double>(x[at]); }
};
template <class T> struct NegativeLogSoftmax {
  const T* x;
  const double* stats;
  __device__ double operator()(int64_t i, int64_t at) const {
    return ::log(stats[2 * i + 1]) - (x[at] - stats[2 * i]);
  }
};

template <class T>
void nll(const NllShape& s, Reduction reduction, const T* x, const int64_t* target, const T* weight,
         T* loss, double* total) {
  reduced(s, reduction, target, weight, loss, total, NegativeElement<T>{x});
}

template <class T>
void nll_backward(const NllShape& s, const T* g, int64_t g_step, const double* total,
                  const int64_t* target, const T* weight, T* gx) {
  each(s.batch * s.inner, [=] __device__(int64_t i) {
    const int64_t t = target[i];
    if (t == s.ignore_index || !is_class(s, t)) return;
    const double scale = total ? 1 / *total : 1;
    const int64_t at = (i / s.inner * s.classes + t) * s.inner + i % s.inner;
    gx[at] = static_cast<T>(-scale * g[i * g_step] * (weight ? weight[t] : T(1)));
  });
}

template <class T>
__global__ void entropy_stats(const __grid_constant__ NllShape s, const T* x, double* stats) {
  const int64_t row = group_index();
  auto own = SumOfExp<double>::start();
  for (int64_t i = threadIdx.x; row < s.batch && i < s.classes; i += blockDim.x)
    own.add(static_cast<double>(x[row * s.classes + i]));
  const auto all = group_all(own, SumOfExp<double>::merge);
  if (threadIdx.x != 0 || row >= s.batch) return;
  stats[2 * row] = all.most;
  stats[2 * row + 1] = all.sum;
}
template <class T>
void entropy(const NllShape& s, Reduction reduction, const T* x, const int64_t* target,
             const T* weight, T* loss, double* stats, double* total) {
  const dim3 block = groups_for(s.classes);
  if (s.batch > 0) launch(entropy_stats<T>, blocks_of(s.batch, block), block, 0, s, x, stats);
  reduced(s, reduction, target, weight, loss, total, NegativeLogSoftmax<T>{x, stats});
}

template <class T>
void entropy_backward(const NllShape& s, const T* g, int64_t g_step, const double* total,
                      const T* x, const double* stats, const int64_t* target, const T* weight,
                      T* gx) {
  each(s.batch * s.classes, [=] __device__(int64_t at) {
    const int64_t i = at / s.classes, t = target[i];
    if (t == s.ignore_index || !is_class(s, t)) {
      gx[at] = T(0);
      return;
    }
    const double factor = (total ? 1 / *total : 1) * g[i * g_step] * (weight ? weight[t] : T(1));
    const T p =
        portable::exp(static_cast<T>(x[at] - stats[2 * i])) / static_cast<T>(stats[2 * i + 1]);
    gx[at] = static_cast<T>(factor * (p - (at % s.classes == t ? T(1) : T(0))));
  });
}

template <class T> bool are_probabilities(int64_t n, const T* x) {
  const Workspace memory(sizeof(int));
  int* outside = memory.as<int>();
  each(1, [=] __device__(int64_t) { *outside = 0; });
  each(n, [=] __device__(int64_t i) {
    if (!(x[i] >= T(0) && x[i] <= T(1))) *outside = 1;
  });
  return read_back(outside) == 0;
}

template <class T>
const NllKernels<T> table{
    bad_target, nll<T>, nll_backward<T>, entropy<T>, entropy_backward<T>, are_probabilities<T>};

}  // namespace

void add_nll_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
