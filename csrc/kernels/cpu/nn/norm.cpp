#include "kernels/norm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/thread_pool.h"
#include "kernels/cpu/common/partial_sums.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/stream.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/nn/simd/norm.h"
#include "kernels/cpu/pointwise/pointwise.h"

namespace taeda::cpu {
namespace {

int64_t grain_for(int64_t work) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(work, 1)); }

template <class T> const auto& norm_loops() { return typed<T>(TAEDA_PICK(norm_kernels)); }

// Whether rows of n elements are written by non-temporal stores: then each begins at a cache line.
template <class T> bool streams_rows(int64_t rows, int64_t n, const T* y) {
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T));
  return bytes % 64 == 0 && is_streamed(rows * bytes) && reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

// Calls f(first, width) for blocks of columns that one call can sum.
template <class F> void for_columns(int64_t columns, int64_t rows, F&& f) {
  const int64_t width = std::clamp<int64_t>(columns, 1, simd::kColumns);
  parallel_each((columns + width - 1) / width, grain_for(width * rows),
                [&](int64_t i) { f(i * width, std::min(width, columns - i * width)); });
}

// Rows of an operand: of T itself, or of half precision, of which some at a time are converted in a
// buffer that caches hold.
template <class T> class Operand {
 public:
  Operand(DType dtype, const void* data)
      : dtype_(static_cast<uint8_t>(dtype)),
        data_(static_cast<char*>(const_cast<void*>(data))) {}
  bool direct() const { return dtype_ == kType; }
  // Where n elements from number `first` on are: in the buffer unless they are direct.
  T* at(int64_t first, T* buffer) const {
    return direct() ? reinterpret_cast<T*>(data_) + first : buffer;
  }
  // Also prefetches what follows, which is read from memory while these rows are computed.
  const T* read(int64_t first, int64_t n, T* buffer) const {
    if (direct()) return at(first, buffer);
    for (int64_t i = 0; i < n; i += 32) __builtin_prefetch(data_ + 2 * (first + n + i), 0, 2);
    cast_rows(kType, dtype_, reinterpret_cast<char*>(buffer), sizeof(T), 0, data_ + 2 * first, 2, 0,
              n, 1);
    return buffer;
  }
  void write(int64_t first, int64_t n, const T* from) const {
    if (direct()) return;
    cast_rows(dtype_, kType, data_ + 2 * first, 2, 0, reinterpret_cast<const char*>(from),
              sizeof(T), 0, n, 1);
  }

 private:
  static constexpr auto kType = static_cast<uint8_t>(DTypeOf<T>::value);
  uint8_t dtype_;
  char* data_;
};

// f(first row, how many, buffers of as many elements) for some rows at a time; `buffers`: how many.
template <class T, class F>
void in_blocks(int64_t begin, int64_t end, int64_t most, int64_t n, bool direct, int buffers,
               F&& f) {
  if (direct) return f(begin, end - begin, static_cast<T*>(nullptr));
  const Scratch<T> memory(buffers * most * n);
  for (int64_t r = begin; r < end; r += most) f(r, std::min(most, end - r), memory.data());
}
template <class T, class F> void for_rows(const RowNormShape& s, bool direct, int buffers, F&& f) {
  const int64_t n = s.channels * s.spatial;
  const int64_t most = std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1));
  parallel_for(s.rows, std::max(grain_for(n), most), [&](int64_t begin, int64_t end) {
    in_blocks<T>(begin, end, most, n, direct, buffers, f);
  });
}

