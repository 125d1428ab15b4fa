#include "kernels/cpu/nn/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/nn/simd/norm.h"
#include "kernels/cpu/pointwise/pointwise.h"
#include "kernels/cpu/simd/pick.h"

namespace taeda::cpu {
namespace {

int64_t grain_for(int64_t work) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(work, 1)); }

template <class T> const simd::NormLoops<T>& loops() { return typed<T>(TAEDA_PICK(norm_kernels)); }

// Whether rows of n elements are written by non-temporal stores: then each begins at a cache line.
template <class T> bool streams_rows(int64_t rows, int64_t n, const T* y) {
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  return bytes % 64 == 0 && is_streamed(rows * bytes) && reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

// Calls f(first, width) for blocks of columns that one call can sum.
template <class F> void for_columns(int64_t columns, int64_t rows, F&& f) {
  const int64_t width = std::clamp<int64_t>(columns, 1, simd::kColumns);
  parallel_for((columns + width - 1) / width, grain_for(width * rows),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   f(i * width, std::min(width, columns - i * width));
               });
}

}  // namespace

template <class T>
void Norms<T>::row_norm(const RowNorm& s, const T* x, const T* weight, const T* bias, T* y, T* mean,
                        T* rstd) {
  const int64_t n = s.channels * s.spatial;
  const auto& f = loops<T>();
  const bool streamed = streams_rows(s.rows, n, y);
  parallel_for(s.rows, grain_for(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* xr = x + r * n;
      T* yr = y + r * n;
      const double count = static_cast<double>(n);
      const double m = s.centered ? f.sum(xr, n) / count : 0;
      mean[r] = static_cast<T>(m);
      rstd[r] = static_cast<T>(1 / std::sqrt(f.squares(xr, n, m) / count + s.eps));
      const int64_t first = (r % s.groups) * s.channels;
      const T *w = weight ? weight + first : nullptr, *b = bias ? bias + first : nullptr;
      if (s.spatial == 1 || (!w && !b)) {
        f.affine(xr, n, mean[r], rstd[r], w, b, yr, streamed);
        continue;
      }
      for (int64_t c = 0; c < s.channels; ++c) {
        f.scale_shift(xr + c * s.spatial, s.spatial, mean[r], rstd[r] * (w ? w[c] : T(1)),
                      b ? b[c] : T(0), yr + c * s.spatial, false);
      }
    }
  });
}

namespace {

// The gradient of a row with one weight for each `spatial` elements.
template <class T>
void channel_row_gradient(const RowNorm& s, const T* g, const T* x, T mean, T rstd, const T* w,
                          T* gx) {
  const auto& f = loops<T>();
  const double count = static_cast<double>(s.channels * s.spatial), scale = rstd;
  double sums[2] = {0, 0}, part[2];
  for (int64_t c = 0; c < s.channels; ++c) {
    f.products(g + c * s.spatial, nullptr, x + c * s.spatial, s.spatial, mean, part);
    for (int k = 0; k < 2; ++k) sums[k] += part[k] * w[c];
  }
  const double a = s.centered ? sums[0] / count : 0, b = sums[1] / count;
  for (int64_t c = 0; c < s.channels; ++c) {
    f.gradient(g + c * s.spatial, nullptr, x + c * s.spatial, s.spatial, mean,
               static_cast<T>(scale * w[c]), static_cast<T>(scale * a),
               static_cast<T>(scale * scale * scale * b), gx + c * s.spatial, false);
  }
}

template <class T>
void row_gradients(const RowNorm& s, const T* g, const T* x, const T* mean, const T* rstd,
                   const T* weight, T* gx) {
  const int64_t n = s.channels * s.spatial;
  const auto& f = loops<T>();
  parallel_for(s.rows, grain_for(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* w = weight ? weight + (r % s.groups) * s.channels : nullptr;
      if (w && s.spatial != 1) {
        channel_row_gradient(s, g + r * n, x + r * n, mean[r], rstd[r], w, gx + r * n);
        continue;
      }
      double sums[2];
      f.products(g + r * n, w, x + r * n, n, mean[r], sums);
      const double scale = rstd[r], count = static_cast<double>(n);
      const double a = s.centered ? sums[0] / count : 0;
      f.gradient(g + r * n, w, x + r * n, n, mean[r], rstd[r], static_cast<T>(scale * a),
                 static_cast<T>(scale * scale * scale * sums[1] / count), gx + r * n, false);
    }
  });
}

