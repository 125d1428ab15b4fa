// Francis's double steps (1961) on Hessenberg's form, eigenvectors by substitution into Schur's.
#include "kernels/cpu/linalg/simd/eigen.h"

#include "kernels/cpu/linalg/simd/householder.h"
#include "kernels/cpu/linalg/simd/schur.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> struct Number {
  T re, im;

  FN T size() const { return abs(re) + abs(im); }
  FN friend Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
  FN friend Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
  FN friend Number operator*(Number a, T b) { return {a.re * b, a.im * b}; }
  FN friend Number operator*(Number a, Number b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  // Smith's, which does not square.
  FN friend Number operator/(Number a, Number b) {
    if (abs(b.re) >= abs(b.im)) {
      const T t = b.im / b.re, d = b.re + b.im * t;
      return {(a.re + a.im * t) / d, (a.im - a.re * t) / d};
    }
    const T t = b.re / b.im, d = b.re * t + b.im;
    return {(a.re * t + a.im) / d, (a.im * t - a.re) / d};
  }
};
template <class T> FN Number<T> not_less(Number<T> x, T least) {
  return x.size() < least ? Number<T>{least, 0} : x;
}

// As many rows, or a few more where a row's elements would share their places in the first cache.
template <class T> FN int64_t apart(int64_t rows) {
  return rows * sizeof(T) % 512 == 0 ? rows + kColumnBlock : rows;
}

