#include "kernels/cpu/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

int64_t grain_for(int64_t work) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(work, 1)); }

// Two passes, in double: as exact as the data.
template <class T>
void moments(const T* x, int64_t n, bool centered, double* mean, double* var) {
  double m = 0;
  if (centered) {
    for (int64_t i = 0; i < n; ++i) m += x[i];
    m /= static_cast<double>(n);
  }
  double v = 0;
  for (int64_t i = 0; i < n; ++i) v += (x[i] - m) * (x[i] - m);
  *mean = m;
  *var = v / static_cast<double>(n);
}

}  // namespace

template <class T>
void row_norm(const RowNorm& s, const T* x, const T* weight, const T* bias, T* y, T* mean, T* rstd) {
  const int64_t n = s.channels * s.spatial;
  parallel_for(s.rows, grain_for(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      double m, v;
      moments(x + r * n, n, s.centered, &m, &v);
      mean[r] = static_cast<T>(m);
      rstd[r] = static_cast<T>(1 / std::sqrt(v + s.eps));
      const T mu = mean[r], scale = rstd[r];
      const int64_t first = (r % s.groups) * s.channels;
      if (s.spatial == 1) {
        const T *xr = x + r * n, *w = weight ? weight + first : nullptr, *b = bias ? bias + first : nullptr;
        T* yr = y + r * n;
        for (int64_t i = 0; i < n; ++i) yr[i] = (xr[i] - mu) * scale * (w ? w[i] : T(1)) + (b ? b[i] : T(0));
        continue;
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        const T w = weight ? weight[first + c] : T(1), b = bias ? bias[first + c] : T(0);
        const T* xr = x + r * n + c * s.spatial;
        T* yr = y + r * n + c * s.spatial;
        for (int64_t i = 0; i < s.spatial; ++i) yr[i] = (xr[i] - mu) * scale * w + b;
      }
    }
  });
}

template <class T>
void row_norm_backward(const RowNorm& s, const T* g, const T* x, const T* mean, const T* rstd, const T* weight, T* gx,
                       T* gw, T* gb) {
  const int64_t n = s.channels * s.spatial, total = s.groups * s.channels;
  if (gx) {
    parallel_for(s.rows, grain_for(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *gr = g + r * n, *xr = x + r * n;
        const int64_t first = (r % s.groups) * s.channels;
        const double mu = mean[r], scale = rstd[r];
        double sum_g = 0, sum_gx = 0;
        for (int64_t i = 0; i < n; ++i) {
          const double w = weight ? weight[first + i / s.spatial] : T(1);
          sum_g += gr[i] * w;
          sum_gx += gr[i] * w * (xr[i] - mu) * scale;
        }
        const double a = s.centered ? sum_g / static_cast<double>(n) : 0, b = sum_gx / static_cast<double>(n);
        for (int64_t i = 0; i < n; ++i) {
          const double w = weight ? weight[first + i / s.spatial] : T(1);
          gx[r * n + i] = static_cast<T>(scale * (gr[i] * w - a - (xr[i] - mu) * scale * b));
        }
      }
    });
  }
  if (!gw && !gb) return;
  std::vector<double> sw(static_cast<size_t>(total)), sb(static_cast<size_t>(total));
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t first = (r % s.groups) * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) {
      double dw = 0, db = 0;
      for (int64_t i = 0; i < s.spatial; ++i) {
        const int64_t at = r * n + c * s.spatial + i;
        dw += static_cast<double>(g[at]) * (x[at] - mean[r]) * rstd[r];
        db += g[at];
      }
      sw[static_cast<size_t>(first + c)] += dw;
      sb[static_cast<size_t>(first + c)] += db;
    }
  }
  if (gw) std::copy(sw.begin(), sw.end(), gw);
  if (gb) std::copy(sb.begin(), sb.end(), gb);
}

