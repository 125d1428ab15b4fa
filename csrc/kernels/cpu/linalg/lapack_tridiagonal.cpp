// Half of the arithmetic are products of what is left of the matrix and a vector, which read it
// from the caches each time: each element is read once for both its places. The other half is put
// off until a panel of columns is done, and is matrix products then (Dongarra, Hammarling and
// Sorensen 1989).
#include "kernels/cpu/linalg/lapack_tridiagonal.h"

#include <array>

#include "kernels/cpu/linalg/lapack_reflectors.h"
#include "kernels/cpu/linalg/lapack_util.h"

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kPanel = 16;   // columns between two updates of what is left
constexpr int64_t kStrip = 64;   // columns that a task updates
constexpr int64_t kAlone = 128;  // rows and columns that are not worth another thread
constexpr int64_t kMostParts = 8;

template <class T> class Reduction {
 public:
  Reduction(int64_t n, Team& team)
      : team_(team),
        n_(n),
        ld_(up(n)),
        memory_(ld_ * (ld_ + 4 * kPanel + kMostParts + 1)),
        rest_(memory_.data()),
        vw_(rest_ + ld_ * ld_),
        wv_(vw_ + 2 * kPanel * ld_),
        parts_(wv_ + 2 * kPanel * ld_),
        d_(parts_ + kMostParts * ld_) {}

  void run(T* a, T* d, T* e, T* tau, std::atomic<int64_t>& finished) {
    for (int64_t c = 0; c < n_; ++c) {
      T* column = rest_ + c * ld_;
      std::fill(column + down(c), column + c + 1, T(0));
      std::copy(a + c * n_ + c + 1, a + (c + 1) * n_, column + c + 1);
      std::fill(column + n_, column + ld_, T(0));
      d_[c] = a[c * (n_ + 1)];
    }
    std::fill(rest_ + n_ * ld_, rest_ + ld_ * ld_, T(0));
    std::fill(d_ + n_, d_ + ld_, T(0));
    for (int64_t left = 0; left < n_ - 1; left += kPanel) {
      const int64_t width = std::min(kPanel, n_ - 1 - left);
      std::fill(vw_, parts_, T(0));
      for (int64_t i = 0; i < width; ++i) {
        const int64_t j = left + i;
        update_column(i, j);
        T *v = vw_ + 2 * i * ld_, *w = v + ld_;
        tau[j] = reflect_column(j, v, e[j]);
        std::copy(v + j + 2, v + n_, a + j * n_ + j + 2);
        multiply(down(j + 1), v, w);
        finish(i, j, tau[j], v, w);
      }
      std::copy(d_ + left, d_ + left + width, d + left);
      finished.store(left + width, std::memory_order_release);
      update(left + width, 2 * width);
    }
    d[n_ - 1] = d_[n_ - 1];
    finished.store(n_, std::memory_order_release);
  }

 private:
  using Loops = simd::SymmetricLoops<T>;
  static int64_t down(int64_t n) { return n / Loops::kBlock * Loops::kBlock; }
  static int64_t up(int64_t n) { return down(n + Loops::kBlock - 1); }

  // What the panel's first i columns change in column j.
  void update_column(int64_t i, int64_t j) {
    std::array<T, 2 * kPanel> factors;
    for (int64_t k = 0; k < 2 * i; ++k) factors[k] = -wv_[k * ld_ + j];
    for (int64_t k = 0; k < 2 * i; ++k) d_[j] += factors[k] * vw_[k * ld_ + j];
    loops_.add(down(j), ld_, 2 * i, vw_, ld_, factors.data(), rest_ + j * ld_);
  }

  // v, whose first element (j + 1) is 1, and the result tau, so that 1 - tau v v' makes zeros of
  // column j but for `beside`, next to the diagonal.
  T reflect_column(int64_t j, T* v, T& beside) {
    const T* column = rest_ + j * ld_;
    std::copy(column + j + 1, column + n_, v + j + 1);
    return loops_.reflect(j + 1, ld_, v, beside);
  }

  // w = what is left of the matrix, from `begin` on, times v.
  void multiply(int64_t begin, const T* v, T* w) {
    loops_.times(begin, ld_, d_, v, w);
    const int64_t size = ld_ - begin;
    if (size < kAlone) return loops_.multiply(ld_, begin, ld_, rest_, ld_, v, w);
    const int64_t parts = std::min(kMostParts, size / (kAlone / 2));
    auto start = [&](int64_t part) {  // such that all parts are about as large
      const double left = 1 - static_cast<double>(part) / static_cast<double>(parts);
      return part == parts ? ld_
                           : begin + down(static_cast<int64_t>(static_cast<double>(size) *
                                                               (1 - std::sqrt(left))));
    };
    team_.share(parts, [&](int64_t p) {
      T* sum = parts_ + p * ld_;
      std::fill(sum + start(p), sum + ld_, T(0));
      loops_.multiply(ld_, start(p), start(p + 1), rest_, ld_, v, sum);
    });
    const T one = 1;
    for (int64_t p = 0; p < parts; ++p)
      loops_.add(start(p), ld_, 1, parts_ + p * ld_, ld_, &one, w);
  }

  // From the product to the w of the update v w' + w v'.
  void finish(int64_t i, int64_t j, T tau, const T* v, T* w) {
    const int64_t begin = down(j + 1);
    std::array<T, 2 * kPanel> inner, factors;
    loops_.dots(begin, ld_, 2 * i, wv_, ld_, v, inner.data());
    for (int64_t k = 0; k < 2 * i; ++k) factors[k] = -inner[k];
    loops_.add(begin, ld_, 2 * i, vw_, ld_, factors.data(), w);
    for (int64_t r = begin; r <= j; ++r) w[r] = 0;
    T product = 0;
    loops_.dots(begin, ld_, 1, w, ld_, v, &product);
    const T shift = product * tau / 2;
    loops_.combine(begin, ld_, tau, shift, v, w);
    T *first = wv_ + 2 * i * ld_, *second = first + ld_;
    std::copy(w + begin, w + ld_, first + begin);
    std::copy(v + begin, v + ld_, second + begin);
  }

  // What is left, from column `next` on, less the panel's `many` products.
  void update(int64_t next, int64_t many) {
    const int64_t begin = down(next);
    const int64_t strips = (ld_ - begin + kStrip - 1) / kStrip;
    team_.share(strips, [&](int64_t s) {
      const int64_t at = begin + s * kStrip, width = std::min(kStrip, ld_ - at);
      // Read by rows, as our products do, the matrix is transposed.
      gemm<T>(width, ld_ - at, many, T(-1), {wv_ + at, ld_, Trans::Yes}, {vw_ + at, ld_}, T(1),
              rest_ + at * (ld_ + 1), ld_);
      for (int64_t c = at; c < std::min(at + width, n_); ++c) {
        T* column = rest_ + c * ld_;
        if (c >= next) d_[c] += column[c];
        std::fill(column + down(c), column + c + 1, T(0));
      }
    });
  }

  const Loops& loops_ = symmetric_loops<T>();
  Team& team_;
  int64_t n_, ld_;
  Scratch<T> memory_;
  T *rest_, *vw_, *wv_, *parts_, *d_;  // vw: v and w of each column in turn; wv: w and v
};

}  // namespace

template <class T>
void tridiagonal(int64_t n, T* a, T* d, T* e, T* tau, Team& team, std::atomic<int64_t>& finished) {
  Reduction<T>(n, team).run(a, d, e, tau, finished);
}

template void tridiagonal<float>(int64_t, float*, float*, float*, float*, Team&,
                                 std::atomic<int64_t>&);
template void tridiagonal<double>(int64_t, double*, double*, double*, double*, Team&,
                                  std::atomic<int64_t>&);

}  // namespace taeda::cpu::lapack