template <class T> struct Eig {
  int64_t n, rows, ld;  // rows: with zeros below; ld: such that rows do not share places in a cache
  T *h, *q, *v;         // the matrix, the product of its reflections, its reflectors or triangle
  T *scales, *re, *im, *sum, *sum_im, *taus, *pairs;

  Eig(int64_t size, T* work)
      : n(size),
        rows(block_up(size)),
        ld(apart<T>(rows)),
        h(work),
        q(h + ld * (n + kColumns)),
        v(q + ld * (n + kColumns)),
        scales(v + ld * (n + kColumns)),
        re(scales + ld),
        im(re + ld),
        sum(im + ld),
        sum_im(sum + ld),
        taus(sum_im + ld),
        pairs(taus + ld) {}

  void load_scaled(const T* a, T factor) const {
    __builtin_memset(h, 0, ld * (n + kColumns) * sizeof(T));
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = 0; r < n; ++r) h[c * ld + r] = a[c * n + r] * factor;
    }
  }

  // Scales rows and columns by powers of two until they are about as long. Returns false for a
  // matrix with a row or column that is zero beside its diagonal.
  bool balance() const {
    for (int64_t i = 0; i < n; ++i) {
      scales[i] = 1;
      bool row = false, column = false;
      for (int64_t k = 0; k < n; ++k) {
        row |= k != i && h[k * ld + i] != 0;
        column |= k != i && h[i * ld + k] != 0;
      }
      if (!row || !column) return false;
    }
    for (bool scaled = true; scaled;) {
      scaled = false;
      for (int64_t i = 0; i < n; ++i) scaled |= balance_one(i);
    }
    return true;
  }
  bool balance_one(int64_t i) const {
    const T of_column = dot(0, rows, h + i * ld, h + i * ld);
    T of_row = 0;
    for (int64_t c = 0; c < n; ++c) of_row += h[c * ld + i] * h[c * ld + i];
    if (of_column == 0 || of_row == 0) return false;
    T column = sqrt(of_column), row = sqrt(of_row), factor = 1;
    const T before = column + row;
    for (; column < row / 2; column *= 2, row /= 2) factor *= 2;
    for (; column / 2 >= row; column /= 2, row *= 2) factor /= 2;
    if (factor == 1 || column + row >= T(0.95) * before) return false;
    if (!(scales[i] * factor > T(0x1p-60) && scales[i] * factor < T(0x1p60))) return false;
    scales[i] *= factor;
    for (int64_t c = 0; c < n; ++c) h[c * ld + i] /= factor;
    for (int64_t r = 0; r < n; ++r) h[i * ld + r] *= factor;
    return true;
  }

  void hessenberg(bool vectors) const {
    for (int64_t k = 0; k + 2 < n; ++k) {
      const int64_t from = block_down(k + 1);
      T *const column = h + k * ld, *const u = v + k * ld;
      T beside;
      for (int64_t r = from; r <= k; ++r) u[r] = 0;
      for (int64_t r = k + 1; r < rows; ++r) u[r] = column[r];
      const T tau = make_reflector(k + 1, rows, u, beside);
      taus[k] = tau;
      for (int64_t r = k + 1; r < n; ++r) column[r] = 0;
      column[k + 1] = beside;
      if (tau == 0) continue;
      sum_columns(0, rows, h, ld, k + 1, n, u, sum);
      for (int64_t r = 0; r < rows; ++r) sum[r] *= tau;
      subtract_from_columns(0, rows, sum, u, k + 1, n, h, ld);
      reflect_columns(from, rows, tau, u, k + 1, n, h, ld);
    }
    if (!vectors) return;
    __builtin_memset(q, 0, ld * (n + kColumns) * sizeof(T));
    for (int64_t c = 0; c < n; ++c) q[c * (ld + 1)] = 1;
    for (int64_t k = n - 2; k-- > 0;)
      reflect_columns(block_down(k + 1), rows, taus[k], v + k * ld, k + 1, n, q, ld);
  }

  // v = the triangle above h's diagonal blocks, so that its columns can be added whole.
  void copy_triangle() const {
    for (int64_t c = 0; c < n; ++c) {
      const int64_t above = c > 0 && h[(c - 1) * ld + c] != 0 ? c - 1 : c;
      T* to = v + c * ld;
      for (int64_t r = 0; r < rows; ++r) to[r] = r < above ? h[c * ld + r] : T(0);
    }
  }

  // x[0 ... rows] of re + i im, less column c times a number.
  void subtract_column(int64_t c, Number<T> x) const {
    for (int64_t r = 0; r < c; r += kLanes<T>) {
      const Vec<T> column = load(v + c * ld + r);
      store(re + r, load(re + r) - column * x.re);
      store(im + r, load(im + r) - column * x.im);
    }
  }

  // The eigenvector of Schur's form for the eigenvalue w in column k, or in k and the one before.
  // Numbers that grow too large make all others smaller.
  void substitute(int64_t k, Number<T> w, T least) const {
    constexpr T most = sizeof(T) == 4 ? T(0x1p50) : T(0x1p400);
    for (int64_t r = 0; r < rows; ++r) re[r] = im[r] = 0;
    int64_t j = k - 1;
    if (w.im == 0) {
      re[k] = 1;
      subtract_column(k, {1, 0});
    } else {
      --j;
      const T b = h[k * ld + k - 1], c = h[(k - 1) * ld + k];
      const bool upper = abs(b) >= abs(c);
      re[k - 1] = upper ? T(1) : -w.im / c;
      im[k] = upper ? w.im / b : T(1);
      subtract_column(k - 1, {re[k - 1], 0});
      subtract_column(k, {0, im[k]});
    }
    auto limit = [&](T size) {
      if (size <= most) return;
      const T factor = 1 / size;
      for (int64_t r = 0; r <= k; ++r) re[r] *= factor, im[r] *= factor;
    };
    for (; j >= 0; --j) {
      const bool pair = j > 0 && h[(j - 1) * ld + j] != 0;
      const Number<T> d = not_less<T>({h[j * ld + j] - w.re, -w.im}, least);
      if (!pair) {
        limit((abs(re[j]) + abs(im[j])) / d.size());
        const Number<T> x = Number<T>{re[j], im[j]} / d;
        re[j] = x.re, im[j] = x.im;
        subtract_column(j, x);
        continue;
      }
      // [a b; c d] (x, y) = (p, r), both diagonal elements equal and b c < 0.
      const T b = h[j * ld + j - 1], c = h[(j - 1) * ld + j];
      const Number<T> square = d * d,
                      det = not_less<T>({square.re - b * c, square.im}, least * (abs(b) + abs(c)));
      T size = abs(re[j]) + abs(im[j]) + abs(re[j - 1]) + abs(im[j - 1]);
      size *= max(d.size(), max(abs(b), abs(c))) / det.size();
      limit(size);
      const Number<T> p{re[j - 1], im[j - 1]}, r{re[j], im[j]};
      const Number<T> x = (d * p - r * b) / det, y = (d * r - p * c) / det;
      re[j - 1] = x.re, im[j - 1] = x.im;
      re[j] = y.re, im[j] = y.im;
      subtract_column(j - 1, x);
      subtract_column(j, y);
      --j;
    }
  }
};