// The gradients of weight and bias: columns (or channels) are shared out, rows added in order.
template <class T>
void affine_gradients(const RowNorm& s, const T* g, const T* x, const T* mean, const T* rstd, T* gw,
                      T* gb) {
  const int64_t n = s.channels * s.spatial;
  const auto& f = loops<T>();
  auto store = [](T* to, int64_t at, double v) {
    if (to) to[at] = static_cast<T>(v);
  };
  if (s.spatial == 1) {
    for (int64_t group = 0; group < s.groups; ++group) {
      for_columns(s.channels, s.rows / s.groups, [&](int64_t first, int64_t width) {
        double dw[simd::kColumns] = {}, db[simd::kColumns] = {};
        for (int64_t r = group; r < s.rows; r += s.groups) {
          f.add_affine_gradient(g + r * n + first, x + r * n + first, width, mean[r], rstd[r], dw,
                                db);
        }
        for (int64_t i = 0; i < width; ++i) {
          store(gw, group * s.channels + first + i, dw[i]);
          store(gb, group * s.channels + first + i, db[i]);
        }
      });
    }
    return;
  }
  parallel_for(s.groups * s.channels, grain_for(s.rows / s.groups * s.spatial),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t group = k / s.channels, c = k % s.channels;
                   double dw = 0, db = 0, sums[2];
                   for (int64_t r = group; r < s.rows; r += s.groups) {
                     const int64_t at = r * n + c * s.spatial;
                     f.products(g + at, nullptr, x + at, s.spatial, mean[r], sums);
                     db += sums[0];
                     dw += sums[1] * rstd[r];
                   }
                   store(gw, k, dw);
                   store(gb, k, db);
                 }
               });
}

// All three gradients of rows with the same affine parameters in one pass. The rows are cut into
// parts, whose partial sums are added in order. run(first row, how many, scratch, sums for gw and
// gb)
template <class T, class F> void gradients_in_parts(const RowNorm& s, T* gw, T* gb, F&& run) {
  const int64_t n = s.channels;
  const int64_t parts =
      std::clamp<int64_t>(s.rows * n / 16384, 1, std::min<int64_t>(16, s.rows / 16));
  const int64_t rows = (s.rows + parts - 1) / parts;
  const Scratch<double> sums(2 * n * parts);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    const Scratch<T> part(2 * n);
    for (int64_t p = begin; p < end; ++p) {
      double* sum = sums.data() + 2 * n * p;
      std::fill_n(sum, 2 * n, 0.0);
      const int64_t first = std::min(s.rows, p * rows);
      run(first, std::min(rows, s.rows - first), part.data(), sum, sum + n);
    }
  });
  double* total = sums.data();
  for (int64_t p = 1; p < parts; ++p) {
    const double* sum = total + 2 * n * p;
    for (int64_t i = 0; i < 2 * n; ++i) total[i] += sum[i];
  }
  for (int64_t i = 0; gw && i < n; ++i) gw[i] = static_cast<T>(total[i]);
  for (int64_t i = 0; gb && i < n; ++i) gb[i] = static_cast<T>(total[n + i]);
}

bool can_fuse(const RowNorm& s) { return s.groups == 1 && s.spatial == 1 && s.rows >= 32; }

}  // namespace

template <class T>
void Norms<T>::row_norm_backward(const RowNorm& s, const T* g, const T* x, const T* mean,
                                 const T* rstd, const T* weight, T* gx, T* gw, T* gb) {
  if (gx && (gw || gb) && can_fuse(s)) {
    const int64_t n = s.channels;
    const bool streamed = streams_rows(s.rows, n, gx);
    return gradients_in_parts(
        s, gw, gb, [&](int64_t r, int64_t rows, T* part, double* sum_w, double* sum_b) {
          loops<T>().rows_backward(g + r * n, x + r * n, weight, rows, n, s.centered, mean + r,
                                   rstd + r, gx + r * n, part, sum_w, sum_b, streamed);
        });
  }
  if (gx) row_gradients(s, g, x, mean, rstd, weight, gx);
  if (gw || gb) affine_gradients(s, g, x, mean, rstd, gw, gb);
}

// ---- half precision: some rows at a time are converted to float32, in a buffer that caches hold

