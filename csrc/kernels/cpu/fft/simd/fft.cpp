#include "kernels/cpu/fft/simd/fft.h"

#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

// Tails are done with vectors half as long, down to 16 bytes, and then single numbers: masked loads
// and stores would be slower on AVX2.
template <class T, int64_t N>
constexpr int64_t kFewer = N * static_cast<int64_t>(sizeof(T)) > 16 ? N / 2 : 1;

template <class V> struct Complex {
  V r, i;
};
template <class V> FN Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {a.r + b.r, a.i + b.i};
}
template <class V> FN Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {a.r - b.r, a.i - b.i};
}
// -i a
template <class V> FN Complex<V> times_minus_i(Complex<V> a) { return {a.i, -a.r}; }
template <class V, class W> FN Complex<V> times(Complex<V> a, W r, W i) {
  return {a.r * r - a.i * i, a.r * i + a.i * r};
}

// ---- transforms of fixed length ----
template <class T, class V> FN void transform2(Complex<V>* a) {
  const Complex<V> t = a[0] - a[1];
  a[0] = a[0] + a[1];
  a[1] = t;
}
template <class T, class V> FN void transform3(Complex<V>* a) {
  constexpr T half_root3 = static_cast<T>(0.86602540378443864676);
  const Complex<V> sum = a[1] + a[2], d = a[1] - a[2];
  const Complex<V> middle = {a[0].r - sum.r * T(0.5), a[0].i - sum.i * T(0.5)};
  const Complex<V> side = {d.i * half_root3, -(d.r * half_root3)};
  a[0] = a[0] + sum;
  a[1] = middle + side;
  a[2] = middle - side;
}
template <class T, class V> FN void transform4(Complex<V>* a) {
  const Complex<V> p = a[0] + a[2], m = a[0] - a[2], q = a[1] + a[3],
                   d = times_minus_i(a[1] - a[3]);
  a[0] = p + q;
  a[1] = m + d;
  a[2] = p - q;
  a[3] = m - d;
}
template <class T, class V> FN void transform5(Complex<V>* a) {
  constexpr T c1 = static_cast<T>(0.30901699437494742410),
              s1 = static_cast<T>(0.95105651629515357212),
              c2 = static_cast<T>(-0.80901699437494742410),
              s2 = static_cast<T>(0.58778525229247312917);
  const Complex<V> p1 = a[1] + a[4], m1 = a[1] - a[4], p2 = a[2] + a[3], m2 = a[2] - a[3];
  const Complex<V> u = {a[0].r + p1.r * c1 + p2.r * c2, a[0].i + p1.i * c1 + p2.i * c2};
  const Complex<V> v = {a[0].r + p1.r * c2 + p2.r * c1, a[0].i + p1.i * c2 + p2.i * c1};
  const Complex<V> x = times_minus_i(Complex<V>{m1.r * s1 + m2.r * s2, m1.i * s1 + m2.i * s2});
  const Complex<V> y = times_minus_i(Complex<V>{m1.r * s2 - m2.r * s1, m1.i * s2 - m2.i * s1});
  a[0] = a[0] + (p1 + p2);
  a[1] = u + x;
  a[2] = v + y;
  a[3] = v - y;
  a[4] = u - x;
}
template <class T, class V> FN void transform8(Complex<V>* a) {
  constexpr T h = static_cast<T>(0.70710678118654752440);
  Complex<V> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
  transform4<T>(even);
  transform4<T>(odd);
  odd[1] = {(odd[1].r + odd[1].i) * h, (odd[1].i - odd[1].r) * h};
  odd[2] = times_minus_i(odd[2]);
  odd[3] = {(odd[3].i - odd[3].r) * h, -((odd[3].r + odd[3].i) * h)};
  for (int k = 0; k < 4; ++k) {
    a[k] = even[k] + odd[k];
    a[k + 4] = even[k] - odd[k];
  }
}
template <int R, class T, class V> FN void transform(Complex<V>* a) {
  if constexpr (R == 2) transform2<T>(a);
  else if constexpr (R == 3) transform3<T>(a);
  else if constexpr (R == 4) transform4<T>(a);
  else if constexpr (R == 5) transform5<T>(a);
  else transform8<T>(a);
}

// ---- passes ----
template <class T> struct Columns {
  int64_t s;
  const T *xr, *xi;
  T *yr, *yi;
};

// Columns q0 <= q < q1 of one p.
template <int R, bool Twiddle, class T, int64_t N>
FN void columns(const Columns<T>& c, int64_t from, int64_t to, int64_t step, const T* wr,
                const T* wi, int64_t q0, int64_t q1) {
  using V = Vec<T, N>;
  int64_t q = q0;
  for (; q + N <= q1; q += N) {
    Complex<V> a[R];
    for (int k = 0; k < R; ++k) {
      a[k] = {load<N>(c.xr + from + k * step + q), load<N>(c.xi + from + k * step + q)};
    }
    transform<R, T>(a);
    if constexpr (Twiddle) {
      for (int k = 1; k < R; ++k) a[k] = times(a[k], wr[k], wi[k]);
    }
    for (int k = 0; k < R; ++k) {
      store(c.yr + to + k * c.s + q, a[k].r);
      store(c.yi + to + k * c.s + q, a[k].i);
    }
  }
  if constexpr (N > 1) {
    if (q < q1) columns<R, Twiddle, T, kFewer<T, N>>(c, from, to, step, wr, wi, q, q1);
  }
}