// Vectors in work space as pairs of numbers, of length 1: real ones with the sign that they have,
// complex ones rotated so that the largest element is real.
template <class T> void store(int64_t n, bool complex, T* re, T* im, T* to) {
  T most = 0, square = 0;
  int64_t largest = 0;
  for (int64_t r = 0; r < n; ++r) most = max(most, max(abs(re[r]), abs(im[r])));
  const T inverse = 1 / most;
  T of_largest = -1;
  for (int64_t r = 0; r < n; ++r) {
    re[r] *= inverse, im[r] *= inverse;
    const T size = re[r] * re[r] + im[r] * im[r];
    square += size;
    if (size > of_largest) largest = r, of_largest = size;
  }
  const T scale = 1 / sqrt(square);
  Rotation<T> rotation;
  if (complex) {
    const T length = copysign(sqrt(of_largest), re[largest]);
    rotation = {re[largest] / length, im[largest] / length};
  }
  for (int64_t r = 0; r < n; ++r) {
    rotation(re[r], im[r]);
    if (r == largest) im[r] = 0;
    to[2 * r] = re[r] * scale;
    to[2 * r + 1] = im[r] * scale;
    if (complex) {
      to[2 * (n + r)] = to[2 * r];
      to[2 * (n + r) + 1] = -to[2 * r + 1];
    }
  }
}

template <class T> bool eig(int64_t n, const T* a, T* values, T* vectors, T* memory) {
  const T most = largest_size(n * n, a);
  if (!can_be_squared(most)) return false;
  const Eig<T> work(n, memory);
  constexpr T ulp = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52),
              tiny = sizeof(T) == 4 ? T(__FLT_MIN__) : T(__DBL_MIN__);
  // By a power of two, which changes no digit.
  const T scale = static_cast<T>(__builtin_ldexp(1.0, __builtin_ilogb(static_cast<double>(most))));
  work.load_scaled(a, 1 / scale);
  if (!work.balance()) return false;
  work.hessenberg(vectors);
  const Schur<T> schur{n, work.ld, work.h, vectors ? work.q : nullptr,
                       tiny * (static_cast<T>(n) / ulp)};
  T* const found = work.pairs;
  if (!schur.run(found)) return false;
  for (int64_t i = 0; i < 2 * n; ++i) values[i] = found[i] * scale;
  if (!vectors) return true;
  work.copy_triangle();
  for (int64_t k = n; k-- > 0;) {
    const bool complex = found[2 * k + 1] != 0;
    const Number<T> w{found[2 * k], abs(found[2 * k + 1])};
    work.substitute(k, w, max(ulp * w.size(), ulp * ulp));
    T *const re = work.sum, *const im = work.sum_im;
    sum_columns(0, work.rows, work.q, work.ld, 0, k + 1, work.re, re);
    if (complex) sum_columns(0, work.rows, work.q, work.ld, 0, k + 1, work.im, im);
    for (int64_t r = 0; r < n; ++r) {
      re[r] *= work.scales[r];
      im[r] = complex ? im[r] * work.scales[r] : T(0);
    }
    k -= complex;
    store(n, complex, re, im, vectors + 2 * k * n);
  }
  return true;
}

template <class T> constexpr EigLoops<T> eig_loops{eig<T>};

}  // namespace

extern constinit const ForFloats<EigLoops> eig_kernels{eig_loops<float>, eig_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
