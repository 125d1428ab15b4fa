// Running sums, products and extremes along the middle of (outer, n, inner).
//
// A group of threads scans one line, as many elements at a time as it has threads: partial results
// are combined over doubling distances (Hillis and Steele 1986), and what came before is carried
// along.
#include "kernels/cuda/common/convert.h"
#include "kernels/reduce.h"

namespace taeda::cuda {
namespace {

// What T is summed in.
template <class T> struct Accumulator {
  using type = T;
};
template <> struct Accumulator<float> {
  using type = double;
};
template <> struct Accumulator<Complex<float>> {
  using type = Complex<double>;
};
template <> struct Accumulator<Half> {
  using type = float;
};
template <> struct Accumulator<BFloat16> {
  using type = float;
};

template <class A> __device__ A log_add(A a, A b) {
  if constexpr (is_complex<A>) {
    const A most = a.re < b.re ? b : a, least = a.re < b.re ? a : b;
    if (most.re < 0 && portable::isinf(most.re)) return most;
    return most + portable::log(A(1) + portable::exp(least - most));
  } else {
    if (a != a || b != b) return a + b;
    const A most = a < b ? b : a, least = a < b ? a : b;
    return portable::isinf(most) ? most : most + portable::log1p(portable::exp(least - most));
  }
}

template <class T, Scan What> struct ScanOf {
  using Acc = typename Accumulator<T>::type;
  __device__ static Acc start() {
    if constexpr (What == Scan::Sum) return Acc(0);
    else if constexpr (What == Scan::Prod) return Acc(1);
    else return convert<Acc>(-portable::kInf);
  }
  __device__ static Acc read(T x, int64_t) { return convert<Acc>(x); }
  __device__ static Acc combine(Acc a, Acc b) {
    if constexpr (What == Scan::LogSumExp) return log_add(a, b);
    else if constexpr (is_integer<Acc>) {
      const auto u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
      return static_cast<Acc>(What == Scan::Sum ? u + v : u * v);
    } else return What == Scan::Sum ? a + b : a * b;
  }
  T* out;
  __device__ void write(int64_t at, Acc acc) const { out[at] = convert<T>(acc); }
};

// The latest of equal extremes; NaN stays.
template <class T, bool Largest> struct ExtremeSoFar {
  struct Acc {
    T value;
    int64_t index;  // negative: nothing seen yet
  };
  __device__ static Acc start() { return {T(), -1}; }
  __device__ static Acc read(T x, int64_t i) { return {x, i}; }
  __device__ static Acc combine(Acc a, Acc b) {
    if (a.index < 0 || b.index < 0) return a.index < 0 ? b : a;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool wins = Largest ? b.value >= a.value : b.value <= a.value;
    return b_nan || (wins && !a_nan) ? b : a;
  }
  T* values;
  int64_t* indices;
  __device__ void write(int64_t at, Acc acc) const {
    values[at] = acc.value;
    indices[at] = acc.index;
  }
};

template <class Op, class T>
__global__ void scan_lines(const __grid_constant__ ScanShape s, const T* x, Op op) {
  using Acc = typename Op::Acc;
  __shared__ Acc accs[kThreads];
  const int64_t line = int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
  const bool inside = line < s.outer * s.inner;
  const int64_t begin = line / s.inner * s.n * s.inner + line % s.inner;
  const unsigned width = blockDim.x, lane = threadIdx.x;
  Acc* own = accs + threadIdx.y * width;
  Acc before = Op::start();
  for (int64_t first = 0; first < s.n; first += width) {
    const int64_t i = first + lane, at = begin + i * s.inner;
    const bool here = inside && i < s.n;
    Acc acc = here ? Op::read(x[at], i) : Op::start();
    if (width > 1) {
      own[lane] = acc;
      __syncthreads();
      for (unsigned distance = 1; distance < width; distance *= 2) {
        const bool add = lane >= distance;
        const Acc other = add ? own[lane - distance] : acc;
        __syncthreads();
        if (add) own[lane] = acc = Op::combine(other, acc);
        __syncthreads();
      }
    }
    acc = Op::combine(before, acc);
    if (here) op.write(at, acc);
    if (width == 1) before = acc;
    else {
      before = Op::combine(before, own[width - 1]);
      __syncthreads();
    }
  }
}

template <class Op, class T> void run_scan(const ScanShape& s, const void* x, Op op) {
  const int64_t lines = s.outer * s.inner;
  if (lines == 0 || s.n == 0) return;
  unsigned width = 1;
  while (s.inner == 1 && width < kThreads && width < s.n) width *= 2;
  const unsigned per_block = kThreads / width;
  launch(scan_lines<Op, T>, static_cast<unsigned>((lines + per_block - 1) / per_block),
         dim3(width, per_block), 0, s, static_cast<const T*>(x), op);
}

template <class T> void scan_as(Scan what, const ScanShape& s, const void* x, void* y) {
  auto* out = static_cast<T*>(y);
  if (what == Scan::Sum) return run_scan<ScanOf<T, Scan::Sum>, T>(s, x, {out});
  if (what == Scan::Prod) return run_scan<ScanOf<T, Scan::Prod>, T>(s, x, {out});
  if constexpr (!is_integer<T>) return run_scan<ScanOf<T, Scan::LogSumExp>, T>(s, x, {out});
}

}  // namespace

void scan(Scan what, DType dtype, const ScanShape& s, const void* x, void* y) {
  if (dtype == DType::Complex64) return scan_as<Complex<float>>(what, s, x, y);
  if (dtype == DType::Complex128) return scan_as<Complex<double>>(what, s, x, y);
  visit_real(dtype, "cumsum", [&]<class T>(Tag<T>) {
    if constexpr (!same_type<T, bool>) scan_as<T>(what, s, x, y);
  });
}

void scan_extreme(bool largest, DType dtype, const ScanShape& s, const void* x, void* values,
                  int64_t* indices) {
  visit_real(dtype, "cummax", [&]<class E>(Tag<E>) {
    using T = std::conditional_t<same_type<E, bool>, uint8_t, E>;
    auto* v = static_cast<T*>(values);
    if (largest) run_scan<ExtremeSoFar<T, true>, T>(s, x, {v, indices});
    else run_scan<ExtremeSoFar<T, false>, T>(s, x, {v, indices});
  });
}

}  // namespace taeda::cuda
