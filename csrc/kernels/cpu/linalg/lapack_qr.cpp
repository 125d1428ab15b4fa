// QR. Small matrices of a batch are factored together (simd/batched.h), one that fits a near cache
// reflector by reflector (simd/reflectors.h), and a large one panel by panel: the product of a
// panel's reflectors is 1 - V F V', F an upper triangle (Schreiber and Van Loan 1989), and applying
// it is three matrix products, on all threads. Complex matrices are LAPACK's.
#include "kernels/cpu/linalg/lapack_qr.h"

#include <array>
#include <deque>

#include "kernels/cpu/common/sizes.h"
#include "kernels/cpu/linalg/lapack_util.h"

namespace taeda::cpu::lapack {

template <class T> const simd::ReflectorLoops<T>& reflector_loops() {
  return typed<T>(TAEDA_PICK(reflector_kernels));
}

namespace {

constexpr int64_t kFew = 40, kNearQr = 80 << 10;  // reflectors, and bytes, that need no panels
constexpr int64_t kPanel = 32;                    // reflectors
constexpr int64_t kStrip = 128;                   // columns that a task multiplies
constexpr int64_t kNarrow = 512;  // columns of a matrix cut into strips half as wide

int64_t strip_of(int64_t columns) { return columns > kNarrow ? kStrip : kStrip / 2; }
template <class T> bool is_near(int64_t k, int64_t rows, int64_t cols) {
  return k < kFew || rows * cols * int64_t{sizeof(T)} <= kNearQr;
}
template <class T> int64_t space_of(int64_t rows, int64_t cols) {
  return simd::ReflectorLoops<T>::space(rows, cols);
}

template <class T> class Panel {
 public:
  // Takes reflectors from below a's diagonal.
  Panel(int64_t rows, int64_t width, const T* a, int64_t ld, const T* tau)
      : rows_(rows),
        width_(width),
        v_(rows * width) {
    for (int64_t i = 0; i < width; ++i) {
      T* v = v_.data() + i * rows;
      std::fill_n(v, i, T(0));
      v[i] = 1;
      std::copy(a + i * ld + i + 1, a + i * ld + rows, v + i + 1);
    }
    // Column i of F is -tau[i] F (V' v[i]) above its diagonal element tau[i].
    std::array<T, kPanel * kPanel> inner;
    gemm<T>(width, width, rows, 1, {v_.data(), rows}, {v_.data(), rows, Trans::Yes}, 0,
            inner.data(), kPanel);
    for (int64_t i = 0; i < width; ++i) {
      T* column = f_.data() + i * kPanel;
      for (int64_t l = 0; l < i; ++l) {
        const T factor = tau[i] * inner[i * kPanel + l];
        for (int64_t k = 0; k <= l; ++k) column[k] -= factor * f_[l * kPanel + k];
      }
      column[i] = tau[i];
    }
  }

  // c = P c, or P' c where `transposed`, of so many columns; P: the product of the reflectors. gemm
  // is row-major: it sees the transpose of every matrix, and factors in reverse order.
  void multiply(int64_t columns, bool transposed, T* c, int64_t ld) const {
    Scratch<T> memory(2 * columns * kPanel);
    T *w = memory.data(), *fw = w + columns * kPanel;
    gemm<T>(columns, width_, rows_, 1, {c, ld}, {v_.data(), rows_, Trans::Yes}, 0, w, width_);
    gemm<T>(columns, width_, width_, 1, {w, width_},
            {f_.data(), kPanel, transposed ? Trans::Yes : Trans::No}, 0, fw, width_);
    gemm<T>(columns, rows_, width_, -1, {fw, width_}, {v_.data(), rows_}, 1, c, ld);
  }

 private:
  int64_t rows_, width_;
  Scratch<T> v_;
  std::array<T, kPanel * kPanel> f_{};
};

// The panels of k reflectors, each `rows` long.
template <class T>
std::deque<Panel<T>> panels_of(int64_t rows, int64_t k, const T* a, int64_t ld, const T* tau) {
  std::deque<Panel<T>> panels;
  for (int64_t top = 0; top < k; top += kPanel)
    panels.emplace_back(rows - top, std::min(kPanel, k - top), a + top * (ld + 1), ld, tau + top);
  return panels;
}

}  // namespace

// While other threads apply a panel to what is right of it, one thread does so with the next panel
// and factors that already.
template <class T> void factor_qr(int64_t m, int64_t n, T* a, T* tau) {
  const int64_t k = std::min(m, n), size = strip_of(n);
  Scratch<T> work(is_near<T>(k, m, n) ? space_of<T>(m, n) : space_of<T>(m, kPanel));
  if (is_near<T>(k, m, n)) return reflector_loops<T>().qr(m, n, a, m, tau, work.data());
  std::deque<Panel<T>> panels;
  auto factor = [&](int64_t top) {
    const int64_t width = std::min(kPanel, k - top);
    T* corner = a + top * (m + 1);
    reflector_loops<T>().qr(m - top, width, corner, m, tau + top, work.data());
    panels.emplace_back(m - top, width, corner, m, tau + top);
  };
  factor(0);
  for (int64_t top = 0; top < k; top += kPanel) {
    const int64_t below = std::min(top + kPanel, k), first = std::min(below + kPanel, n);
    const Panel<T>& panel = panels.front();
    auto apply = [&](int64_t left, int64_t right) {
      panel.multiply(right - left, true, a + left * m + top, m);
    };
    parallel_each(below < n ? 1 + ceil_div(n - first, size) : 0, 1, [&](int64_t t) {
      if (t > 0) {
        apply(first + (t - 1) * size, std::min(first + t * size, n));
      } else {
        apply(below, first);
        if (below < k) factor(below);
      }
    });
    panels.pop_front();
  }
}

template <class T> void make_q(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  if (is_near<T>(k, m, n)) {
    Scratch<T> work(space_of<T>(m, n));
    return reflector_loops<T>().q(m, n, k, a, tau, work.data());
  }
  const std::deque<Panel<T>> panels = panels_of(m, k, a, m, tau);
  const int64_t size = strip_of(n);
  parallel_each(ceil_div(n, size), 1, [&](int64_t s) {
    const int64_t first = s * size, last = std::min(first + size, n);
    for (int64_t c = first; c < last; ++c) {
      std::fill_n(a + c * m, m, T(0));
      a[c * (m + 1)] = 1;
    }
    for (int64_t p = std::ssize(panels) - 1; p >= 0; --p) {
      // Earlier columns are still the identity's, which this panel leaves alone.
      const int64_t top = p * kPanel, left = std::max(first, top);
      if (left < last) panels[p].multiply(last - left, false, a + left * m + top, m);
    }
  });
}

template <class T>
void multiply_reflectors(int64_t m, int64_t n, bool transposed, int64_t k, const T* a, int64_t lda,
                         const T* tau, T* c, int64_t ldc) {
  const int64_t size = strip_of(n);
  if (is_near<T>(k, m, n)) {
    return parallel_for(n, size, [&](int64_t begin, int64_t end) {
      Scratch<T> work(space_of<T>(m, end - begin));
      reflector_loops<T>().multiply(m, end - begin, transposed, k, a, lda, tau, c + begin * ldc,
                                    ldc, work.data());
    });
  }
  const std::deque<Panel<T>> panels = panels_of(m, k, a, lda, tau);
  parallel_each(ceil_div(n, size), 1, [&](int64_t s) {
    const int64_t first = s * size, count = std::min(size, n - first);
    for (int64_t i = 0; i < std::ssize(panels); ++i) {
      const int64_t p = transposed ? i : std::ssize(panels) - 1 - i;
      panels[p].multiply(count, transposed, c + first * ldc + p * kPanel, ldc);
    }
  });
}

namespace {

template <class T> void qr_factor(MatrixBatch s, T* a, T* tau) {
  const int64_t m = s.rows, n = s.cols, k = std::min(m, n), size = m * n;
  const double work = product(m, n, k) * 2;
  if constexpr (is_complex<T>) {
    each_with_work<T>(s.count, work, [&](int64_t i, const Workspace<T>& w) {
      int info = 0;
      call(Routines<T>::geqrf, m, n, a + i * size, leading(m), tau + i * k, w.work, w.lwork, &info);
    });
  } else {
    narrow(m), narrow(n);
    auto some = [&](const auto& loops, int64_t i, int64_t count) {
      return loops.qr(count, m, n, a + i * size, tau + i * k);
    };
    auto one = [&](int64_t i) { factor_qr(m, n, a + i * size, tau + i * k); };
    each_together<T>(s.count, work, factored_together<T>(s.count, m, n), some, one);
  }
}

template <class T> void reflectors_to_q(MatrixBatch s, int64_t k, T* a, const T* tau) {
  const int64_t m = s.rows, n = s.cols, size = m * n;
  const double work = product(m, n, k) * 2;
  if constexpr (is_complex<T>) {
    each_with_work<T>(s.count, work, [&](int64_t i, const Workspace<T>& w) {
      int info = 0;
      call(Routines<T>::orgqr, m, n, k, a + i * size, leading(m), tau + i * k, w.work, w.lwork,
           &info);
    });
  } else {
    auto some = [&](const auto& loops, int64_t i, int64_t count) {
      loops.q(count, m, n, k, a + i * size, tau + i * k);
      return true;
    };
    auto one = [&](int64_t i) { make_q(m, n, k, a + i * size, tau + i * k); };
    each_together<T>(s.count, work, factored_together<T>(s.count, m, n), some, one);
  }
}

template <class T>
void multiply_by_q(MatrixBatch s, bool left, Trans trans, int64_t k, const T* a, const T* tau,
                   T* c) {
  const int64_t m = s.rows, n = s.cols, high = left ? m : n;
  const double work = product(m, n, k) * 4;
  const bool transposed = trans != Trans::No;
  if constexpr (is_complex<T>) {
    each_with_work<T>(s.count, work, [&](int64_t i, const Workspace<T>& w) {
      int info = 0;
      call(Routines<T>::ormqr, left ? 'L' : 'R', transposed ? 'C' : 'N', m, n, k, a + i * high * k,
           leading(high), tau + i * k, c + i * m * n, leading(m), w.work, w.lwork, &info);
    });
  } else {
    each(s.count, work, [&](int64_t begin, int64_t end) {
      Scratch<T> flipped(left ? 0 : m * n);
      for (int64_t i = begin; i < end; ++i) {
        const T *v = a + i * high * k, *factors = tau + i * k;
        T* to = c + i * m * n;
        if (left) {
          multiply_reflectors(m, n, transposed, k, v, m, factors, to, m);
        } else {  // c Q = (Q' c')'
          transpose(to, m, n, m, flipped.data(), n);
          multiply_reflectors(n, m, !transposed, k, v, n, factors, flipped.data(), n);
          transpose(flipped.data(), n, m, n, to, m);
        }
      }
    });
  }
}

}  // namespace

#define TAEDA_INSTANTIATE(T)                                                               \
  template const simd::ReflectorLoops<T>& reflector_loops<T>();                            \
  template void factor_qr<T>(int64_t, int64_t, T*, T*);                                    \
  template void make_q<T>(int64_t, int64_t, int64_t, T*, const T*);                        \
  template void multiply_reflectors<T>(int64_t, int64_t, bool, int64_t, const T*, int64_t, \
                                       const T*, T*, int64_t);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)

}  // namespace taeda::cpu::lapack

TAEDA_LINALG_TABLE(QrKernels, cpu::lapack::qr_factor<T>, cpu::lapack::reflectors_to_q<T>,
                   cpu::lapack::multiply_by_q<T>)