template <class T>
void channel_moments(const BatchNorm& s, const T* x, T* mean, T* var) {
  const double count = static_cast<double>(s.batch * s.spatial);
  parallel_for(s.channels, grain_for(s.batch * s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double m = 0, v = 0;
      for (int64_t b = 0; b < s.batch; ++b) {
        const T* p = x + (b * s.channels + c) * s.spatial;
        for (int64_t i = 0; i < s.spatial; ++i) m += p[i];
      }
      m /= count;
      for (int64_t b = 0; b < s.batch; ++b) {
        const T* p = x + (b * s.channels + c) * s.spatial;
        for (int64_t i = 0; i < s.spatial; ++i) v += (p[i] - m) * (p[i] - m);
      }
      mean[c] = static_cast<T>(m);
      var[c] = static_cast<T>(v / count);
    }
  });
}

template <class T>
void batch_norm(const BatchNorm& s, const T* x, const T* mean, const T* invstd, const T* weight, const T* bias, T* y) {
  parallel_for(s.batch * s.channels, grain_for(s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t c = k % s.channels;
      const T scale = invstd[c] * (weight ? weight[c] : T(1)), mu = mean[c], shift = bias ? bias[c] : T(0);
      const T* p = x + k * s.spatial;
      T* q = y + k * s.spatial;
      for (int64_t i = 0; i < s.spatial; ++i) q[i] = (p[i] - mu) * scale + shift;
    }
  });
}

template <class T>
void batch_norm_backward(const BatchNorm& s, bool training, const T* g, const T* x, const T* mean, const T* invstd,
                         const T* weight, T* gx, T* gw, T* gb) {
  const double count = static_cast<double>(s.batch * s.spatial);
  parallel_for(s.channels, grain_for(s.batch * s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const double mu = mean[c], scale = invstd[c], w = weight ? weight[c] : T(1);
      double sum_g = 0, sum_gx = 0;
      for (int64_t b = 0; b < s.batch; ++b) {
        const int64_t at = (b * s.channels + c) * s.spatial;
        for (int64_t i = at; i < at + s.spatial; ++i) {
          sum_g += g[i];
          sum_gx += g[i] * (x[i] - mu) * scale;
        }
      }
      if (gw) gw[c] = static_cast<T>(sum_gx);
      if (gb) gb[c] = static_cast<T>(sum_g);
      if (!gx) continue;
      const double a = training ? sum_g / count : 0, d = training ? sum_gx / count : 0;
      for (int64_t b = 0; b < s.batch; ++b) {
        const int64_t at = (b * s.channels + c) * s.spatial;
        for (int64_t i = at; i < at + s.spatial; ++i) {
          gx[i] = static_cast<T>(w * scale * (g[i] - a - (x[i] - mu) * scale * d));
        }
      }
    }
  });
}

template void row_norm(const RowNorm&, const float*, const float*, const float*, float*, float*, float*);
template void row_norm(const RowNorm&, const double*, const double*, const double*, double*, double*, double*);
template void row_norm_backward(const RowNorm&, const float*, const float*, const float*, const float*, const float*,
                                float*, float*, float*);
template void row_norm_backward(const RowNorm&, const double*, const double*, const double*, const double*,
                                const double*, double*, double*, double*);
template void channel_moments(const BatchNorm&, const float*, float*, float*);
template void channel_moments(const BatchNorm&, const double*, double*, double*);
template void batch_norm(const BatchNorm&, const float*, const float*, const float*, const float*, const float*,
                         float*);
template void batch_norm(const BatchNorm&, const double*, const double*, const double*, const double*, const double*,
                         double*);
template void batch_norm_backward(const BatchNorm&, bool, const float*, const float*, const float*, const float*,
                                  const float*, float*, float*, float*);
template void batch_norm_backward(const BatchNorm&, bool, const double*, const double*, const double*, const double*,
                                  const double*, double*, double*, double*);

}  // namespace taeda::cpu
