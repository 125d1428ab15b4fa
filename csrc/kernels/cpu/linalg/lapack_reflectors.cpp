// Some reflectors together are 1 - V F V', F an upper triangle (Schreiber and Van Loan 1989).
#include "kernels/cpu/linalg/lapack_reflectors.h"

#include <array>
#include <deque>

#include "kernels/cpu/linalg/lapack_util.h"
#include "kernels/cpu/linalg/simd/reflectors.h"

namespace taeda::cpu::lapack {
namespace {

// What is narrow, or stays in the nearest cache, is turned by one reflector after the other.
constexpr int64_t kFew = 40, kNear = 80 << 10, kNearPivots = 1 << 20;
constexpr int64_t kPanel = 32;    // reflectors together
constexpr int64_t kStrip = 128;   // columns that a task multiplies
constexpr int64_t kNarrow = 512;  // columns of a matrix that is cut into strips half as wide

int64_t strip_of(int64_t many) { return many > kNarrow ? kStrip : kStrip / 2; }
int64_t count_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

template <class T> class Panel {
 public:
  using Loops = simd::SymmetricLoops<T>;

  explicit Panel(int64_t most_rows) : memory_(kPanel * up(most_rows)) {}

  // Factors a (rows x width, `ld` apart).
  void factor(int64_t rows, int64_t width, T* a, int64_t ld, T* tau) {
    resize(rows, width);
    std::array<T, kPanel> inner, factors;
    for (int64_t i = 0; i < width; ++i) {
      T *column = a + i * ld, *v = vector(i);
      std::copy_n(column, rows, v);
      std::fill(v + rows, v + ld_, T(0));
      loops().dots(0, ld_, i, vector(0), ld_, v, inner.data());
      for (int64_t k = 0; k < i; ++k) {
        factors[k] = 0;
        for (int64_t l = 0; l <= k; ++l) factors[k] -= f_[k * kPanel + l] * inner[l];
      }
      loops().add(0, ld_, i, vector(0), ld_, factors.data(), v);
      std::copy_n(v, i, column);
      std::fill_n(v, i, T(0));
      tau[i] = loops().reflect(i, ld_, v, column[i]);
      std::copy(v + i + 1, v + rows, column + i + 1);
      extend(i, tau[i]);
    }
  }

  // Takes reflectors from below a's diagonal.
  void take(int64_t rows, int64_t width, const T* a, int64_t ld, const T* tau) {
    resize(rows, width);
    for (int64_t i = 0; i < width; ++i) {
      T* v = vector(i);
      std::fill_n(v, i, T(0));
      v[i] = 1;
      std::copy(a + i * ld + i + 1, a + i * ld + rows, v + i + 1);
      std::fill(v + rows, v + ld_, T(0));
      extend(i, tau[i]);
    }
  }

  // c (rows x many) = P c or P' c, P the product of the reflectors.
  void multiply(int64_t many, bool turned, T* c, int64_t ld) const {
    Scratch<T> memory(2 * many * kPanel);
    T *w = memory.data(), *fw = w + many * kPanel;
    // Read by rows, as our products do, all matrices are transposed.
    gemm<T>(many, width_, rows_, 1, {c, ld}, {vector(0), ld_, Trans::Yes}, 0, w, width_);
    gemm<T>(many, width_, width_, 1, {w, width_},
            {f_.data(), kPanel, turned ? Trans::Yes : Trans::No}, 0, fw, width_);
    gemm<T>(many, rows_, width_, -1, {fw, width_}, {vector(0), ld_}, 1, c, ld);
  }
  // c (many x rows) = c P or c P'.
  void multiply_from_right(int64_t many, bool turned, T* c, int64_t ld) const {
    Scratch<T> memory(2 * many * kPanel);
    T *w = memory.data(), *fw = w + many * kPanel;
    gemm<T>(width_, many, rows_, 1, {vector(0), ld_}, {c, ld}, 0, w, many);
    gemm<T>(width_, many, width_, 1, {f_.data(), kPanel, turned ? Trans::Yes : Trans::No},
            {w, many}, 0, fw, many);
    gemm<T>(rows_, many, width_, -1, {vector(0), ld_, Trans::Yes}, {fw, many}, 1, c, ld);
  }

 private:
  static const Loops& loops() { return symmetric_loops<T>(); }
  static int64_t up(int64_t n) { return count_of(n, Loops::kBlock) * Loops::kBlock; }

  T* vector(int64_t i) const { return memory_.data() + i * ld_; }

  void resize(int64_t rows, int64_t width) {
    rows_ = rows;
    width_ = width;
    ld_ = up(rows);
    f_.fill(0);
  }

  // F, given what it is for the first i vectors.
  void extend(int64_t i, T tau) {
    std::array<T, kPanel> inner;
    T* column = f_.data() + i * kPanel;
    loops().dots(i / Loops::kBlock * Loops::kBlock, ld_, i, vector(0), ld_, vector(i),
                 inner.data());
    for (int64_t l = 0; l < i; ++l) {
      for (int64_t k = 0; k <= l; ++k) column[k] -= tau * inner[l] * f_[l * kPanel + k];
    }
    column[i] = tau;
  }

  Scratch<T> memory_;
  std::array<T, kPanel * kPanel> f_;
  int64_t rows_ = 0, width_ = 0, ld_ = 0;
};

// The panels of k reflectors, each `rows` long.
template <class T>
std::deque<Panel<T>> panels_of(int64_t rows, int64_t k, const T* a, int64_t ld, const T* tau) {
  std::deque<Panel<T>> panels;
  const int64_t many = count_of(k, kPanel);
  for (int64_t p = 0; p < many; ++p) panels.emplace_back(rows - p * kPanel);
  parallel_for(many, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t top = p * kPanel;
      panels[p].take(rows - top, std::min(kPanel, k - top), a + top * (ld + 1), ld, tau + top);
    }
  });
  return panels;
}

