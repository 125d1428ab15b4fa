// Francis's double steps (1961) on Hessenberg's form, with the test of Ahues and Tisseur (1997) for
// what may count as zero.
#include "kernels/cpu/linalg/simd/eigen.h"
#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::abs;
using taeda::TAEDA_ISA::sqrt;

// Of numbers about as large as 1.
template <class T> struct Schur {
  static constexpr T kUlp = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
  static constexpr int64_t kSteps = 20;  // for each block, of which two or three are usual

  int64_t n, ld;
  T *h, *q;
  T least;  // what is no larger counts as zero

  T& at_(int64_t r, int64_t c) const { return h[c * ld + r]; }

  void run() const {
    for (int64_t last = n - 1; last >= 0;) last = block(last) - 1;
  }

 private:
  struct Shifts {
    T re1, im1, re2, im2;
  };

  bool vanishes(int64_t k) const {
    const T beside = abs(at_(k, k - 1));
    if (beside <= least) return true;
    const T here = at_(k, k), before = at_(k - 1, k - 1);
    if (beside > kUlp * (abs(here) + abs(before))) return false;
    const T above = abs(at_(k - 1, k)), gap = abs(before - here);
    const T ab = max(beside, above), ba = min(beside, above), aa = max(abs(here), gap),
            bb = min(abs(here), gap), s = aa + ab;
    return ba * (ab / s) <= max(least, kUlp * (bb * (aa / s)));
  }

  // Steps until one or two rows up to `last` stand alone; returns the first of them, or 0 where
  // other shifts are needed.
  int64_t block(int64_t last) const {
    int64_t first = 0;
    for (int64_t count = 1; count <= kSteps; ++count) {
      int64_t k = last;
      while (k > first && !vanishes(k)) --k;
      first = k;
      if (first > 0) at_(first, first - 1) = 0;
      if (first + 1 >= last) return first;
      step(first, last, shifts(last));
    }
    return 0;
  }

  // The eigenvalues of the last two rows; of real ones the nearer one twice.
  Shifts shifts(int64_t last) const {
    T a = at_(last - 1, last - 1), b = at_(last - 1, last), c = at_(last, last - 1),
      d = at_(last, last);
    const T scale = abs(a) + abs(b) + abs(c) + abs(d);
    if (scale == 0) return {0, 0, 0, 0};
    a /= scale, b /= scale, c /= scale, d /= scale;
    const T middle = (a + d) / 2, det = (a - middle) * (d - middle) - b * c, root = sqrt(abs(det));
    if (det >= 0) return {middle * scale, root * scale, middle * scale, -root * scale};
    const T one = middle + root, other = middle - root,
            near = (abs(one - d) <= abs(other - d) ? one : other) * scale;
    return {near, 0, near, 0};
  }

  // One double step, from the first row at which the elements beside the diagonal allow it.
  void step(int64_t first, int64_t last, const Shifts& w) const {
    T v[3];
    int64_t m = last - 2;
    for (;; --m) {
      const T here = at_(m, m), next = at_(m + 1, m + 1);
      T below = at_(m + 1, m), s = abs(here - w.re2) + abs(w.im2) + abs(below);
      below /= s;
      v[0] = below * at_(m, m + 1) + (here - w.re1) * ((here - w.re2) / s) - w.im1 * (w.im2 / s);
      v[1] = below * (here + next - w.re1 - w.re2);
      v[2] = below * at_(m + 2, m + 1);
      s = abs(v[0]) + abs(v[1]) + abs(v[2]);
      for (T& x : v) x /= s;
      if (m == first) break;
      const T beside = abs(at_(m, m - 1)) * (abs(v[1]) + abs(v[2]));
      const T around = abs(at_(m - 1, m - 1)) + abs(here) + abs(next);
      if (beside <= kUlp * abs(v[0]) * around) break;
    }
    for (int64_t k = m; k < last; ++k) {
      const bool three = k + 1 < last;
      if (k > m) {
        for (int64_t i = 0; i < 3; ++i) v[i] = three || i < 2 ? at_(k + i, k - 1) : T(0);
      } else if (!three) {
        v[2] = 0;
      }
      T beside;
      const T tau = reflector(v, beside);
      if (k > m) {
        at_(k, k - 1) = beside;
        at_(k + 1, k - 1) = 0;
        if (three) at_(k + 2, k - 1) = 0;
      } else if (m > first) {
        at_(k, k - 1) *= 1 - tau;
      }
      const int64_t right = q ? n : last + 1, top = q ? 0 : first;
      const int64_t bottom = min(k + 3, last) + 1;
      if (three) {
        reflect_rows<true>(k, right, tau, v);
        reflect_columns_of<true>(h + k * ld, top, bottom, tau, v);
        if (q) reflect_columns_of<true>(q + k * ld, 0, n, tau, v);
      } else {
        reflect_rows<false>(k, right, tau, v);
        reflect_columns_of<false>(h + k * ld, top, bottom, tau, v);
        if (q) reflect_columns_of<false>(q + k * ld, 0, n, tau, v);
      }
    }
  }

  // v becomes that of the reflector 1 - tau v v' that takes it to one number; v[0] is 1.
  FN static T reflector(T* v, T& beside) {
    constexpr T smallest = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-960);
    T scale = 1, rest = v[1] * v[1] + v[2] * v[2];
    if (v[0] * v[0] + rest < smallest) [[unlikely]] {
      scale = max(abs(v[0]), max(abs(v[1]), abs(v[2])));
      if (scale == 0) scale = 1;
      for (int64_t i = 0; i < 3; ++i) v[i] /= scale;
      rest = v[1] * v[1] + v[2] * v[2];
    }
    const T alpha = v[0];
    v[0] = 1;
    beside = alpha * scale;
    if (rest == 0) return 0;
    const T beta = copysign(sqrt(alpha * alpha + rest), -alpha), inverse = 1 / (alpha - beta);
    v[1] *= inverse;
    v[2] *= inverse;
    beside = beta * scale;
    return (beta - alpha) / beta;
  }

  template <bool Three> FN void reflect_rows(int64_t k, int64_t right, T tau, const T* v) const {
    const T v1 = v[1], v2 = v[2], t1 = tau * v1, t2 = tau * v2;
    T* x = h + k * ld + k;
    for (int64_t c = k; c < right; ++c, x += ld) {
      T sum = x[0] + v1 * x[1];
      if constexpr (Three) sum += v2 * x[2];
      x[0] -= sum * tau;
      x[1] -= sum * t1;
      if constexpr (Three) x[2] -= sum * t2;
    }
  }

  // Of the two or three columns from x on; below `bottom` they are zeros.
  template <bool Three>
  FN void reflect_columns_of(T* x, int64_t top, int64_t bottom, T tau, const T* v) const {
    const T v1 = v[1], v2 = v[2], t1 = tau * v1, t2 = tau * v2;
    for (int64_t r = top / kLanes<T> * kLanes<T>; r < bottom; r += kLanes<T>) {
      T *const a = x + r, *const b = a + ld, *const c = b + ld;
      Vec<T> sum = load(a) + v1 * load(b);
      if constexpr (Three) sum += v2 * load(c);
      store(a, load(a) - sum * tau);
      store(b, load(b) - sum * t1);
      if constexpr (Three) store(c, load(c) - sum * t2);
    }
  }
};

template <class T> void to_blocks(int64_t n, int64_t ld, T* h, T* q) {
  constexpr T tiny = sizeof(T) == 4 ? T(__FLT_MIN__) : T(__DBL_MIN__);
  Schur<T>{n, ld, h, q, tiny * (static_cast<T>(n) / Schur<T>::kUlp)}.run();
}

template <class T> constexpr SchurLoops<T> schur_loops{to_blocks<T>};

}  // namespace

extern constinit const ForFloats<SchurLoops> schur_kernels{schur_loops<float>, schur_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