namespace {

constexpr int64_t kBuffered = 1 << 12;  // elements

// Elements of a half dtype, contiguous.
struct HalfRows {
  uint8_t dtype;
  char* data;

  static constexpr auto kFloat = static_cast<uint8_t>(DType::Float32);
  // Also prefetches what follows, which is read from memory while these rows are computed.
  void read(int64_t first, int64_t n, float* to) const {
    for (int64_t i = 0; i < n; i += 32) __builtin_prefetch(data + 2 * (first + n + i), 0, 2);
    cast_rows(kFloat, dtype, reinterpret_cast<char*>(to), 4, 0, data + 2 * first, 2, 0, n, 1);
  }
  void write(int64_t first, int64_t n, const float* from) const {
    cast_rows(dtype, kFloat, data + 2 * first, 2, 0, reinterpret_cast<const char*>(from), 4, 0, n,
              1);
  }
};
HalfRows half_rows(DType dtype, const void* data) {
  return {static_cast<uint8_t>(dtype), static_cast<char*>(const_cast<void*>(data))};
}

// f(first row, some rows, the group of the first), with which all of them are rows of that shape.
template <class F> void for_buffered_rows(const RowNorm& s, F&& f) {
  const int64_t n = s.channels * s.spatial;
  const int64_t some =
      s.groups == 1 ? std::clamp<int64_t>(kBuffered / std::max<int64_t>(n, 1), 1, s.rows) : 1;
  parallel_for((s.rows + some - 1) / some, grain_for(n * some), [&](int64_t begin, int64_t end) {
    RowNorm rows = s;
    rows.groups = 1;
    for (int64_t i = begin; i < end; ++i) {
      rows.rows = std::min(some, s.rows - i * some);
      f(i * some, rows, i * some % s.groups);
    }
  });
}

}  // namespace

void row_norm_halves(DType dtype, const RowNorm& s, const void* x, const float* weight,
                     const float* bias, void* y, float* mean, float* rstd) {
  const HalfRows from = half_rows(dtype, x), to = half_rows(dtype, y);
  const int64_t n = s.channels * s.spatial;
  for_buffered_rows(s, [&](int64_t first, const RowNorm& rows, int64_t group) {
    const int64_t all = rows.rows * n, channel = group * s.channels;
    const Scratch<float> buffer(2 * all);
    from.read(first * n, all, buffer.data());
    Norms<float>::row_norm(rows, buffer.data(), weight ? weight + channel : nullptr,
                           bias ? bias + channel : nullptr, buffer.data() + all, mean + first,
                           rstd + first);
    to.write(first * n, all, buffer.data() + all);
  });
}

bool row_norm_backward_halves(DType dtype, const RowNorm& s, const void* g, const void* x,
                              const float* mean, const float* rstd, const float* weight, void* gx,
                              float* gw, float* gb) {
  const HalfRows from_g = half_rows(dtype, g), from_x = half_rows(dtype, x),
                 to = half_rows(dtype, gx);
  const int64_t n = s.channels * s.spatial;
  // f(g, x, gx) of some rows
  const auto buffered_rows = [&](int64_t first, int64_t rows, auto&& f) {
    const int64_t all = rows * n;
    const Scratch<float> buffer(3 * all);
    float *buffered_g = buffer.data(), *buffered_x = buffered_g + all,
          *buffered_gx = buffered_x + all;
    from_g.read(first * n, all, buffered_g);
    from_x.read(first * n, all, buffered_x);
    f(buffered_g, buffered_x, buffered_gx);
    to.write(first * n, all, buffered_gx);
  };
  if (!gw && !gb) {
    for_buffered_rows(s, [&](int64_t first, const RowNorm& rows, int64_t group) {
      buffered_rows(first, rows.rows, [&](const float* a, const float* b, float* c) {
        row_gradients(rows, a, b, mean + first, rstd + first,
                      weight ? weight + group * s.channels : nullptr, c);
      });
    });
    return true;
  }
  if (!can_fuse(s)) return false;
  const int64_t some = std::clamp<int64_t>(4 * kBuffered / n / 4 * 4, 4, 32);
  gradients_in_parts<float>(
      s, gw, gb, [&](int64_t begin, int64_t count, float* part, double* sum_w, double* sum_b) {
        for (int64_t r = begin; r < begin + count; r += some) {
          const int64_t rows = std::min(some, begin + count - r);
          buffered_rows(r, rows, [&](const float* a, const float* b, float* c) {
            loops<float>().rows_backward(a, b, weight, rows, n, s.centered, mean + r, rstd + r, c,
                                         part, sum_w, sum_b, false);
          });
        }
      });
  return true;
}

