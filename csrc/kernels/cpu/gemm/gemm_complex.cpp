// A complex matrix in memory is a real one of twice the columns, re im re im. So
//   a b = real(a) [b_0; i b_0; b_1; i b_1; ...], of which b_p are the rows of b,
// with the results where they belong: only b is copied, and multiplied by alpha on the way.
#include "kernels/cpu/gemm/gemm_packed.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 1024;        // rows and columns of b that are copied at a time
constexpr int64_t kElements = 1 << 15;  // that are worth another thread
constexpr int64_t kFew = 128;           // rows or columns whose results are worth transposing

template <class R> const R* real_part(const std::complex<R>* x) {
  return reinterpret_cast<const R*>(x);
}

// The right side that a's real matrix is multiplied by, of alpha op(b) (k x n).
template <class R>
MatrixRef<R> expand(MatrixRef<std::complex<R>> b, int64_t k, int64_t n, std::complex<R> alpha,
                    std::complex<R>* to) {
  const bool transposed = b.trans != Trans::No;
  const int64_t rows = transposed ? n : k, cols = transposed ? k : n;
  // Of the transpose, rows are to be conjugated: a pair of the sum is a real and an imaginary part.
  const bool conjugate = b.trans == Trans::Yes;
  if (transposed) alpha = std::conj(alpha);
  parallel_for(rows, ceil_div(kElements, cols), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      product_kernels<std::complex<R>>().expand(cols, b.data + i * b.stride, alpha, conjugate,
                                                to + 2 * i * cols);
    }
  });
  return {real_part(to), 2 * cols, transposed ? Trans::Yes : Trans::No};
}

// c = beta * what is added: then the sums are added to that.
template <class T> void start(const Product<T>& x) {
  for (int64_t i = 0; i < x.m; ++i) {
    const auto e = x.epilogue.at(i, 0);
    for (int64_t j = 0; j < x.n; ++j) x.c[i * x.ldc + j] = e.beta * e.from[j * e.from_col];
  }
}

// Rows of op(a) (m x k), contiguous.
template <class T> MatrixRef<T> plain(const MatrixRef<T>& a, int64_t m, int64_t k, T* to) {
  constexpr int64_t side = 8;  // of squares in few cache lines
  parallel_for(m, ceil_div(kElements, k), [&](int64_t begin, int64_t end) {
    for (int64_t top = begin; top < end; top += side) {
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t i = top; i < std::min(top + side, end); ++i) {
          const T v = a.data[p * a.stride + i];
          to[i * k + p] = a.trans == Trans::Conj ? std::conj(v) : v;
        }
      }
    }
  });
  return {to, k};
}

}  // namespace

template <class T> bool is_transposed(const Product<T>& x) {
  const bool a = x.a.trans != Trans::No, b = x.b.trans != Trans::No;
  if (a && b && x.a.trans != x.b.trans) return false;
  return (b && x.m <= std::min(kFew, x.n / 2)) || (a && x.n <= std::min(kFew, x.m / 2));
}

template <class T> void transposed_gemm(const Product<T>& x) {
  // Rows in memory cannot be conjugated, but the results can, and the other factor.
  const bool conjugate = x.a.trans == Trans::Conj || x.b.trans == Trans::Conj;
  const auto flip = [&](MatrixRef<T> y) {
    y.trans = y.trans != Trans::No ? Trans::No : conjugate ? Trans::Conj : Trans::Yes;
    return y;
  };
  Scratch<T> results(x.n * x.m);
  gemm<T>(x.n, x.m, x.k, T(1), flip(x.b), flip(x.a), T(0), results.data(), x.m);
  for (int64_t i = 0; i < x.m; ++i) {
    const auto e = x.epilogue.at(i, 0);
    for (int64_t j = 0; j < x.n; ++j) {
      T v = results.data()[j * x.m + i];
      if (conjugate) v = std::conj(v);
      if (e.alpha != T(1)) v *= e.alpha;
      if (e.beta != T(0)) v += e.beta * e.from[j * e.from_col];
      x.c[i * x.ldc + j] = v;
    }
  }
}

template <class T> GemmWork real_work(const Product<T>& x) {
  using R = typename T::value_type;
  const MatrixRef<R> b{nullptr, 0, x.b.trans == Trans::No ? Trans::No : Trans::Yes};
  GemmWork work = packed_work(Product<R>{x.m, 2 * x.n, 2 * x.k, {}, b, {}, nullptr, 2 * x.n});
  const double copied = x.a.trans != Trans::No ? real(x.m * x.k) : 0;
  work.transpose += sizeof(T) * (real(x.k * x.n) + copied);  // about as long as so many elements
  return work;
}

template <class T> void real_gemm(const Product<T>& x) {
  using R = typename T::value_type;
  const auto& e = x.epilogue;
  const bool added = e.beta != T(0), in_place = e.from == x.c && e.beta.imag() == R(0);
  if (added && !in_place) start(x);
  const R beta = !added ? R(0) : in_place ? e.beta.real() : R(1);
  const bool copied = x.a.trans != Trans::No;
  Scratch<T> rows(copied ? x.m * x.k : 0);
  const MatrixRef<T> a = copied ? plain(x.a, x.m, x.k, rows.data()) : x.a;
  const bool column = x.n == 1 && x.b.trans == Trans::No && x.b.stride == 1;
  const MatrixRef<T> b = column ? MatrixRef<T>{x.b.data, x.k, Trans::Yes} : x.b;
  const int64_t depth = std::min(x.k, kBlock), width = std::min(x.n, kBlock);
  Scratch<T> right(2 * depth * width);
  for (int64_t j = 0; j < x.n; j += width) {
    for (int64_t p = 0; p < x.k; p += depth) {
      const int64_t k = std::min(depth, x.k - p), n = std::min(width, x.n - j);
      const MatrixRef<T> left = a.from(0, p);
      gemm<R>(x.m, 2 * n, 2 * k, 1, {real_part(left.data), 2 * left.stride},
              expand(b.from(p, j), k, n, e.alpha, right.data()), p ? R(1) : beta,
              reinterpret_cast<R*>(x.c + j), 2 * x.ldc);
    }
  }
}

template bool is_transposed(const Product<std::complex<float>>&);
template bool is_transposed(const Product<std::complex<double>>&);
template void transposed_gemm(const Product<std::complex<float>>&);
template void transposed_gemm(const Product<std::complex<double>>&);
template void real_gemm(const Product<std::complex<float>>&);
template void real_gemm(const Product<std::complex<double>>&);
template GemmWork real_work(const Product<std::complex<float>>&);
template GemmWork real_work(const Product<std::complex<double>>&);

}  // namespace taeda::cpu
