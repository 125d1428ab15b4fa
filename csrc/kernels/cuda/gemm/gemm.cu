// Matrix products by cuBLASLt, and where that is absent or has no kernel (integers) in tiles: a
// block computes 64 x 64 elements of the result from panels in shared memory, each thread 4 x 4 of
// them in registers. For every type, transposition and stride.
#include "kernels/cuda/gemm/gemm.h"

#include "kernels/cuda/common/convert.h"
#include "kernels/cuda/gemm/cublas.h"
#include "kernels/cuda/tables.h"

namespace taeda::cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kOwn = 4,
              kSide = kTile / kOwn;  // a block of kSide^2 threads

// How functors lay out what the interface calls T, and what its products are summed in.
template <class T> struct Layout {
  using Stored = T;
  using Sum = std::conditional_t<is_half_type<T>, float, T>;
};
template <class R> struct Layout<std::complex<R>> {
  using Stored = Complex<R>;
  using Sum = Complex<R>;
};

template <class S> struct Operand {
  const S* data;
  int64_t step;  // from one matrix of the batch to the next
  int64_t row_stride, column_stride;
  bool conjugate;

  template <class A> __device__ A at(int64_t row, int64_t column) const {
    const A v = convert<A>(data[row * row_stride + column * column_stride]);
    if constexpr (is_complex<A>) return conjugate ? portable::conj(v) : v;
    else return v;
  }
};
template <class T> Operand<typename Layout<T>::Stored> operand(MatrixRef<T> m, int64_t step) {
  const bool plain = m.trans == Trans::No;
  return {reinterpret_cast<const typename Layout<T>::Stored*>(m.data), step, plain ? m.stride : 1,
          plain ? 1 : m.stride, m.trans == Trans::Conj};
}

template <class S, class A, class C> struct Product {
  int64_t m, n, k;
  A alpha, beta;
  bool adds;  // beta is not 0
  Operand<S> a, b;
  const C* start;  // added to every row; or null
  C* c;
  int64_t ldc, c_step;
};

template <class A> __device__ A times_plus(A a, A b, A c) {
  if constexpr (is_integer<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
                          static_cast<uint64_t>(c));
  else return a * b + c;
}

// The panel of op(x) whose first element is (row, column), zeros outside of rows x columns.
template <bool Transposed, class A, class S>
__device__ void load_panel(A (*panel)[kTile + 1], const Operand<S>& x, int64_t row, int64_t column,
                           int64_t rows, int64_t columns) {
  // Neighbouring threads read neighbouring memory.
  const bool down = (x.row_stride == 1) != Transposed;
  for (int i = threadIdx.x; i < kTile * kDepth; i += kSide * kSide) {
    const int depth = down ? i / kTile : i % kDepth, tile = down ? i % kTile : i / kDepth;
    const int64_t r = row + (Transposed ? depth : tile), c = column + (Transposed ? tile : depth);
    panel[depth][tile] = r < rows && c < columns ? x.template at<A>(r, c) : A(0);
  }
}

