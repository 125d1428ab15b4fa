// As the tridiagonal form, the bidiagonal one takes half of its arithmetic in products of what is
// left of the matrix with vectors, two for each column, and half in matrix products (Dongarra,
// Hammarling and Sorensen 1989). Of the former, threads take columns or rows.
#include "kernels/cpu/linalg/lapack_bidiagonal.h"

#include <array>

#include "kernels/cpu/linalg/lapack_reflectors.h"
#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/spin_team.h"
#include "kernels/cpu/pointwise/simd/transpose.h"

// Fortran passes the length of every text behind the other arguments.
extern "C" {
void scipy_sbdsdc_(const char*, const char*, const int*, float*, float*, float*, const int*, float*,
                   const int*, float*, int*, float*, int*, int*, size_t, size_t);
void scipy_dbdsdc_(const char*, const char*, const int*, double*, double*, double*, const int*,
                   double*, const int*, double*, int*, double*, int*, int*, size_t, size_t);
}

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kPanel = 16;      // columns between two updates of what is left
constexpr int64_t kStrip = 64;      // columns that a task updates
constexpr int64_t kPart = 1 << 14;  // elements of a product with a vector that a thread takes
constexpr int64_t kMostParts = 8;
constexpr int64_t kDivide = 128;  // rows of a bidiagonal matrix that is divided here
constexpr int64_t kSame = 256;    // rows apart whose addresses share places in a cache