template <class T> const simd::ReflectorLoops<T>& few_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(reflector_kernels).f32;
  else return TAEDA_PICK(reflector_kernels).f64;
}
template <class T> bool is_near(int64_t k, int64_t rows, int64_t cols) {
  return k < kFew || rows * cols * int64_t{sizeof(T)} <= kNear;
}
template <class T> int64_t space_of(int64_t rows, int64_t cols) {
  return simd::ReflectorLoops<T>::space(rows, cols);
}

}  // namespace

template <class T> const simd::SymmetricLoops<T>& symmetric_loops() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(symmetric_kernels).f32;
  else return TAEDA_PICK(symmetric_kernels).f64;
}

// While other threads apply a panel to what lies right of it, one does so with the next panel and
// factors that already.
template <class T> void factor_qr(int64_t m, int64_t n, T* a, T* tau) {
  if (is_near<T>(std::min(m, n), m, n)) {
    Scratch<T> work(space_of<T>(m, n));
    return few_loops<T>().qr(m, n, a, tau, work.data());
  }
  const int64_t k = std::min(m, n), size = strip_of(n);
  std::array<Panel<T>, 2> panels{Panel<T>(m), Panel<T>(m)};
  auto factor = [&](int64_t top) {
    panels[top / kPanel % 2].factor(m - top, std::min(kPanel, k - top), a + top * (m + 1), m,
                                    tau + top);
  };
  factor(0);
  for (int64_t top = 0; top < k; top += kPanel) {
    const int64_t below = std::min(top + kPanel, k), first = std::min(below + kPanel, n);
    auto apply = [&](int64_t left, int64_t right) {
      panels[top / kPanel % 2].multiply(right - left, true, a + left * m + top, m);
    };
    parallel_for(below < n ? 1 + count_of(n - first, size) : 0, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (t > 0) {
          apply(first + (t - 1) * size, std::min(first + t * size, n));
        } else {
          apply(below, first);
          if (below < k) factor(below);
        }
      }
    });
  }
}

template <class T> bool pivots_are_near(int64_t m, int64_t n) {
  return m * n * int64_t{sizeof(T)} <= kNearPivots;
}
template <class T> void factor_qr_pivots(int64_t m, int64_t n, T* a, T* tau, int32_t* order) {
  Scratch<T> work(space_of<T>(m, n));
  few_loops<T>().qr_pivots(m, n, a, tau, order, work.data());
}

template <class T> void make_q(int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  if (is_near<T>(k, m, n)) {
    Scratch<T> work(space_of<T>(m, n));
    return few_loops<T>().q(m, n, k, a, tau, work.data());
  }
  const std::deque<Panel<T>> panels = panels_of(m, k, a, m, tau);
  const int64_t size = strip_of(n);
  auto unit = [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      std::fill_n(a + c * m, m, T(0));
      a[c * (m + 1)] = 1;
    }
  };
  parallel_for(count_of(n, size), 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = s * size, last = std::min(first + size, n);
      unit(first, last);
      for (int64_t p = std::ssize(panels) - 1; p >= 0; --p) {
        // Earlier columns are a unit matrix's still, which this panel leaves alone.
        const int64_t top = p * kPanel, left = std::max(first, top);
        if (left < last) panels[p].multiply(last - left, false, a + left * m + top, m);
      }
    }
  });
}

template <class T>
void multiply_reflectors(int64_t m, int64_t n, bool left, bool turned, int64_t k, const T* a,
                         const T* tau, T* c) {
  const int64_t high = left ? m : n, many = left ? n : m, size = strip_of(many);
  if (is_near<T>(k, m, n)) {
    return parallel_for(many, size, [&](int64_t begin, int64_t end) {
      const int64_t rows = left ? m : end - begin, cols = left ? end - begin : n;
      Scratch<T> work(space_of<T>(rows, cols));
      few_loops<T>().multiply(rows, cols, left, turned, k, a, tau, c + begin * (left ? m : 1), m,
                              work.data());
    });
  }
  const std::deque<Panel<T>> panels = panels_of(high, k, a, high, tau);
  parallel_for(count_of(many, size), 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = s * size, count = std::min(size, many - first);
      for (int64_t i = 0; i < std::ssize(panels); ++i) {
        const int64_t p = left == turned ? i : std::ssize(panels) - 1 - i, top = p * kPanel;
        if (left) panels[p].multiply(count, turned, c + first * m + top, m);
        else panels[p].multiply_from_right(count, turned, c + top * m + first, m);
      }
    }
  });
}

#define TAEDA_INSTANTIATE(T)                                                                      \
  template const simd::SymmetricLoops<T>& symmetric_loops<T>();                                   \
  template void factor_qr<T>(int64_t, int64_t, T*, T*);                                           \
  template bool pivots_are_near<T>(int64_t, int64_t);                                             \
  template void factor_qr_pivots<T>(int64_t, int64_t, T*, T*, int32_t*);                          \
  template void make_q<T>(int64_t, int64_t, int64_t, T*, const T*);                               \
  template void multiply_reflectors<T>(int64_t, int64_t, bool, bool, int64_t, const T*, const T*, \
                                       T*);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)

}  // namespace taeda::cpu::lapack