// s == 1: vectors run along p, and their results are stored element by element.
template <int R, class T, int64_t N>
FN void first_columns(const FftPass<T>& f, const Columns<T>& c, int64_t p, int64_t p1) {
  using V = Vec<T, N>;
  const T *wr = f.twiddles, *wi = wr + (R - 1) * f.m;
  for (; p + N <= p1; p += N) {
    Complex<V> a[R];
    for (int k = 0; k < R; ++k) a[k] = {load<N>(c.xr + k * f.m + p), load<N>(c.xi + k * f.m + p)};
    transform<R, T>(a);
    for (int k = 1; k < R; ++k) {
      a[k] = times(a[k], load<N>(wr + (k - 1) * f.m + p), load<N>(wi + (k - 1) * f.m + p));
    }
    T re[R][N], im[R][N];
    for (int k = 0; k < R; ++k) {
      store(re[k], a[k].r);
      store(im[k], a[k].i);
    }
    for (int64_t l = 0; l < N; ++l) {
      for (int k = 0; k < R; ++k) {
        c.yr[(p + l) * R + k] = re[k][l];
        c.yi[(p + l) * R + k] = im[k][l];
      }
    }
  }
  if constexpr (N > 1) first_columns<R, T, kFewer<T, N>>(f, c, p, p1);
}

template <int R, class T>
void fixed_pass(const FftPass<T>& f, const Columns<T>& c, int64_t p0, int64_t p1, int64_t q0,
                int64_t q1) {
  if (f.m == 1) {
    columns<R, false, T, kLanes<T>>(c, 0, 0, c.s, nullptr, nullptr, q0, q1);
    return;
  }
  if (c.s == 1) {
    first_columns<R, T, kLanes<T>>(f, c, p0, p1);
    return;
  }
  for (int64_t p = p0; p < p1; ++p) {
    T wr[R], wi[R];
    for (int k = 1; k < R; ++k) {
      wr[k] = f.twiddles[(k - 1) * f.m + p];
      wi[k] = f.twiddles[(R - 1 + k - 1) * f.m + p];
    }
    columns<R, true, T, kLanes<T>>(c, p * c.s, p * R * c.s, f.m * c.s, wr, wi, q0, q1);
  }
}

// An odd radix by its definition, the pairs k and radix - k together.
template <class T, int64_t N>
FN void odd_columns(const FftPass<T>& f, const Columns<T>& c, int64_t p, int64_t q, int64_t q1) {
  using V = Vec<T, N>;
  const int radix = f.radix, half = radix / 2;
  const int64_t step = f.m * c.s;
  for (; q + N <= q1; q += N) {
    const T *xr = c.xr + p * c.s + q, *xi = c.xi + p * c.s + q;
    T *yr = c.yr + p * radix * c.s + q, *yi = c.yi + p * radix * c.s + q;
    Complex<V> plus[kLargestRadix / 2 + 1], minus[kLargestRadix / 2 + 1];
    const Complex<V> first = {load<N>(xr), load<N>(xi)};
    Complex<V> sum = first;
    for (int j = 1; j <= half; ++j) {
      const Complex<V> a = {load<N>(xr + j * step), load<N>(xi + j * step)};
      const Complex<V> b = {load<N>(xr + (radix - j) * step), load<N>(xi + (radix - j) * step)};
      plus[j] = a + b;
      minus[j] = a - b;
      sum = sum + plus[j];
    }
    store(yr, sum.r);
    store(yi, sum.i);
    for (int k = 1; k <= half; ++k) {
      Complex<V> even = first, odd = {};
      for (int j = 1, at = k; j <= half; ++j) {
        const T cosine = f.roots[at], sine = f.roots[radix + at];
        even = {even.r + plus[j].r * cosine, even.i + plus[j].i * cosine};
        odd = {odd.r + minus[j].r * sine, odd.i + minus[j].i * sine};
        at += k;
        if (at >= radix) at -= radix;
      }
      const Complex<V> side = times_minus_i(odd);
      Complex<V> low = even + side, high = even - side;
      if (f.m > 1) {
        const T *wr = f.twiddles + p, *wi = wr + (radix - 1) * f.m;
        low = times(low, wr[(k - 1) * f.m], wi[(k - 1) * f.m]);
        high = times(high, wr[(radix - k - 1) * f.m], wi[(radix - k - 1) * f.m]);
      }
      store(yr + k * c.s, low.r);
      store(yi + k * c.s, low.i);
      store(yr + (radix - k) * c.s, high.r);
      store(yi + (radix - k) * c.s, high.i);
    }
  }
  if constexpr (N > 1) {
    if (q < q1) odd_columns<T, kFewer<T, N>>(f, c, p, q, q1);
  }
}