template <class T> struct RowGradients {
  const RowNormShape& s;
  const Operand<T> g, x, gx;
  const T *mean, *rstd, *weight;
  T *gw, *gb;  // both or none
  const int64_t n = s.channels * s.spatial;
  const simd::NormLoops<T>& f = norm_loops<T>();

  // gx of each row by itself. Where weights are shared by `spatial` elements, the sums over those
  // give the weights' gradients too.
  void each_row() const {
    const bool by_channel = s.spatial != 1 && (weight || gw);
    const int64_t pieces = by_channel ? s.channels : 1, size = n / pieces;
    const Scratch<double> memory(2 * s.rows * pieces);
    double* const products = memory.data();
    for_rows<T>(s, g.direct(), 3, [&](int64_t begin, int64_t rows, T* buffer) {
      const T *gr = g.read(begin * n, rows * n, buffer),
              *xr = x.read(begin * n, rows * n, buffer + rows * n);
      T* to = gx.at(begin * n, buffer + 2 * rows * n);
      for (int64_t r = begin; r < begin + rows; ++r, gr += n, xr += n, to += n) {
        const T* w = weight ? weight + (r % s.groups) * s.channels : nullptr;
        const auto weight_of = [&](int64_t c) { return by_channel && w ? w[c] : T(1); };
        const double count = static_cast<double>(n), scale = rstd[r];
        double sums[2] = {0, 0}, *part = products + 2 * r * pieces;
        for (int64_t c = 0; c < pieces; ++c, part += 2) {
          f.products(gr + c * size, by_channel ? nullptr : w, xr + c * size, size, mean[r], part);
          for (int k = 0; k < 2; ++k) sums[k] += part[k] * weight_of(c);
        }
        const auto a = static_cast<T>(s.centered ? scale * sums[0] / count : 0),
                   b = static_cast<T>(scale * scale * scale * sums[1] / count);
        for (int64_t c = 0; c < pieces; ++c) {
          f.gradient(gr + c * size, by_channel ? nullptr : w, xr + c * size, size, mean[r],
                     rstd[r] * weight_of(c), a, b, to + c * size, false);
        }
      }
      gx.write(begin * n, rows * n, to - rows * n);
    });
    if (!gw || !by_channel) return;
    parallel_each(s.groups * s.channels, grain_for(s.rows / s.groups), [&](int64_t k) {
      double dw = 0, db = 0;
      for (int64_t r = k / s.channels; r < s.rows; r += s.groups) {
        const double* part = products + 2 * (r * s.channels + k % s.channels);
        db += part[0];
        dw += part[1] * rstd[r];
      }
      gw[k] = static_cast<T>(dw);
      gb[k] = static_cast<T>(db);
    });
  }

  // All three where each element of a row has a weight, in one pass. The rows are cut into parts,
  // whose partial sums are added in order.
  void in_parts() const {
    const bool streamed = gx.direct() && streams_rows(s.rows, n, gx.at(0, nullptr));
    const int64_t most = std::clamp<int64_t>(s.rows / (s.rows < 64 ? 8 : 16), 1, 16);
    // A power of two: of three parts, one of two threads would compute two.
    const auto parts = static_cast<int64_t>(
        std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(s.rows * n / 16384, 1, most))));
    const int64_t rows = (s.rows + parts - 1) / parts, all_sums = 2 * n * s.groups;
    const int64_t together =
        s.groups > 1 ? 1 : std::clamp<int64_t>(16384 / std::max<int64_t>(n, 1) / 4 * 4, 4, 32);
    const Scratch<double> sums(all_sums * parts);
    double* const total = sums.data();
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      const Scratch<T> part(2 * n);
      for (int64_t p = begin; p < end; ++p) {
        std::fill_n(total + p * all_sums, all_sums, 0.0);
        const auto run = [&](int64_t r, int64_t count, T* buffer) {
          const int64_t at = r * n, all = count * n;
          const T *gr = g.read(at, all, buffer), *xr = x.read(at, all, buffer + all);
          T* to = gx.at(at, buffer + 2 * all);
          double* sum = total + p * all_sums + r % s.groups * 2 * n;
          f.rows_backward(gr, xr, weight ? weight + r % s.groups * n : nullptr, count, n,
                          s.centered, mean + r, rstd + r, to, part.data(), sum, sum + n, streamed);
          gx.write(at, all, to);
        };
        in_blocks<T>(std::min(s.rows, p * rows), std::min(s.rows, (p + 1) * rows), together, n,
                     g.direct() && s.groups == 1, 3, run);
      }
    });
    if (parts > 1) add_parts(total, parts, all_sums, total);
    for (int64_t group = 0; group < s.groups; ++group) {
      const double* sum = total + group * 2 * n;
      std::transform(sum, sum + n, gw + group * n, [](double v) { return static_cast<T>(v); });
      std::transform(sum + n, sum + 2 * n, gb + group * n,
                     [](double v) { return static_cast<T>(v); });
    }
  }
};

