// From Hessenberg's form of a matrix to Schur's: Francis's double steps (1961), with the test of
// Ahues and Tisseur (1997) for what may count as zero.
//
// Only for the files of this folder that are compiled for each instruction set.
#pragma once

#include "kernels/cpu/linalg/simd/householder.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

using taeda::TAEDA_ISA::abs;
using taeda::TAEDA_ISA::sqrt;
template <class T> FN T length_of(T x, T y) {
  const T most = max(abs(x), abs(y));
  if (most == 0) return 0;
  x /= most, y /= most;
  return most * sqrt(x * x + y * y);
}

// Two rows or columns become c x + s y and c y - s x.
template <class T> struct Rotation {
  T c = 1, s = 0;

  FN void operator()(T& x, T& y) const {
    const T before = x;
    x = c * before + s * y;
    y = c * y - s * before;
  }
};

// Makes [a b; c d] either an upper triangle, or such that a = d and b and c have opposite signs.
template <class T> Rotation<T> standardize(T& a, T& b, T& c, T& d) {
  constexpr T eps = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
  Rotation<T> rotation;
  if (c == 0) return rotation;
  if (b == 0) {
    const T before = a;
    a = d, d = before;
    b = -c, c = 0;
    return {0, 1};
  }
  const T gap = a - d, half = gap / 2;
  if (gap == 0 && signbit(b) != signbit(c)) return rotation;
  const T more = max(abs(b), abs(c)), less = copysign(min(abs(b), abs(c)), b) * copysign(T(1), c);
  const T scale = max(abs(half), more), z = half / scale * half + more / scale * less;
  if (z >= 4 * eps) {  // two real eigenvalues
    const T root = sqrt(scale) * sqrt(z), far = half + copysign(root, half),
            length = length_of(c, far);
    a = d + far;
    d -= more / far * less;
    rotation = {far / length, c / length};
    b -= c;
    c = 0;
    return rotation;
  }
  // Complex, or about equal: the diagonal becomes equal.
  const T sum = b + c, length = length_of(sum, gap);
  rotation.c = sqrt((1 + abs(sum) / length) / 2);
  rotation.s = -(half / (length * rotation.c)) * copysign(T(1), sum);
  const T aa = a * rotation.c + b * rotation.s, bb = b * rotation.c - a * rotation.s,
          cc = c * rotation.c + d * rotation.s, dd = d * rotation.c - c * rotation.s;
  a = aa * rotation.c + cc * rotation.s;
  b = bb * rotation.c + dd * rotation.s;
  c = cc * rotation.c - aa * rotation.s;
  d = dd * rotation.c - bb * rotation.s;
  const T middle = (a + d) / 2;
  a = d = middle;
  if (c == 0) return rotation;
  if (b == 0) {
    b = -c, c = 0;
    return {-rotation.s, rotation.c};
  }
  if (signbit(b) != signbit(c)) return rotation;
  const T left = sqrt(abs(b)), right = sqrt(abs(c)), p = copysign(left * right, c),
          inverse = 1 / sqrt(abs(b + c));
  a = middle + p;
  d = middle - p;
  b -= c;
  c = 0;
  const T c1 = left * inverse, s1 = right * inverse;
  return {rotation.c * c1 - rotation.s * s1, rotation.c * s1 + rotation.s * c1};
}

// h (n x n, zero below its subdiagonal, and to the right of its columns) becomes a triangle with
// blocks of two on the diagonal, and q what it was times the product of its reflections, unless q
// is null: then only h's diagonal blocks are right. Of numbers about as large as 1.
template <class T> struct Schur {
  static constexpr T kUlp = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
  static constexpr int64_t kSteps = 30;    // for each eigenvalue, of which two are enough
  static constexpr int64_t kUnusual = 10;  // after so many steps another shift is tried

  int64_t n, ld;
  T *h, *q;
  T least;  // what is no larger counts as zero

  T& at_(int64_t r, int64_t c) const { return h[c * ld + r]; }

  bool run(T* values) const {
    for (int64_t last = n - 1; last >= 0;) {
      const int64_t first = block(last);
      if (first < 0) return false;
      T* to = values + 2 * first;
      if (first == last) {
        to[0] = at_(last, last);
        to[1] = 0;
      } else {
        finish_pair(first);
        const T b = at_(first, last), c = at_(last, first);
        to[0] = at_(first, first), to[2] = at_(last, last);
        to[1] = c == 0 ? T(0) : sqrt(abs(b)) * sqrt(abs(c));
        to[3] = -to[1];
      }
      last = first - 1;
    }
    return true;
  }

 private:
  struct Shifts {
    T re1, im1, re2, im2;
  };

  bool vanishes(int64_t k, int64_t last) const {
    const T beside = abs(at_(k, k - 1));
    if (beside <= least) return true;
    const T here = at_(k, k), before = at_(k - 1, k - 1);
    T both = abs(here) + abs(before);
    if (both == 0) {
      if (k >= 2) both += abs(at_(k - 1, k - 2));
      if (k < last) both += abs(at_(k + 1, k));
    }
    if (beside > kUlp * both) return false;
    const T above = abs(at_(k - 1, k)), gap = abs(before - here);
    const T ab = max(beside, above), ba = min(beside, above), aa = max(abs(here), gap),
            bb = min(abs(here), gap), s = aa + ab;
    return ba * (ab / s) <= max(least, kUlp * (bb * (aa / s)));
  }

  // Steps until one or two rows up to `last` stand alone; returns the first of them, or -1.
  int64_t block(int64_t last) const {
    int64_t first = 0;
    for (int64_t count = 1; count <= kSteps * max<int64_t>(10, n); ++count) {
      int64_t k = last;
      while (k > first && !vanishes(k, last)) --k;
      first = k;
      if (first > 0) at_(first, first - 1) = 0;
      if (first + 1 >= last) return first;
      step(first, last, shifts(first, last, count));
    }
    return -1;
  }

  // The eigenvalues of the last two rows; of real ones the nearer one twice.
  Shifts shifts(int64_t first, int64_t last, int64_t count) const {
    T a = at_(last - 1, last - 1), b = at_(last - 1, last), c = at_(last, last - 1),
      d = at_(last, last);
    if (count % kUnusual == 0) {
      const bool at_end = count % (2 * kUnusual) == 0;
      const int64_t i = at_end ? last : first;
      c = at_end ? abs(at_(i, i - 1)) + abs(at_(i - 1, i - 2))
                 : abs(at_(i + 1, i)) + abs(at_(i + 2, i + 1));
      a = d = T(0.75) * c + at_(i, i);
      b = T(-0.4375) * c;
    }
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

  // The block of two rows from i on, and what lies above and right of it.
  void finish_pair(int64_t i) const {
    const Rotation<T> rotation =
        standardize(at_(i, i), at_(i, i + 1), at_(i + 1, i), at_(i + 1, i + 1));
    if (!q) return;
    for (int64_t c = i + 2; c < n; ++c) rotation(at_(i, c), at_(i + 1, c));
    for (int64_t r = 0; r < i; ++r) rotation(at_(r, i), at_(r, i + 1));
    for (int64_t r = 0; r < n; ++r) rotation(q[i * ld + r], q[(i + 1) * ld + r]);
  }
};

}  // namespace
}  // namespace taeda::cpu::simd::TAEDA_ISA