namespace {

template <class T> T inverse_std(const BatchNorm& s, T var) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(var) + s.eps));
}

// Prefetches the beginning of a channel's next row: hardware prefetching does not follow the jump.
template <class T> void prefetch_row(const T* x, int64_t n) {
  constexpr int64_t most = 4096, line = 64 / sizeof(T);
  for (int64_t i = 0; i < std::min<int64_t>(n, most / sizeof(T)); i += line)
    __builtin_prefetch(x + i);
}

// The moments of a channel: those of its rows, merged in order (Chan et al., 1979).
template <class T>
void moments_of_channel(const BatchNorm& s, const T* x, int64_t c, T& mean_out, T& var_out) {
  const auto& f = loops<T>();
  const double n = static_cast<double>(s.spatial);
  double mean = 0, squares = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    const T* row = x + (b * s.channels + c) * s.spatial;
    if (b + 1 < s.batch) prefetch_row(row + s.channels * s.spatial, s.spatial);
    const double m = f.sum(row, s.spatial) / n, delta = m - mean;
    const double before = static_cast<double>(b);  // rows
    squares += f.squares(row, s.spatial, m) + delta * delta * (n * before / (before + 1));
    mean += delta / (before + 1);
  }
  mean_out = static_cast<T>(mean);
  var_out = static_cast<T>(squares / (n * static_cast<double>(s.batch)));
}

template <class T> void channel_moments(const BatchNorm& s, const T* x, T* mean, T* var) {
  parallel_for(s.channels, grain_for(s.batch * s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) moments_of_channel(s, x, c, mean[c], var[c]);
  });
}

template <class T> void column_moments(const BatchNorm& s, const T* x, T* mean, T* var) {
  const double count = static_cast<double>(s.batch);
  const auto& f = loops<T>();
  for_columns(s.channels, s.batch, [&](int64_t first, int64_t width) {
    double m[simd::kColumns], v[simd::kColumns];
    f.column_sums(x + first, s.batch, s.channels, width, m);
    for (int64_t i = 0; i < width; ++i) mean[first + i] = static_cast<T>(m[i] /= count);
    f.column_squares(x + first, s.batch, s.channels, width, m, v);
    for (int64_t i = 0; i < width; ++i) var[first + i] = static_cast<T>(v[i] / count);
  });
}

}  // namespace

template <class T>
void Norms<T>::batch_norm_training(const BatchNorm& s, const T* x, const T* weight, const T* bias,
                                   T* mean, T* var, T* invstd, T* y) {
  constexpr int64_t many = 16;  // channels that keep all threads busy
  if (s.spatial == 1 || s.channels < many) {
    if (s.spatial == 1) column_moments(s, x, mean, var);
    else channel_moments(s, x, mean, var);
    for (int64_t c = 0; c < s.channels; ++c) invstd[c] = inverse_std(s, var[c]);
    batch_norm(s, x, mean, invstd, weight, bias, y);
    return;
  }
  const auto& f = loops<T>();
  const bool streamed = streams_rows(s.batch * s.channels, s.spatial, y);
  parallel_for(s.channels, grain_for(s.batch * s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      moments_of_channel(s, x, c, mean[c], var[c]);
      invstd[c] = inverse_std(s, var[c]);
      // At once, while a cache may still have the channel, beginning with what was read last.
      for (int64_t b = s.batch; b-- > 0;) {
        const int64_t at = (b * s.channels + c) * s.spatial;
        f.scale_shift(x + at, s.spatial, mean[c], invstd[c] * (weight ? weight[c] : T(1)),
                      bias ? bias[c] : T(0), y + at, streamed);
      }
    }
  });
}

