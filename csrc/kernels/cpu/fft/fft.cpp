#include "kernels/fft.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/common/table.h"
#include "kernels/cpu/fft/fft_plan.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kGrain = 1 << 14;         // elements worth a chunk
constexpr int64_t kBlockBytes = 512 << 10;  // of buffers for batch-interleaved signals
constexpr int64_t kShort = 48;              // elements of a contiguous signal worth interleaving

// Some signals that are transformed together: element j of signal q is at start + j * step + q *
// lane.
struct Block {
  int64_t start, step, lane, width;
};

// How (outer, n, inner) is cut into blocks: neighbours along `inner`, or short contiguous signals,
// or one signal at a time.
class Blocks {
 public:
  Blocks(const FftShape& s, int64_t buffer, int64_t itemsize) : s_(s) {
    const int64_t fits = std::clamp<int64_t>(kBlockBytes / (4 * itemsize * buffer),
                                             64 / itemsize / 4, 256 / itemsize);
    along_ = s.inner == 1;
    const int64_t neighbours = along_ ? s.outer : s.inner;
    width_ = along_ && s.n > kShort ? 1 : std::min(fits, neighbours);
    per_outer_ = along_ ? 1 : (s.inner + width_ - 1) / width_;
    count_ = along_ ? (s.outer + width_ - 1) / width_ : s.outer * per_outer_;
  }
  int64_t count() const { return count_; }
  int64_t width() const { return width_; }
  // Block i of an array whose signals have n elements.
  Block at(int64_t i, int64_t n) const {
    if (along_) {
      const int64_t first = i * width_;
      return {first * n, 1, n, std::min(width_, s_.outer - first)};
    }
    const int64_t column = i % per_outer_ * width_;
    return {i / per_outer_ * n * s_.inner + column, s_.inner, 1,
            std::min(width_, s_.inner - column)};
  }

 private:
  FftShape s_;
  bool along_;
  int64_t width_, per_outer_, count_;
};

template <class T> void load_complex(const Block& b, int64_t n, const T* in, Parts<T> to) {
  if (b.width == 1 && b.step == 1) return fft_loops<T>().split(n, in + 2 * b.start, to.re, to.im);
  if (b.lane == 1) {
    for (int64_t j = 0; j < n; ++j) {
      fft_loops<T>().split(b.width, in + 2 * (b.start + j * b.step), to.re + j * b.width,
                           to.im + j * b.width);
    }
    return;
  }
  for (int64_t q = 0; q < b.width; ++q) {
    const T* signal = in + 2 * (b.start + q * b.lane);
    for (int64_t j = 0; j < n; ++j) {
      to.re[j * b.width + q] = signal[2 * j * b.step];
      to.im[j * b.width + q] = signal[2 * j * b.step + 1];
    }
  }
}
template <class T> void store_complex(const Block& b, int64_t n, Parts<T> from, T scale, T* out) {
  if (b.width == 1 && b.step == 1)
    return fft_loops<T>().join(n, from.re, from.im, scale, out + 2 * b.start);
  if (b.lane == 1) {
    for (int64_t j = 0; j < n; ++j) {
      fft_loops<T>().join(b.width, from.re + j * b.width, from.im + j * b.width, scale,
                          out + 2 * (b.start + j * b.step));
    }
    return;
  }
  for (int64_t q = 0; q < b.width; ++q) {
    T* signal = out + 2 * (b.start + q * b.lane);
    for (int64_t j = 0; j < n; ++j) {
      signal[2 * j * b.step] = from.re[j * b.width + q] * scale;
      signal[2 * j * b.step + 1] = from.im[j * b.width + q] * scale;
    }
  }
}

// Real elements first, first + stride, ... of each signal to and from rows of the block.
template <class T>
void load_real(const Block& b, int64_t n, int64_t first, int64_t stride, const T* in, T* to) {
  for (int64_t j = 0; j < n; ++j) {
    const T* row = in + b.start + (first + j * stride) * b.step;
    for (int64_t q = 0; q < b.width; ++q) to[j * b.width + q] = row[q * b.lane];
  }
}
template <class T>
void store_real(const Block& b, int64_t n, int64_t first, int64_t stride, const T* from, T scale,
                T* out) {
  for (int64_t j = 0; j < n; ++j) {
    T* row = out + b.start + (first + j * stride) * b.step;
    for (int64_t q = 0; q < b.width; ++q) row[q * b.lane] = from[j * b.width + q] * scale;
  }
}

// Two buffers of `size` elements, each with real and imaginary parts.
template <class T> class Buffers {
 public:
  explicit Buffers(int64_t size) : memory_(4 * size), size_(size) {}
  Parts<T> first() const { return {memory_.data(), memory_.data() + size_}; }
  Parts<T> second() const { return {memory_.data() + 2 * size_, memory_.data() + 3 * size_}; }
  Parts<T> other(const T* re) const { return re == first().re ? second() : first(); }

 private:
  Scratch<T> memory_;
  int64_t size_;
};