template <class S, class A, class C>
__global__ void multiply(const __grid_constant__ Product<S, A, C> given, int64_t tiles_across) {
  __shared__ A left[kDepth][kTile + 1];
  __shared__ A right[kDepth][kTile + 1];
  Product<S, A, C> p = given;
  p.a.data += blockIdx.z * p.a.step;
  p.b.data += blockIdx.z * p.b.step;
  p.c += blockIdx.z * p.c_step;
  const int64_t row = blockIdx.x / tiles_across * kTile, column = blockIdx.x % tiles_across * kTile;
  const int own_row = threadIdx.x / kSide, own_column = threadIdx.x % kSide;
  A sums[kOwn][kOwn];
  for (int i = 0; i < kOwn; ++i)
    for (int j = 0; j < kOwn; ++j) sums[i][j] = A(0);
  for (int64_t first = 0; first < p.k; first += kDepth) {
    load_panel<false>(left, p.a, row, first, p.m, p.k);
    load_panel<true>(right, p.b, first, column, p.k, p.n);
    __syncthreads();
    for (int d = 0; d < kDepth; ++d) {
      for (int i = 0; i < kOwn; ++i)
        for (int j = 0; j < kOwn; ++j)
          sums[i][j] = times_plus(left[d][own_row + i * kSide], right[d][own_column + j * kSide],
                                  sums[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      const int64_t r = row + own_row + i * kSide, c = column + own_column + j * kSide;
      if (r >= p.m || c >= p.n) continue;
      C* to = p.c + r * p.ldc + c;
      A v = p.alpha * sums[i][j];
      if (p.start) v = v + convert<A>(p.start[c]);
      if (p.adds) v = v + p.beta * convert<A>(*to);
      *to = convert<C>(v);
    }
  }
}

template <class S, class A, class C> void run(int64_t batch, const Product<S, A, C>& p) {
  if (p.m == 0 || p.n == 0) return;
  const int64_t across = (p.n + kTile - 1) / kTile, down = (p.m + kTile - 1) / kTile;
  constexpr int64_t most = 65535;  // blocks in the third dimension of a grid
  for (int64_t first = 0; first < batch; first += most) {
    Product<S, A, C> part = p;
    part.a.data += first * p.a.step;
    part.b.data += first * p.b.step;
    part.c += first * p.c_step;
    const dim3 grid(static_cast<unsigned>(across * down), 1,
                    static_cast<unsigned>(std::min(most, batch - first)));
    launch(multiply<S, A, C>, grid, kSide * kSide, 0, part, across);
  }
}

template <class T> struct Gemm {
  using Given = GemmOut<T>;
  using S = typename Layout<T>::Stored;
  using A = typename Layout<T>::Sum;
  static A number(Given v) { return std::bit_cast<A>(v); }

  // Out: T, or Given.
  template <class Out>
  static void product(int64_t batch, int64_t m, int64_t n, int64_t k, Given alpha, MatrixRef<T> a,
                      int64_t a_step, MatrixRef<T> b, int64_t b_step, Given beta, Out* c,
                      int64_t ldc, int64_t c_step, const Out* start) {
    if (multiply_by_cublas({dtype_of<T>,
                            dtype_of<Out>,
                            batch,
                            m,
                            n,
                            k,
                            {a.data, a.stride, a_step, a.trans},
                            {b.data, b.stride, b_step, b.trans},
                            c,
                            ldc,
                            c_step,
                            &alpha,
                            &beta,
                            start}))
      return;
    using C = typename Layout<Out>::Stored;
    run<S, A, C>(batch, {m, n, k, number(alpha), number(beta), beta != Given(0), operand(a, a_step),
                         operand(b, b_step), reinterpret_cast<const C*>(start),
                         reinterpret_cast<C*>(c), ldc, c_step});
  }

  static void batched(int64_t batch, int64_t m, int64_t n, int64_t k, Given alpha, MatrixRef<T> a,
                      int64_t a_step, MatrixRef<T> b, int64_t b_step, Given beta, Given* c,
                      int64_t ldc, int64_t c_step) {
    product<Given>(batch, m, n, k, alpha, a, a_step, b, b_step, beta, c, ldc, c_step, nullptr);
  }
  static void gemm(int64_t m, int64_t n, int64_t k, Given alpha, MatrixRef<T> a, MatrixRef<T> b,
                   Given beta, Given* c, int64_t ldc) {
    product<Given>(1, m, n, k, alpha, a, 0, b, 0, beta, c, ldc, 0, nullptr);
  }
  static void onto(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
                   T* c, int64_t ldc) {
    product<T>(1, m, n, k, Given(1), a, 0, b, 0, Given(0), c, ldc, 0, start);
  }
};

template <class T> constexpr GemmKernels<T> make_table() {
  if constexpr (is_half_type<T>)
    return {Gemm<T>::gemm, Gemm<T>::batched, {}, Gemm<T>::template product<T>};
  else return {Gemm<T>::gemm, Gemm<T>::batched, Gemm<T>::onto, {}};
}

template <class T>
void integer_batched(int64_t batch, int64_t m, int64_t n, int64_t k, MatrixRef<T> a, int64_t a_step,
                     MatrixRef<T> b, int64_t b_step, T* c, int64_t ldc, int64_t c_step) {
  run<T, T, T>(batch, {m, n, k, T(1), T(0), false, operand(a, a_step), operand(b, b_step), nullptr,
                       c, ldc, c_step});
}

template <class T> const GemmKernels<T> gemm_table = make_table<T>();
template <class T> const IntegerGemmKernels<T> integer_table{integer_batched<T>};

template <class... T> void add_gemm(std::vector<DeviceTable>& to) {
  (to.push_back(device_table(gemm_table<T>)), ...);
}
template <class... T> void add_integer(std::vector<DeviceTable>& to) {
  (to.push_back(device_table(integer_table<T>)), ...);
}

}  // namespace

template <class T> const GemmKernels<T>& gemm_kernels() { return gemm_table<T>; }
template const GemmKernels<float>& gemm_kernels();
template const GemmKernels<double>& gemm_kernels();
template const GemmKernels<std::complex<float>>& gemm_kernels();
template const GemmKernels<std::complex<double>>& gemm_kernels();

void add_gemm_tables(std::vector<DeviceTable>& to) {
  add_gemm<float, double, std::complex<float>, std::complex<double>, Half, BFloat16>(to);
  add_integer<uint8_t, int8_t, int16_t, int32_t, int64_t>(to);
}

}  // namespace taeda::cuda