template <class T>
void Norms<T>::batch_norm(const BatchNorm& s, const T* x, const T* mean, const T* invstd,
                          const T* weight, const T* bias, T* y) {
  const auto& f = loops<T>();
  auto scale_of = [&](int64_t c) { return invstd[c] * (weight ? weight[c] : T(1)); };
  if (s.spatial == 1) {
    const int64_t n = s.channels;
    const Scratch<T> affine(2 * n);
    T *scale = affine.data(), *shift = scale + n;
    for (int64_t c = 0; c < n; ++c) {
      scale[c] = scale_of(c);
      shift[c] = bias ? bias[c] : T(0);
    }
    parallel_for(s.batch, grain_for(n), [&](int64_t begin, int64_t end) {
      f.column_affine(x + begin * n, end - begin, n, n, mean, scale, shift, y + begin * n);
    });
    return;
  }
  const bool streamed = streams_rows(s.batch * s.channels, s.spatial, y);
  parallel_for(s.batch * s.channels, grain_for(s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t c = k % s.channels;
      f.scale_shift(x + k * s.spatial, s.spatial, mean[c], scale_of(c), bias ? bias[c] : T(0),
                    y + k * s.spatial, streamed);
    }
  });
}

namespace {

// From the sums over a channel to the numbers of its gradient, scale * g - a - (x - mean) * c.
template <class T> struct ChannelGradient {
  T scale, a, c;

  ChannelGradient(double count, bool training, double invstd, double weight, double sum_g,
                  double sum_gx)
      : scale(static_cast<T>(weight * invstd)),
        a(static_cast<T>(training ? weight * invstd * sum_g / count : 0)),
        c(static_cast<T>(training ? weight * invstd * invstd * invstd * sum_gx / count : 0)) {}
};

}  // namespace

template <class T>
void Norms<T>::batch_norm_backward(const BatchNorm& s, bool training, const T* g, const T* x,
                                   const T* mean, const T* invstd, const T* weight, T* gx, T* gw,
                                   T* gb) {
  const double count = static_cast<double>(s.batch * s.spatial);
  const auto& f = loops<T>();
  auto weight_of = [&](int64_t c) { return weight ? static_cast<double>(weight[c]) : 1.0; };
  // sum_gx is the sum of g (x - mean), without invstd.
  auto finish = [&](int64_t c, double sum_g, double sum_gx) {
    if (gw) gw[c] = static_cast<T>(sum_gx * invstd[c]);
    if (gb) gb[c] = static_cast<T>(sum_g);
    return ChannelGradient<T>(count, training, invstd[c], weight_of(c), sum_g, sum_gx);
  };
  if (s.spatial == 1) {
    const int64_t n = s.channels;
    const Scratch<T> factors(3 * n);
    T *scale = factors.data(), *a = scale + n, *b = a + n;
    for_columns(n, s.batch, [&](int64_t first, int64_t width) {
      double sum_g[simd::kColumns], sum_gx[simd::kColumns];
      f.column_products(g + first, x + first, s.batch, n, width, mean + first, sum_g, sum_gx);
      for (int64_t i = 0; i < width; ++i) {
        const auto k = finish(first + i, sum_g[i], sum_gx[i]);
        scale[first + i] = k.scale;
        a[first + i] = k.a;
        b[first + i] = k.c;
      }
    });
    if (!gx) return;
    parallel_for(s.batch, grain_for(n), [&](int64_t begin, int64_t end) {
      f.column_gradient(g + begin * n, x + begin * n, end - begin, n, n, mean, scale, a, b,
                        gx + begin * n);
    });
    return;
  }
  const bool streamed = gx && streams_rows(s.batch * s.channels, s.spatial, gx);
  parallel_for(s.channels, grain_for(s.batch * s.spatial), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum_g = 0, sum_gx = 0, sums[2];
      for (int64_t b = 0; b < s.batch; ++b) {
        const int64_t at = (b * s.channels + c) * s.spatial;
        if (const int64_t next = at + s.channels * s.spatial; b + 1 < s.batch) {
          prefetch_row(g + next, s.spatial);
          prefetch_row(x + next, s.spatial);
        }
        f.products(g + at, nullptr, x + at, s.spatial, mean[c], sums);
        sum_g += sums[0];
        sum_gx += sums[1];
      }
      const auto k = finish(c, sum_g, sum_gx);
      if (!gx) continue;
      for (int64_t b = s.batch; b-- > 0;) {
        const int64_t at = (b * s.channels + c) * s.spatial;
        f.gradient(g + at, nullptr, x + at, s.spatial, mean[c], k.scale, k.a, k.c, gx + at,
                   streamed);
      }
    }
  });
}

template struct Norms<float>;
template struct Norms<double>;

}  // namespace taeda::cpu