// ---- batch norm ----

template <class T> T inverse_std(const BatchNormShape& s, T var) {
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
void moments_of_channel(const BatchNormShape& s, const T* x, int64_t c, T& mean_out, T& var_out) {
  const auto& f = norm_loops<T>();
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

// The moments of columns: those of runs of rows that a cache holds, merged in order.
template <class T>
void column_moments(const BatchNormShape& s, const T* x, T* mean, T* var, T* invstd) {
  const auto& f = norm_loops<T>();
  for_columns(s.channels, s.batch, [&](int64_t first, int64_t width) {
    double m[simd::kColumns], v[simd::kColumns], all_m[simd::kColumns] = {},
                                                 all_v[simd::kColumns] = {};
    const int64_t run = 16384 / width;
    for (int64_t begin = 0; begin < s.batch; begin += run) {
      const int64_t rows = std::min(run, s.batch - begin);
      const T* from = x + begin * s.channels + first;
      const double before = static_cast<double>(begin), n = static_cast<double>(rows);
      f.column_sums(from, rows, s.channels, width, m);
      for (int64_t i = 0; i < width; ++i) m[i] /= n;
      f.column_squares(from, rows, s.channels, width, m, v);
      for (int64_t i = 0; i < width; ++i) {
        const double delta = m[i] - all_m[i];
        all_m[i] += delta * (n / (before + n));
        all_v[i] += v[i] + delta * delta * (before * n / (before + n));
      }
    }
    for (int64_t i = 0; i < width; ++i) {
      mean[first + i] = static_cast<T>(all_m[i]);
      var[first + i] = static_cast<T>(all_v[i] / static_cast<double>(s.batch));
      invstd[first + i] = inverse_std(s, var[first + i]);
    }
  });
}

template <class T>
void normalize(const BatchNormShape& s, const T* x, const T* mean, const T* invstd, const T* weight,
               const T* bias, T* y) {
  const auto& f = norm_loops<T>();
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
  parallel_each(s.batch * s.channels, grain_for(s.spatial), [&](int64_t k) {
    const int64_t c = k % s.channels;
    f.scale_shift(x + k * s.spatial, s.spatial, mean[c], scale_of(c), bias ? bias[c] : T(0),
                  y + k * s.spatial, streamed);
  });
}

template <class T>
void batch_norm_training(const BatchNormShape& s, const T* x, const T* weight, const T* bias,
                         T* mean, T* var, T* invstd, T* y) {
  const auto& f = norm_loops<T>();
  const bool at_once = s.spatial != 1 && s.channels >= 16;  // which keep all threads busy
  const bool streamed = streams_rows(s.batch * s.channels, s.spatial, y);
  if (s.spatial == 1) column_moments(s, x, mean, var, invstd);
  else
    parallel_each(s.channels, grain_for(s.batch * s.spatial), [&](int64_t c) {
      moments_of_channel(s, x, c, mean[c], var[c]);
      invstd[c] = inverse_std(s, var[c]);
      // While a cache may still have the channel, beginning with what was read last.
      for (int64_t b = at_once ? s.batch : 0; b-- > 0;) {
        const int64_t at = (b * s.channels + c) * s.spatial;
        f.scale_shift(x + at, s.spatial, mean[c], invstd[c] * (weight ? weight[c] : T(1)),
                      bias ? bias[c] : T(0), y + at, streamed);
      }
    });
  if (!at_once) normalize(s, x, mean, invstd, weight, bias, y);
}

template <class T>
void batch_norm(const BatchNormShape& s, const T* x, const T* mean, const T* var, const T* weight,
                const T* bias, T* invstd, T* y) {
  for (int64_t c = 0; c < s.channels; ++c) invstd[c] = inverse_std(s, var[c]);
  normalize(s, x, mean, invstd, weight, bias, y);
}

template <class T>
void update_running(int64_t channels, double momentum, double factor, const T* value, T* running) {
  for (int64_t c = 0; c < channels; ++c) {
    const T v = static_cast<T>(value[c] * factor);
    running[c] = static_cast<T>((1 - momentum) * running[c] + momentum * v);
  }
}

template <class T>
void batch_norm_backward(const BatchNormShape& s, bool training, const T* g, const T* x,
                         const T* mean, const T* invstd, const T* weight, T* gx, T* gw, T* gb) {
  const double count = static_cast<double>(s.batch * s.spatial);
  const auto& f = norm_loops<T>();
  // From the sums over a channel, sum_gx that of g (x - mean), to the numbers of its gradient,
  // scale * g - a - (x - mean) * b.
  auto finish = [&](int64_t c, double sum_g, double sum_gx) {
    const double inverse = invstd[c], scale = inverse * (weight ? weight[c] : T(1));
    if (gw) gw[c] = static_cast<T>(sum_gx * inverse);
    if (gb) gb[c] = static_cast<T>(sum_g);
    const double a = training ? scale * sum_g / count : 0,
                 b = training ? scale * inverse * inverse * sum_gx / count : 0;
    return std::array{static_cast<T>(scale), static_cast<T>(a), static_cast<T>(b)};
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
        scale[first + i] = k[0];
        a[first + i] = k[1];
        b[first + i] = k[2];
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
  parallel_each(s.channels, grain_for(s.batch * s.spatial), [&](int64_t c) {
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
    const auto [scale, a, k] = finish(c, sum_g, sum_gx);
    if (!gx) return;
    for (int64_t b = s.batch; b-- > 0;) {
      const int64_t at = (b * s.channels + c) * s.spatial;
      f.gradient(g + at, nullptr, x + at, s.spatial, mean[c], scale, a, k, gx + at, streamed);
    }
  });
}

// ---- group norm of channels_last ----
// An image is a batch of positions, whose channels' sums are put together by groups.

// f(image, its groups' number g, channels [first, last)) for the groups of an image.
template <class F> void each_group(const RowNormShape& s, int64_t image, F&& f) {
  for (int64_t g = 0; g < s.groups; ++g)
    f(image * s.groups + g, g * s.channels, (g + 1) * s.channels);
}

template <class T>
void image_norm(const RowNormShape& s, const Operand<T>& x, const T* weight, const T* bias,
                const Operand<T>& y, T* mean, T* rstd) {
  const BatchNormShape image{s.spatial, s.groups * s.channels, 1, s.eps};
  const int64_t channels = image.channels, size = s.spatial * channels;
  const double count = static_cast<double>(s.channels);
  parallel_each(s.rows / s.groups, grain_for(size), [&](int64_t i) {
    const Scratch<T> buffer(x.direct() ? 0 : 2 * size), moments(3 * channels);
    T *m = moments.data(), *var = m + channels, *inverse = var + channels;
    const T* from = x.read(i * size, size, buffer.data());
    T* to = y.at(i * size, buffer.data() + size);
    column_moments(image, from, m, var, inverse);
    each_group(s, i, [&](int64_t row, int64_t first, int64_t last) {
      const double center = std::accumulate(m + first, m + last, 0.0) / count;
      double squares = 0;
      for (int64_t c = first; c < last; ++c)
        squares += static_cast<double>(var[c]) + (m[c] - center) * (m[c] - center);
      mean[row] = static_cast<T>(center);
      rstd[row] = static_cast<T>(1 / std::sqrt(squares / count + s.eps));
      std::fill(m + first, m + last, mean[row]);
      std::fill(inverse + first, inverse + last, rstd[row]);
    });
    normalize(image, from, m, inverse, weight, bias, to);
    y.write(i * size, size, to);
  });
}

template <class T>
void image_norm_backward(const RowNormShape& s, const Operand<T>& g, const Operand<T>& x,
                         const T* mean, const T* rstd, const T* weight, const Operand<T>& gx, T* gw,
                         T* gb) {
  const int64_t channels = s.groups * s.channels, size = s.spatial * channels;
  const int64_t images = s.rows / s.groups;
  const double count = static_cast<double>(s.channels * s.spatial);
  const auto& f = norm_loops<T>();
  const Scratch<double> sums(2 * channels * images);  // of g, and of g (x - mean) rstd
  parallel_each(images, grain_for(size), [&](int64_t i) {
    const Scratch<T> buffer(g.direct() ? 0 : 3 * size), factors(4 * channels);
    T *m = factors.data(), *scale = m + channels, *a = scale + channels, *b = a + channels;
    const T *from_g = g.read(i * size, size, buffer.data()),
            *from_x = x.read(i * size, size, buffer.data() + size);
    T* to = gx.at(i * size, buffer.data() + 2 * size);
    double *sum_g = sums.data() + 2 * i * channels, *sum_gx = sum_g + channels;
    each_group(s, i, [&](int64_t row, int64_t first, int64_t last) {
      std::fill(m + first, m + last, mean[row]);
    });
    for_columns(channels, s.spatial, [&](int64_t c, int64_t width) {
      f.column_products(from_g + c, from_x + c, s.spatial, channels, width, m + c, sum_g + c,
                        sum_gx + c);
    });
    each_group(s, i, [&](int64_t row, int64_t first, int64_t last) {
      const double inverse = rstd[row];
      double all_g = 0, all_gx = 0;
      for (int64_t c = first; c < last; ++c) {
        const T w = weight ? weight[c] : T(1);
        scale[c] = rstd[row] * w;
        all_g += sum_g[c] * w;
        all_gx += (sum_gx[c] *= inverse) * w;
      }
      std::fill(a + first, a + last, static_cast<T>(inverse * all_g / count));
      std::fill(b + first, b + last, static_cast<T>(inverse * inverse * all_gx / count));
    });
    parallel_for(s.spatial, grain_for(channels), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * channels;
      f.column_gradient(from_g + at, from_x + at, end - begin, channels, channels, m, scale, a, b,
                        to + at);
    });
    gx.write(i * size, size, to);
  });
  if (!gw) return;
  add_parts(sums.data(), images, 2 * channels, sums.data());
  std::copy_n(sums.data(), channels, gb);
  std::copy_n(sums.data() + channels, channels, gw);
}

// ---- the norms of rows ----

template <class T>
void row_norm(const RowNormShape& s, DType dtype, const void* x, const T* weight, const T* bias,
              void* y, T* mean, T* rstd) {
  const int64_t n = s.channels * s.spatial;
  const Operand<T> from(dtype, x), to(dtype, y);
  if (s.channels_last) return image_norm(s, from, weight, bias, to, mean, rstd);
  const auto& f = norm_loops<T>();
  const bool streamed = from.direct() && streams_rows(s.rows, n, static_cast<T*>(y));
  for_rows<T>(s, from.direct(), 2, [&](int64_t begin, int64_t rows, T* buffer) {
    const T* xr = from.read(begin * n, rows * n, buffer);
    T* yr = to.at(begin * n, buffer + rows * n);
    for (int64_t r = begin; r < begin + rows; ++r, xr += n, yr += n) {
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
    to.write(begin * n, rows * n, yr - rows * n);
  });
}

template <class T>
void row_norm_backward(const RowNormShape& s, DType dtype, const void* g, const void* x,
                       const T* mean, const T* rstd, const T* weight, void* gx, T* gw, T* gb) {
  if (s.channels_last)
    return image_norm_backward(s, {dtype, g}, {dtype, x}, mean, rstd, weight, {dtype, gx}, gw, gb);
  const RowGradients<T> all{s, {dtype, g}, {dtype, x}, {dtype, gx}, mean, rstd, weight, gw, gb};
  if (gw && s.spatial == 1) all.in_parts();
  else all.each_row();
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(NormKernels, cpu::row_norm<T>, cpu::row_norm_backward<T>, true)
TAEDA_FLOAT_KERNELS(BatchNormKernels, cpu::batch_norm_training<T>, cpu::update_running<T>,
                    cpu::batch_norm<T>, cpu::batch_norm_backward<T>)

namespace taeda {
template <> const BatchNormKernels<Half> BatchNormKernels<Half>::cpu{};
template <> const BatchNormKernels<BFloat16> BatchNormKernels<BFloat16>::cpu{};
}  // namespace taeda