template <class T>
void pass(const FftPass<T>& f, int64_t s, const T* xr, const T* xi, T* yr, T* yi, int64_t p0,
          int64_t p1, int64_t q0, int64_t q1) {
  const Columns<T> c{s, xr, xi, yr, yi};
  switch (f.radix) {
    case 2: return fixed_pass<2>(f, c, p0, p1, q0, q1);
    case 3: return fixed_pass<3>(f, c, p0, p1, q0, q1);
    case 4: return fixed_pass<4>(f, c, p0, p1, q0, q1);
    case 5: return fixed_pass<5>(f, c, p0, p1, q0, q1);
    case 8: return fixed_pass<8>(f, c, p0, p1, q0, q1);
    default:
      for (int64_t p = p0; p < p1; ++p) odd_columns<T, kLanes<T>>(f, c, p, q0, q1);
  }
}

// ---- around the passes ----
template <class T> void split(int64_t n, const T* in, T* re, T* im) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    re[i] = in[2 * i];
    im[i] = in[2 * i + 1];
  }
}
template <class T> void join(int64_t n, const T* re, const T* im, T scale, T* out) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    out[2 * i] = re[i] * scale;
    out[2 * i + 1] = im[i] * scale;
  }
}

template <class T>
void multiply(int64_t n, int64_t s, const T* wr, const T* wi, const T* xr, const T* xi, T* yr,
              T* yi) {
  if (s == 1) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T r = xr[i] * wr[i] - xi[i] * wi[i], m = xr[i] * wi[i] + xi[i] * wr[i];
      yr[i] = r;
      yi[i] = m;
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    const T c = wr[j], d = wi[j];
#pragma GCC ivdep
    for (int64_t i = j * s; i < (j + 1) * s; ++i) {
      const T r = xr[i] * c - xi[i] * d, m = xr[i] * d + xi[i] * c;
      yr[i] = r;
      yi[i] = m;
    }
  }
}

// pair(a, b, cos, sin) for the elements of rows k and h - k, k = 1 ... h / 2, and the twiddle
// factors w of row k.
template <class T, class F> FN void each_pair(int64_t h, int64_t s, const T* w, F&& pair) {
  const T *wr = w, *wi = w + h / 2 + 1;
  if (s == 1) {
#pragma GCC ivdep
    for (int64_t k = 1; k <= h / 2; ++k) pair(k, h - k, wr[k], wi[k]);
    return;
  }
  for (int64_t k = 1; k <= h / 2; ++k) {
    const T c = wr[k], d = wi[k];
#pragma GCC ivdep
    for (int64_t q = 0; q < s; ++q) pair(k * s + q, (h - k) * s + q, c, d);
  }
}

template <class T>
void real_after(int64_t h, int64_t s, const T* w, const T* zr, const T* zi, T* xr, T* xi) {
#pragma GCC ivdep
  for (int64_t q = 0; q < s; ++q) {
    const T r = zr[q], i = zi[q];
    xr[q] = r + i;
    xi[q] = 0;
    xr[h * s + q] = r - i;
    xi[h * s + q] = 0;
  }
  each_pair(h, s, w, [=](int64_t a, int64_t b, T c, T d) {
    const T er = (zr[a] + zr[b]) * T(0.5), ei = (zi[a] - zi[b]) * T(0.5);
    const T odd_r = (zi[a] + zi[b]) * T(0.5), odd_i = (zr[b] - zr[a]) * T(0.5);
    const T tr = odd_r * c - odd_i * d, ti = odd_r * d + odd_i * c;
    xr[a] = er + tr;
    xi[a] = ei + ti;
    xr[b] = er - tr;
    xi[b] = ti - ei;
  });
}

template <class T>
void real_before(int64_t h, int64_t s, const T* w, const T* xr, const T* xi, T* zr, T* zi) {
#pragma GCC ivdep
  for (int64_t q = 0; q < s; ++q) {
    const T first = xr[q], last = xr[h * s + q];
    zr[q] = first + last;
    zi[q] = first - last;
  }
  each_pair(h, s, w, [=](int64_t a, int64_t b, T c, T d) {
    const T er = xr[a] + xr[b], ei = xi[a] - xi[b], dr = xr[a] - xr[b], di = xi[a] + xi[b];
    const T odd_r = dr * c + di * d, odd_i = di * c - dr * d;
    zr[a] = er - odd_i;
    zi[a] = ei + odd_r;
    zr[b] = er + odd_i;
    zi[b] = odd_r - ei;
  });
}

template <class T> constexpr FftLoops<T> loops() {
  return {pass<T>, split<T>, join<T>, multiply<T>, real_after<T>, real_before<T>};
}

}  // namespace

extern const ForFloats<FftLoops> fft_kernels = {loops<float>(), loops<double>()};

}  // namespace taeda::cpu::simd::TAEDA_ISA
