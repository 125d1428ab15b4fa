// Fourier transforms. cuFFT has lines that lie one after the other, and blocks of whole trailing
// dimensions; lines along another dimension are brought into that order and back.
#include "kernels/fft.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/common/index.h"
#include "kernels/cuda/fft/cufft.h"
#include "kernels/cuda/tables.h"

namespace taeda::cuda {
namespace {

template <class T> __host__ __device__ Complex<T>* as_complex(T* p) {
  return reinterpret_cast<Complex<T>*>(p);
}
template <class T> __host__ __device__ const Complex<T>* as_complex(const T* p) {
  return reinterpret_cast<const Complex<T>*>(p);
}
template <class T> __device__ T times(T v, T scale) { return v * scale; }
template <class T> __device__ Complex<T> times(Complex<T> v, T scale) {
  return Complex<T>(v.re * scale, v.im * scale);
}

// Signals of one element are their own transforms.
template <class T> void copy_signals(FftKind kind, int64_t n, const T* in, T* out) {
  const bool from_real = kind == FftKind::FromReal, to_real = kind == FftKind::ToReal;
  each(n, [=] __device__(int64_t i) {
    const Complex<T> v = from_real ? Complex<T>(in[i]) : as_complex(in)[i];
    if (to_real) out[i] = v.re;
    else as_complex(out)[i] = v;
  });
}
template <class T>
void transform(FftKind kind, bool forward, const FftBlock& block, const T* in, T* out) {
  const bool is_one = std::all_of(block.n, block.n + block.rank, [](int64_t n) { return n == 1; });
  if (is_one) return copy_signals(kind, block.batch, in, out);
  transform_by_cufft({kind, same_type<T, double>, forward, block, in, out});
}

template <class S, class T> void multiply(int64_t n, T scale, S* x) {
  if (scale == T(1)) return;
  each(n, [=] __device__(int64_t i) { x[i] = times(x[i], scale); });
}

// y (batch, columns, rows) = x (batch, rows, columns) * scale, by tiles of shared memory.
constexpr int kTile = 32, kHigh = 8;
template <class S, class T>
__global__ void transpose_tiles(int64_t rows, int64_t columns, int64_t across, T scale, const S* x,
                                S* y) {
  __shared__ S tile[kTile][kTile + 1];
  const int64_t row = blockIdx.x / across * kTile, column = blockIdx.x % across * kTile;
  x += blockIdx.y * rows * columns;
  y += blockIdx.y * rows * columns;
  const int lane = threadIdx.x % kTile;
  for (int i = threadIdx.x / kTile; i < kTile; i += kHigh) {
    if (row + i >= rows || column + lane >= columns) continue;
    tile[i][lane] = times(x[(row + i) * columns + column + lane], scale);
  }
  __syncthreads();
  for (int i = threadIdx.x / kTile; i < kTile; i += kHigh) {
    if (column + i >= columns || row + lane >= rows) continue;
    y[(column + i) * rows + row + lane] = tile[lane][i];
  }
}
template <class T>
void transpose(int64_t batch, int64_t rows, int64_t columns, T scale, const T* x, T* y) {
  const int64_t across = (columns + kTile - 1) / kTile, down = (rows + kTile - 1) / kTile;
  if (across * down >= kMostElements) missing_kernel();
  constexpr int64_t most = 65535;  // blocks in the second dimension of a grid
  const int64_t size = 2 * rows * columns;
  for (int64_t first = 0; first < batch; first += most) {
    const dim3 grid(static_cast<unsigned>(across * down),
                    static_cast<unsigned>(std::min(most, batch - first)));
    launch(transpose_tiles<Complex<T>, T>, grid, kTile * kHigh, 0, rows, columns, across, scale,
           as_complex(x + first * size), as_complex(y + first * size));
  }
}

template <class T> void complex(const FftShape& s, bool forward, T scale, const T* in, T* out) {
  const FftBlock lines{1, s.outer * s.inner, {s.n}};
  if (s.inner == 1) {
    transform(FftKind::Complex, forward, lines, in, out);
    return multiply(lines.batch * s.n, scale, as_complex(out));
  }
  const Workspace memory(static_cast<size_t>(lines.batch * s.n) * sizeof(Complex<T>));
  T* between = memory.as<T>();
  transpose(s.outer, s.n, s.inner, T(1), in, between);
  transform(FftKind::Complex, forward, lines, between, between);
  transpose(s.outer, s.inner, s.n, scale, between, out);
}

template <class T>
void complex_block(const FftBlock& b, bool forward, T scale, const T* in, T* out) {
  transform(FftKind::Complex, forward, b, in, out);
  int64_t n = b.batch;
  for (int d = 0; d < b.rank; ++d) n *= b.n[d];
  multiply(n, scale, as_complex(out));
}

// ---- from real numbers ----
// Real lines of (outer, n, inner), one after the other.
template <class T> void gather_lines(const FftShape& given, const T* in, T* lines) {
  const FftShape s = given;
  const Divisor by_n(s.n), by_inner(s.inner);
  each(s.outer * s.n * s.inner, [=] __device__(int64_t i) {
    T* to = lines + i;
    const int64_t k = by_n.divide(i), r = by_inner.divide(i);
    *to = in[(i * s.n + k) * s.inner + r];
  });
}
// From the lines' halves to (outer, `kept`, inner).
template <class T>
void spread_halves(const FftShape& given, int64_t kept, T scale, const T* lines, T* out) {
  const FftShape s = given;
  const int64_t half = s.n / 2 + 1;
  const Complex<T>* from = as_complex(lines);
  Complex<T>* to = as_complex(out);
  const Divisor by_inner(s.inner), by_kept(kept);
  each(s.outer * kept * s.inner, [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t r = by_inner.divide(i), k = by_kept.divide(i);
    const int64_t line = (i * s.inner + r) * half;
    const Complex<T> v = k < half ? from[line + k] : portable::conj(from[line + s.n - k]);
    to[own] = times(v, scale);
  });
}
template <class T> bool is_aligned_for_complex(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % (2 * sizeof(T)) == 0;
}

template <class T> void real(const FftShape& s, bool half, T scale, const T* in, T* out) {
  const int64_t lines = s.outer * s.inner, kept = half ? s.n / 2 + 1 : s.n;
  const bool is_direct = s.inner == 1 && half, copies = s.inner > 1 || !is_aligned_for_complex(in);
  const Workspace signals(static_cast<size_t>(copies ? lines * s.n : 0) * sizeof(T)),
      halves(static_cast<size_t>(is_direct ? 0 : lines * (s.n / 2 + 1)) * sizeof(Complex<T>));
  if (copies) gather_lines(s, in, signals.as<T>());
  T* to = is_direct ? out : halves.as<T>();
  transform(FftKind::FromReal, true, {1, lines, {s.n}}, copies ? signals.as<T>() : in, to);
  if (is_direct) multiply(lines * kept, scale, as_complex(out));
  else spread_halves(s, kept, scale, to, out);
}

template <class T> void real_block(const FftBlock& b, T scale, const T* in, T* out) {
  const int last = b.rank - 1;
  int64_t lines = b.batch;
  for (int d = 0; d < last; ++d) lines *= b.n[d];
  if (b.n[last] == 1 || !is_aligned_for_complex(in)) {
    real({lines, b.n[last], 1}, true, T(1), in, out);
    int64_t inner = b.n[last] / 2 + 1;
    for (int d = last; d-- > 0; inner *= b.n[d]) {
      lines /= b.n[d];
      complex({lines, b.n[d], inner}, true, d == 0 ? scale : T(1), out, out);
    }
    return;
  }
  transform(FftKind::FromReal, true, b, in, out);
  multiply(lines * (b.n[last] / 2 + 1), scale, as_complex(out));
}

// ---- to real numbers ----
// Lines of halves, one after the other, whose first and last elements are real where a real
// signal's are.
template <class T> void gather_halves(const FftShape& given, const T* in, T* lines) {
  const FftShape s = given;
  const int64_t half = s.n / 2 + 1;
  const Complex<T>* from = as_complex(in);
  Complex<T>* to = as_complex(lines);
  const Divisor by_half(half), by_inner(s.inner);
  each(s.outer * half * s.inner, [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t k = by_half.divide(i), r = by_inner.divide(i);
    const Complex<T> v = from[(i * half + k) * s.inner + r];
    to[own] = k == 0 || 2 * k == s.n ? Complex<T>(v.re) : v;
  });
}
template <class T> void spread_lines(const FftShape& given, T scale, const T* lines, T* out) {
  const FftShape s = given;
  const Divisor by_inner(s.inner), by_n(s.n);
  each(s.outer * s.n * s.inner, [=] __device__(int64_t i) {
    const int64_t own = i;
    const int64_t r = by_inner.divide(i), k = by_n.divide(i);
    out[own] = lines[(i * s.inner + r) * s.n + k] * scale;
  });
}
template <class T> void to_real(const FftShape& s, T scale, const T* in, T* out) {
  const int64_t lines = s.outer * s.inner;
  const bool is_direct = s.inner == 1 && is_aligned_for_complex(out);
  const Workspace halves(static_cast<size_t>(lines * (s.n / 2 + 1)) * sizeof(Complex<T>)),
      signals(static_cast<size_t>(is_direct ? 0 : lines * s.n) * sizeof(T));
  gather_halves(s, in, halves.as<T>());
  T* to = is_direct ? out : signals.as<T>();
  transform(FftKind::ToReal, false, {1, lines, {s.n}}, halves.as<T>(), to);
  if (is_direct) multiply(lines * s.n, scale, out);
  else spread_lines(s, scale, to, out);
}

template <class T>
const FftKernels<T> table{complex<T>, real<T>, to_real<T>, complex_block<T>, real_block<T>};

}  // namespace

void add_fft_tables(std::vector<DeviceTable>& to) {
  to.insert(to.end(), {device_table(table<float>), device_table(table<double>)});
}

}  // namespace taeda::cuda
