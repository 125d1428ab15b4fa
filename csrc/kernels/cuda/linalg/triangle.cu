// Triangular systems: small triangles by substitution, and matrix products between them.
#include "kernels/cuda/linalg/matrices.h"

namespace taeda::cuda {
namespace {

constexpr int kMost = 32;  // columns of a triangle that is solved by substitution

// A system m x = b from the top down, of one matrix: element (i, k) of m is at i * row + k *
// column, element i of right side j at i * apart + j * next.
template <class S> struct Substitution {
  int n;
  int64_t sides;
  const S* m;
  int64_t row, column, m_step;
  bool conjugates, unit;
  S* b;
  int64_t apart, next, b_step;
};

// A thread has a right side, in registers.
template <class S>
__global__ void __launch_bounds__(64) substitute(Substitution<S> s, int64_t first_matrix) {
  __shared__ S m[kMost][kMost + 1];
  const int64_t matrix = first_matrix + blockIdx.y;
  const S* from = s.m + matrix * s.m_step;
  for (int i = threadIdx.x; i < kMost * kMost; i += blockDim.x) {
    // Neighbouring threads read neighbouring memory.
    const bool down = s.row == 1 || s.row == -1;
    const int r = down ? i % kMost : i / kMost, c = down ? i / kMost : i % kMost;
    S v = r == c ? S(1) : S(0);
    if (r < s.n && c <= r && !(s.unit && r == c)) v = from[r * s.row + c * s.column];
    m[r][c] = s.conjugates ? conjugate(v) : v;
  }
  __syncthreads();
  const int64_t side = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (side >= s.sides) return;
  S* b = s.b + matrix * s.b_step + side * s.next;
  S x[kMost];
#pragma unroll
  for (int i = 0; i < kMost; ++i) x[i] = i < s.n ? b[i * s.apart] : S(0);
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    if (i >= s.n) break;
    S sum = x[i];
#pragma unroll
    for (int k = 0; k < i; ++k) sum = sum - m[i][k] * x[k];
    x[i] = s.unit ? sum : sum / m[i][i];
  }
#pragma unroll
  for (int i = 0; i < kMost; ++i)
    if (i < s.n) b[i * s.apart] = x[i];
}

template <class S>
void solve_small(int64_t batch, int64_t n, int64_t sides, TriangularSystem how, Columns<const S> a,
                 Columns<S> b) {
  // From the right, op(a) is transposed once more.
  const bool transposed = (how.trans != Trans::No) == how.left;
  Substitution<S> s{static_cast<int>(n),
                    sides,
                    a.data,
                    transposed ? a.ld : 1,
                    transposed ? 1 : a.ld,
                    a.step,
                    how.trans == Trans::Conj,
                    how.unit,
                    b.data,
                    how.left ? 1 : b.ld,
                    how.left ? b.ld : 1,
                    b.step};
  if (how.upper != transposed) {  // from the bottom up
    s.m += (n - 1) * (s.row + s.column);
    s.b += (n - 1) * s.apart;
    s.row = -s.row;
    s.column = -s.column;
    s.apart = -s.apart;
  }
  constexpr int64_t most = 65535;  // blocks in the second dimension of a grid
  constexpr int threads = 64;
  for (int64_t first = 0; first < batch; first += most) {
    const dim3 grid(static_cast<unsigned>((sides + threads - 1) / threads),
                    static_cast<unsigned>(std::min(most, batch - first)));
    launch(substitute<S>, grid, threads, 0, s, first);
  }
}

}  // namespace

template <class T>
void solve_triangle(int64_t batch, int64_t n, int64_t sides, TriangularSystem how,
                    Columns<const T> a, Columns<T> b) {
  if (n == 0 || sides == 0 || batch == 0) return;
  if (n <= kMost) return solve_small(batch, n, sides, how, a.stored(), b.stored());
  // a = [a1 0; off a2] or [a1 off; 0 a2]; b = [b1; b2], or [b1 b2] from the right.
  const int64_t half = half_of(n), rest = n - half;
  const Columns<const T> a2 = a.from(half, half),
                         off = how.upper ? a.from(0, half) : a.from(half, 0);
  const Columns<T> b2 = how.left ? b.from(half, 0) : b.from(0, half);
  const auto subtract = [&](int64_t known, Columns<T> from, int64_t unknown, Columns<T> to) {
    if (how.left)
      multiply(batch, unknown, sides, known, T(-1), off, how.trans, from.readable(), Trans::No,
               T(1), to);
    else
      multiply(batch, sides, unknown, known, T(-1), from.readable(), Trans::No, off, how.trans,
               T(1), to);
  };
  const bool first_half_first = (how.upper != (how.trans != Trans::No)) != how.left;
  if (first_half_first) {
    solve_triangle(batch, half, sides, how, a, b);
    subtract(half, b, rest, b2);
    solve_triangle(batch, rest, sides, how, a2, b2);
  } else {
    solve_triangle(batch, rest, sides, how, a2, b2);
    subtract(rest, b2, half, b);
    solve_triangle(batch, half, sides, how, a, b);
  }
}

template void solve_triangle(int64_t, int64_t, int64_t, TriangularSystem, Columns<const float>,
                             Columns<float>);
template void solve_triangle(int64_t, int64_t, int64_t, TriangularSystem, Columns<const double>,
                             Columns<double>);
template void solve_triangle(int64_t, int64_t, int64_t, TriangularSystem,
                             Columns<const std::complex<float>>, Columns<std::complex<float>>);
template void solve_triangle(int64_t, int64_t, int64_t, TriangularSystem,
                             Columns<const std::complex<double>>, Columns<std::complex<double>>);

}  // namespace taeda::cuda