// a (m x n, m >= n) = Q B P', B with the diagonal d and e above it.
template <class T> class Reduction {
 public:
  Reduction(int64_t m, int64_t n, Team& team)
      : team_(team),
        m_(m),
        n_(n),
        ld_(apart(m)),
        ldn_(apart(n)),
        memory_(ld_ * n + 2 * kPanel * (ld_ + ldn_)),
        rest_(memory_.data()),
        vx_(rest_ + ld_ * n),
        yu_(vx_ + 2 * kPanel * ld_),
        end_(yu_ + 2 * kPanel * ldn_) {}

  // The reflectors of Q go below a's diagonal, those of P below that of p (n - 1 x n - 1), whose
  // column j has those that change the elements from j + 1 on.
  void run(T* a, T* d, T* e, T* tau_q, T* p, T* tau_p) {
    for (int64_t c = 0; c < n_; ++c) {
      std::copy_n(a + c * m_, m_, rest_ + c * ld_);
      std::fill(rest_ + c * ld_ + m_, rest_ + (c + 1) * ld_, T(0));
    }
    for (int64_t left = 0; left < n_; left += kPanel) {
      const int64_t width = std::min(kPanel, n_ - left);
      std::fill(vx_, end_, T(0));
      for (int64_t i = 0; i < width; ++i) {
        const int64_t j = left + i;
        T *v = vx_ + 2 * i * ld_, *x = v + ld_, *y = yu_ + 2 * i * ldn_, *u = y + ldn_;
        reflect_column(i, j, v, d[j], tau_q[j]);
        std::copy(v + j + 1, v + m_, a + j * m_ + j + 1);
        if (j + 1 == n_) break;
        multiply_column(i, j, tau_q[j], v, y);
        reflect_row(i, j, u, e[j], tau_p[j]);
        std::copy(u + j + 2, u + n_, p + j * (n_ - 1) + j + 1);
        multiply_row(i, j, tau_p[j], u, x);
      }
      update(left + width, 2 * width);
    }
  }

 private:
  using Loops = simd::SymmetricLoops<T>;
  static int64_t down(int64_t n) { return n / Loops::kBlock * Loops::kBlock; }
  static int64_t up(int64_t n) { return down(n + Loops::kBlock - 1); }
  static int64_t apart(int64_t n) { return up(n) + (up(n) % kSame == 0 ? Loops::kBlock : 0); }

  T* column(int64_t j) const { return rest_ + j * ld_; }

  void reflect_column(int64_t i, int64_t j, T* v, T& beside, T& tau) {
    std::array<T, 2 * kPanel> factors;
    for (int64_t k = 0; k < 2 * i; ++k) factors[k] = -yu_[k * ldn_ + j];
    loops_.add(down(j), ld_, 2 * i, vx_, ld_, factors.data(), column(j));
    std::copy(column(j) + j, column(j) + m_, v + j);
    tau = loops_.reflect(j, ld_, v, beside);
  }

  // y = tau * what is left of the matrix, turned, times v.
  void multiply_column(int64_t i, int64_t j, T tau, const T* v, T* y) {
    const int64_t from = down(j), begin = j + 1, high = ld_ - from;
    share(n_ - begin, high, [&](int64_t first, int64_t last) {
      loops_.dots(from, ld_, last - first, column(begin + first), ld_, v, y + begin + first);
    });
    std::array<T, 2 * kPanel> inner, factors;
    loops_.dots(from, ld_, 2 * i, vx_, ld_, v, inner.data());
    for (int64_t k = 0; k < 2 * i; ++k) factors[k] = -inner[k];
    loops_.add(down(begin), ldn_, 2 * i, yu_, ldn_, factors.data(), y);
    std::fill(y + down(begin), y + begin, T(0));
    for (int64_t c = begin; c < n_; ++c) y[c] *= tau;
  }

  void reflect_row(int64_t i, int64_t j, T* u, T& beside, T& tau) {
    std::array<T, 2 * kPanel> factors;
    for (int64_t k = 0; k <= 2 * i; ++k) factors[k] = -vx_[k * ld_ + j];
    for (int64_t c = j + 1; c < n_; ++c) u[c] = column(c)[j];
    loops_.add(down(j + 1), ldn_, 2 * i + 1, yu_, ldn_, factors.data(), u);
    std::fill(u + down(j + 1), u + j + 1, T(0));
    tau = loops_.reflect(j + 1, ldn_, u, beside);
  }

  // x = tau * what is left of the matrix times u.
  void multiply_row(int64_t i, int64_t j, T tau, const T* u, T* x) {
    const int64_t begin = j + 1, from = down(begin), wide = n_ - begin;
    share(ld_ - from, wide, [&](int64_t first, int64_t last) {
      loops_.add(from + first, from + last, wide, column(begin), ld_, u + begin, x);
    });
    std::array<T, 2 * kPanel> inner, factors;
    loops_.dots(down(begin), ldn_, 2 * i + 1, yu_, ldn_, u, inner.data());
    for (int64_t k = 0; k <= 2 * i; ++k) factors[k] = -inner[k];
    loops_.add(from, ld_, 2 * i + 1, vx_, ld_, factors.data(), x);
    std::fill(x + from, x + begin, T(0));
    for (int64_t r = begin; r < m_; ++r) x[r] *= tau;
  }

  // What is left, from row and column `next` on, less the panel's `many` products.
  void update(int64_t next, int64_t many) {
    const int64_t top = down(next);
    if (next >= n_) return;
    const int64_t strips = (n_ - next + kStrip - 1) / kStrip;
    team_.share(strips, [&](int64_t s) {
      const int64_t at = next + s * kStrip, width = std::min(kStrip, n_ - at);
      // Read by rows, as our products do, the matrix is transposed.
      gemm<T>(width, ld_ - top, many, T(-1), {yu_ + at, ldn_, Trans::Yes}, {vx_ + top, ld_}, T(1),
              column(at) + top, ld_);
    });
  }

  // f(first, last) for parts of `lines` lines of some elements.
  template <class F> void share(int64_t lines, int64_t elements, const F& f) {
    const int64_t parts = std::clamp<int64_t>(lines * elements / kPart, 1, kMostParts);
    const int64_t each = up((lines + parts - 1) / parts);
    team_.share((lines + each - 1) / each,
                [&](int64_t p) { f(p * each, std::min((p + 1) * each, lines)); });
  }

  const Loops& loops_ = symmetric_loops<T>();
  Team& team_;
  int64_t m_, n_, ld_, ldn_;
  Scratch<T> memory_;
  T *rest_, *vx_, *yu_, *end_;  // vx: v and x of each column in turn; yu: y and u
};

template <class T> constexpr auto bdsdc() {
  if constexpr (sizeof(T) == 4) return scipy_sbdsdc_;
  else return scipy_dbdsdc_;
}

// to (n x m) = from (m x n) turned.
template <class T> void turn(int64_t m, int64_t n, const T* from, T* to) {
  using namespace simd;
  const auto& kernels = TAEDA_PICK(transpose_kernels);
  constexpr auto bytes = static_cast<int64_t>(sizeof(T));
  (bytes == 4 ? kernels.bytes4 : kernels.bytes8)(
      reinterpret_cast<char*>(to), n * bytes, reinterpret_cast<const char*>(from), m * bytes, n, m);
}