// Calls f(block index, buffers) for every block: blocks in parallel, or, where they are few, one
// after another with parallel passes.
template <class T, class F> void each_block(const Blocks& blocks, int64_t buffer, F&& f) {
  const int64_t size = buffer * blocks.width();
  auto range = [&](int64_t begin, int64_t end) {
    const Buffers<T> buffers(size);
    for (int64_t i = begin; i < end; ++i) f(i, buffers);
  };
  if (blocks.count() < 8 && size >= 4 * kGrain) range(0, blocks.count());
  else parallel_for(blocks.count(), kGrain / size, range);
}

// conj(X[k]) = X[n - k]: the upper half of a real signal's transform.
template <class T> void mirror(const FftShape& s, T* out) {
  const int64_t first = s.n / 2 + 1, row = s.inner * 2;
  if (first >= s.n) return;
  parallel_each(s.outer, kGrain / (s.n * s.inner), [&](int64_t o) {
    T* base = out + o * s.n * row;
    for (int64_t k = first; k < s.n; ++k) {
      const T* from = base + (s.n - k) * row;
      T* to = base + k * row;
      for (int64_t i = 0; i < row; i += 2) {
        to[i] = from[i];
        to[i + 1] = -from[i + 1];
      }
    }
  });
}

template <class T> void fft_complex(const FftShape& s, bool forward, T scale, const T* in, T* out) {
  const auto plan = fft_plan<T>(s.n);
  const Blocks blocks(s, plan->buffer(), sizeof(T));
  each_block<T>(blocks, plan->buffer(), [&](int64_t i, const Buffers<T>& buffers) {
    const Block b = blocks.at(i, s.n);
    Parts<T> data = buffers.first(), other = buffers.second();
    load_complex(b, s.n, in, forward ? data : data.swapped());
    const Parts<T> result = plan->run(b.width, data, other);
    store_complex(b, s.n, forward ? result : result.swapped(), scale, out);
  });
}

template <class T> void fft_real(const FftShape& s, bool half, T scale, const T* in, T* out) {
  const int64_t h = s.n / 2, rows = h + 1;
  const bool even = s.n % 2 == 0;
  const auto plan = fft_plan<T>(even ? h : s.n);
  const int64_t buffer = std::max(plan->buffer(), rows);
  const Blocks blocks(s, buffer, sizeof(T));
  each_block<T>(blocks, buffer, [&](int64_t i, const Buffers<T>& buffers) {
    const Block b = blocks.at(i, s.n), to = blocks.at(i, half ? rows : s.n);
    Parts<T> data = buffers.first(), other = buffers.second();
    if (!even) {
      load_real(b, s.n, 0, 1, in, data.re);
      std::fill_n(data.im, s.n * b.width, T(0));
      const Parts<T> result = plan->run(b.width, data, other);
      std::fill_n(result.im, b.width, T(0));
      store_complex(to, rows, result, scale, out);
      return;
    }
    if (b.width == 1 && b.step == 1) {
      fft_loops<T>().split(h, in + b.start, data.re, data.im);
    } else {
      load_real(b, h, 0, 2, in, data.re);
      load_real(b, h, 1, 2, in, data.im);
    }
    const Parts<T> z = plan->run(b.width, data, other), x = buffers.other(z.re);
    fft_loops<T>().real_after(h, b.width, plan->half_twiddles(), z.re, z.im, x.re, x.im);
    store_complex(to, rows, x, scale, out);
  });
  if (!half) mirror(s, out);
}

template <class T> void fft_to_real(const FftShape& s, T scale, const T* in, T* out) {
  const int64_t h = s.n / 2, rows = h + 1;
  const bool even = s.n % 2 == 0;
  const auto plan = fft_plan<T>(even ? h : s.n);
  const int64_t buffer = std::max(plan->buffer(), rows);
  const Blocks blocks(s, buffer, sizeof(T));
  each_block<T>(blocks, buffer, [&](int64_t i, const Buffers<T>& buffers) {
    const Block from = blocks.at(i, rows), b = blocks.at(i, s.n);
    Parts<T> data = buffers.first(), other = buffers.second();
    load_complex(from, rows, in, data);
    if (even) {
      fft_loops<T>().real_before(h, b.width, plan->half_twiddles(), data.re, data.im, other.re,
                                 other.im);
      const Parts<T> z = plan->run(b.width, other.swapped(), data.swapped()).swapped();
      if (b.width == 1 && b.step == 1) {
        fft_loops<T>().join(h, z.re, z.im, scale, out + b.start);
      } else {
        store_real(b, h, 0, 2, z.re, scale, out);
        store_real(b, h, 1, 2, z.im, scale, out);
      }
      return;
    }
    std::fill_n(data.im, b.width, T(0));
    for (int64_t k = rows; k < s.n; ++k) {
      for (int64_t q = 0; q < b.width; ++q) {
        data.re[k * b.width + q] = data.re[(s.n - k) * b.width + q];
        data.im[k * b.width + q] = -data.im[(s.n - k) * b.width + q];
      }
    }
    store_real(b, s.n, 0, 1, plan->run(b.width, data.swapped(), other.swapped()).im, scale, out);
  });
}

}  // namespace
}  // namespace taeda::cpu

TAEDA_FLOAT_KERNELS(FftKernels, cpu::fft_complex<T>, cpu::fft_real<T>, cpu::fft_to_real<T>, nullptr,
                    nullptr)
