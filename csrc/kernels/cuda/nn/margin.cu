// Losses that ask for a margin between the scores of right and of wrong classes. A group of threads
// has a row.
#include "kernels/margin.h"

#include "kernels/cuda/common/group.h"
#include "kernels/cuda/nn/tables.h"

namespace taeda::cuda {
namespace {

template <class T> __device__ T above_zero(T z) { return z > 0 ? z : T(0); }  // 0 of NaN

// ---- one right class ----
template <class T>
__global__ void one_right_rows(MarginShape s, const T* x, OneRightClass<T> right, double* loss) {
  const int64_t i = group_index();
  double own = 0;
  const int64_t t = i < s.rows ? right.target[i] : 0;
  const T* row = x + i * s.classes;
  for (int64_t c = threadIdx.x; i < s.rows && c < s.classes; c += blockDim.x) {
    if (c == t) continue;
    const T z = above_zero(right.margin - row[t] + row[c]);
    own += static_cast<double>(right.squared ? z * z : z);
  }
  const double sum = group_sum(own);
  if (threadIdx.x != 0 || i >= s.rows) return;
  const double weight = right.weight ? static_cast<double>(right.weight[t]) : 1.0;
  loss[i] = sum * weight / static_cast<double>(s.classes);
}
template <class T>
__global__ void one_right_gradients(MarginShape s, const T* g, int64_t g_step, double scale,
                                    const T* x, OneRightClass<T> right, T* gx) {
  const int64_t i = group_index();
  T own = 0;
  const int64_t t = i < s.rows ? right.target[i] : 0;
  const T* row = x + i * s.classes;
  T* to = gx + i * s.classes;
  if (i < s.rows) {
    const double weight = right.weight ? static_cast<double>(right.weight[t]) : 1.0;
    const T factor =
        static_cast<T>(scale * g[i * g_step] * weight / static_cast<double>(s.classes));
    for (int64_t c = threadIdx.x; c < s.classes; c += blockDim.x) {
      if (c == t) continue;
      const T z = above_zero(right.margin - row[t] + row[c]);
      const T d = right.squared ? 2 * z * factor : z > 0 ? factor : T(0);
      to[c] = d;
      own += d;
    }
  }
  const T sum = group_sum(own);
  if (threadIdx.x == 0 && i < s.rows) to[t] = -sum;
}

// ---- any number of right classes ----
// How many names a row's target has, and whether c is one of them.
__device__ int64_t names_of(const int64_t* target, int64_t classes) {
  int64_t named = 0;
  while (named < classes && target[named] >= 0) ++named;
  return named;
}
__device__ bool is_named(const int64_t* target, int64_t named, int64_t c) {
  for (int64_t k = 0; k < named; ++k)
    if (target[k] == c) return true;
  return false;
}

template <class T>
__global__ void many_right_rows(MarginShape s, const T* x, const int64_t* target, double* loss) {
  const int64_t i = group_index();
  double own = 0;
  if (i < s.rows) {
    const T* row = x + i * s.classes;
    const int64_t *names = target + i * s.classes, named = names_of(names, s.classes);
    for (int64_t c = threadIdx.x; c < s.classes; c += blockDim.x) {
      if (is_named(names, named, c)) continue;
      for (int64_t k = 0; k < named; ++k)
        own += static_cast<double>(above_zero(T(1) - row[names[k]] + row[c]));
    }
  }
  const double sum = group_sum(own);
  if (threadIdx.x == 0 && i < s.rows) loss[i] = sum / static_cast<double>(s.classes);
}
// What a score gets: as a wrong class, from all right ones; as a right one, from all wrong ones, as
// often as it is named.
template <class T>
__device__ T times_above(const MarginShape& s, const T* row, const int64_t* names, int64_t named,
                         int64_t c) {
  int64_t above = 0, often = 0;
  for (int64_t k = 0; k < named; ++k) often += names[k] == c;
  if (often == 0) {
    for (int64_t k = 0; k < named; ++k) above += T(1) - row[names[k]] + row[c] > 0;
    return static_cast<T>(above);
  }
  for (int64_t w = 0; w < s.classes; ++w)
    if (T(1) - row[c] + row[w] > 0 && !is_named(names, named, w)) ++above;
  return -static_cast<T>(above * often);
}
template <class T>
void many_right_backward(const MarginShape& given, const T* g, int64_t g_step, double scale,
                         const T* x, const int64_t* target, T* gx) {
  const MarginShape s = given;
  each(s.rows * s.classes, [=] __device__(int64_t at) {
    const int64_t i = at / s.classes, first = i * s.classes;
    const int64_t *names = target + first, named = names_of(names, s.classes);
    const T factor = static_cast<T>(scale * g[i * g_step] / static_cast<double>(s.classes));
    gx[at] = factor * times_above(s, x + first, names, named, at - first);
  });
}

// ---- of all rows ----
template <class T>
__global__ void finish(int64_t rows, const double* losses, Reduction reduction, T* loss) {
  double own = 0;
  for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) own += losses[i];
  const double sum = group_sum(own);
  if (threadIdx.x == 0)
    *loss = static_cast<T>(reduction == kMean ? sum / static_cast<double>(rows) : sum);
}
template <class T>
void reduce(const MarginShape& s, Reduction reduction, const double* losses, T* loss) {
  if (reduction != kUnreduced) {
    launch(finish<T>, 1, kThreads, 0, s.rows, losses, reduction, loss);
    return;
  }
  each(s.rows, [=] __device__(int64_t i) { loss[i] = static_cast<T>(losses[i]); });
}

template <class T>
void one_right(const MarginShape& s, Reduction reduction, const T* x, const OneRightClass<T>& right,
               T* loss) {
  const Workspace losses(static_cast<size_t>(s.rows) * sizeof(double));
  const dim3 block = groups_for(s.classes);
  if (s.rows > 0)
    launch(one_right_rows<T>, blocks_of(s.rows, block), block, 0, s, x, right, losses.as<double>());
  reduce(s, reduction, losses.as<double>(), loss);
}
template <class T>
void one_right_backward(const MarginShape& s, const T* g, int64_t g_step, double scale, const T* x,
                        const OneRightClass<T>& right, T* gx) {
  const dim3 block = groups_for(s.classes);
  if (s.rows > 0)
    launch(one_right_gradients<T>, blocks_of(s.rows, block), block, 0, s, g, g_step, scale, x,
           right, gx);
}
template <class T>
void many_right(const MarginShape& s, Reduction reduction, const T* x, const int64_t* target,
                T* loss) {
  const Workspace losses(static_cast<size_t>(s.rows) * sizeof(double));
  const dim3 block = groups_for(s.classes);
  if (s.rows > 0)
    launch(many_right_rows<T>, blocks_of(s.rows, block), block, 0, s, x, target,
           losses.as<double>());
  reduce(s, reduction, losses.as<double>(), loss);
}

template <class T>
const MarginKernels<T> table{one_right<T>, one_right_backward<T>, many_right<T>,
                             many_right_backward<T>};

}  // namespace

void add_margin_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