// a (m x n, m >= n) by way of its bidiagonal form, which is that of a' where `turned`: then u
// (n x n) and vt (n x m) are those of a'.
template <class T>
int32_t bidiagonal_svd(int64_t m, int64_t n, bool turned, T* a, T* s, T* u, T* vt) {
  const int size = narrow(n), ld_u = narrow(turned ? n : m), ld_vt = size;
  narrow(3 * product(n, n) + 4 * static_cast<double>(n));
  Scratch<T> e(n), tau_q(n), tau_p(n), p(n * n), unused(1), work(u ? 3 * n * n + 4 * n : 8 * n);
  Scratch<int> int_work(8 * n);
  const auto reduce = [&](Team& team) {
    Reduction<T>(m, n, team).run(a, s, e.data(), tau_q.data(), p.data(), tau_p.data());
  };
  Team::run(kMostParts, reduce, [] { return false; });
  int info = 0, int_unused = 0;
  const char* uplo = turned ? "L" : "U";
  if (!u) {
    const int one = 1;
    bdsdc<T>()(uplo, "N", &size, s, e.data(), unused.data(), &one, unused.data(), &one,
               unused.data(), &int_unused, work.data(), int_work.data(), &info, 1, 1);
    return info;
  }
  T *left = u, *right = vt;
  const int64_t high = turned ? n : m, wide = turned ? m : n;
  if (n < kDivide || !divided_svd(turned, n, s, e.data(), left, high, right, n))
    bdsdc<T>()(uplo, "I", &size, s, e.data(), left, &ld_u, right, &ld_vt, unused.data(),
               &int_unused, work.data(), int_work.data(), &info, 1, 1);
  if (info) return info;
  for (int64_t c = 0; c < n; ++c) std::fill(left + c * high + n, left + (c + 1) * high, T(0));
  std::fill(right + n * n, right + n * wide, T(0));
  if (turned) {
    // A = P B' Q': u = P u from row 1 on, vt = vt Q'.
    Scratch<T> below((n - 1) * n);
    for (int64_t c = 0; c < n; ++c) std::copy_n(u + c * n + 1, n - 1, below.data() + c * (n - 1));
    multiply_reflectors(n - 1, n, true, false, n - 1, p.data(), tau_p.data(), below.data());
    for (int64_t c = 0; c < n; ++c) std::copy_n(below.data() + c * (n - 1), n - 1, u + c * n + 1);
    multiply_reflectors(n, m, false, true, n, a, tau_q.data(), vt);
  } else {
    multiply_reflectors(m, n, true, false, n, a, tau_q.data(), u);
    multiply_reflectors(n, n - 1, false, true, n - 1, p.data(), tau_p.data(), vt + n);
  }
  return 0;
}

// The same of a much higher matrix, by way of its R.
template <class T> int32_t high_svd(int64_t m, int64_t n, bool turned, T* a, T* s, T* u, T* vt) {
  Scratch<T> tau(n), r(n * n), small(u ? n * n : 1);
  factor_qr(m, n, a, tau.data());
  for (int64_t c = 0; c < n; ++c) {
    std::copy_n(a + c * m, c + 1, r.data() + c * n);
    std::fill_n(r.data() + c * n + c + 1, n - c - 1, T(0));
  }
  T *left = u, *right = vt;
  if (u) (turned ? right : left) = small.data();
  const int32_t info = bidiagonal_svd(n, n, turned, r.data(), s, left, right);
  if (!u || info) return info;
  make_q(m, n, n, a, tau.data());
  // Read by rows, as our products do, all matrices are transposed.
  if (turned) gemm<T>(m, n, n, 1, {a, m, Trans::Yes}, {right, n}, 0, vt, n);
  else gemm<T>(n, m, n, 1, {left, n}, {a, m}, 0, u, m);
  return 0;
}

}  // namespace

template <class T> bool is_moderate(int64_t count, const T* a) {
  T most = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(a[i]));
    sum += a[i] * T(0);  // of finite numbers
  }
  const T least = std::sqrt(std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon());
  return sum == 0 && most >= least && most <= 1 / least;
}

template <class T> int32_t large_svd(int64_t m, int64_t n, T* a, T* s, T* u, T* vt) {
  const bool turned = m < n;
  const int64_t high = std::max(m, n), k = std::min(m, n);
  Scratch<T> other(turned ? m * n : 1);
  if (turned) turn(m, n, a, other.data());
  T* x = turned ? other.data() : a;
  const bool by_r = high >= static_cast<int64_t>(static_cast<double>(k) * 11 / 6);
  return by_r ? high_svd(high, k, turned, x, s, u, vt)
              : bidiagonal_svd(high, k, turned, x, s, u, vt);
}

#define TAEDA_INSTANTIATE(T)                       \
  template bool is_moderate<T>(int64_t, const T*); \
  template int32_t large_svd<T>(int64_t, int64_t, T*, T*, T*, T*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)

}  // namespace taeda::cpu::lapack
