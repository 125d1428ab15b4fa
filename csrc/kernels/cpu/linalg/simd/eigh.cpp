#include "kernels/cpu/linalg/simd/eigen.h"

#include "kernels/cpu/linalg/simd/householder.h"
#include "kernels/cpu/linalg/simd/signs.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

template <class T> constexpr T kEps = sizeof(T) == 4 ? T(0x1p-24) : T(0x1p-53);
constexpr int kSteps = 30;  // for each eigenvalue, of which two are enough for most

template <class T> struct Work {
  int64_t ld;
  T *x, *q, *v, *w, *tau;  // x: the matrix, then its reflectors; q: what is made of them

  Work(int64_t n, T* memory)
      : ld(block_up(n)),
        x(memory),
        q(x + ld * (n + kColumns)),
        v(q + ld * (n + kColumns)),
        w(v + 2 * ld),
        tau(w + 2 * ld) {}
};

template <class T> void load_symmetric(int64_t n, bool upper, const T* a, int64_t ld, T* x) {
  __builtin_memset(x, 0, ld * (n + kColumns) * sizeof(T));
  for (int64_t c = 0; c < n; ++c) {
    const int64_t first = upper ? 0 : c, last = upper ? c + 1 : n;
    __builtin_memcpy(x + c * ld + first, a + c * n + first, (last - first) * sizeof(T));
    for (int64_t r = first; r < last; ++r) x[r * ld + c] = a[c * n + r];
  }
}

// Columns first <= c < last of a, each less v w[c] + w v[c]. v and w are zero from `last` on.
template <class T>
FN void update(int64_t from, int64_t n, const T* v, const T* w, int64_t first, int64_t last, T* a,
               int64_t ld) {
  constexpr int64_t together = 4;
  for (int64_t c = first; c < last; c += together) {
    for (int64_t r = from; r < n; r += kLanes<T>) {
      const Vec<T> x = load(v + r), y = load(w + r);
      for (int64_t k = c; k < c + together; ++k) {
        T* const to = a + k * ld + r;
        store(to, load(to) - x * w[k] - y * v[k]);
      }
    }
  }
}

template <class T> bool tridiagonal(int64_t n, bool upper, const T* a, T* d, T* e, T* memory) {
  const Work<T> work(n, memory);
  const int64_t ld = work.ld;
  T *x = work.x, *v = work.v, *w = work.w;
  load_symmetric(n, upper, a, ld, x);
  if (!can_be_squared(largest_size(n * ld, x))) return false;
  __builtin_memset(v, 0, 4 * ld * sizeof(T));
  for (int64_t j = 0; j + 1 < n; ++j) {
    const int64_t from = block_down(j + 1);
    T* column = x + j * ld;
    d[j] = column[j];
    for (int64_t r = from; r <= j; ++r) column[r] = 0;
    const T tau = work.tau[j] = make_reflector(j + 1, ld, column, e[j]);
    if (tau == 0) continue;
    for (int64_t r = from; r < ld; ++r) v[r] = column[r];
    sum_columns(from, ld, x, ld, j + 1, n, v, w);
    for (int64_t r = from; r <= j; ++r) w[r] = 0;
    const T shift = dot(from, ld, w, v) * tau / 2;
    for (int64_t r = from; r < ld; ++r) w[r] = tau * (w[r] - shift * v[r]);
    update(from, ld, v, w, j + 1, n, x, ld);
  }
  d[n - 1] = x[(n - 1) * (ld + 1)];
  e[n - 1] = 0;
  return true;
}

// c, s and r so that c g + s f = r and c f - s g = 0.
template <class T> FN void rotation(T g, T f, T& c, T& s, T& r) {
  constexpr T least = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-960);
  T square = f * f + g * g, scale = 1;
  if (square < least) [[unlikely]] {
    const T x = taeda::TAEDA_ISA::abs(f), y = taeda::TAEDA_ISA::abs(g);
    scale = x > y ? x : y;
    if (scale == 0) {
      c = 1, s = 0, r = 0;
      return;
    }
    f /= scale, g /= scale;
    square = f * f + g * g;
  }
  const T length = taeda::TAEDA_ISA::sqrt(square);
  c = g / length, s = f / length, r = length * scale;
}

// The tridiagonal matrix of norm 1 and the vectors that are rotated with it (n columns of q).
template <class T> struct Rotations {
  int64_t n, ld;
  T *d, *e, *q;

  bool is_small(int64_t i) const {
    const T beside = e[i], square = beside * beside;
    return square <= kEps<T> * kEps<T> * taeda::TAEDA_ISA::abs(d[i] * d[i + 1]) ||
           taeda::TAEDA_ISA::abs(beside) <= kEps<T> / 8;
  }

  // One implicit step by Wilkinson's shift from one end of rows lo to hi to the other, such that
  // the element beside the first row, or where it comes from there the last one, vanishes soon.
  void step(int64_t lo, int64_t hi, bool from_hi) const {
    const int64_t way = from_hi ? 1 : -1, m = hi - lo, rows = (n + kLanes<T> - 1) / kLanes<T>;
    T *const x = d + (from_hi ? lo : hi), *const y = e + (from_hi ? lo : hi - 1);
    T* column = q + (from_hi ? hi : lo) * ld;
    T g = (x[way] - x[0]) / (2 * y[0]);
    g = x[way * m] - x[0] + y[0] / (g + copysign(taeda::TAEDA_ISA::sqrt(g * g + 1), g));
    T s = 1, c = 1, p = 0;
    for (int64_t i = m - 1; i >= 0; --i) {
      const T f = s * y[way * i], b = c * y[way * i];
      T r;
      rotation(g, f, c, s, r);
      if (i + 1 < m) y[way * (i + 1)] = r;
      g = x[way * (i + 1)] - p;
      const T t = (x[way * i] - g) * s + 2 * c * b;
      p = s * t;
      x[way * (i + 1)] = g + p;
      g = c * t - b;
      T *const later = column, *const earlier = column -= way * ld;
      for (int64_t k = 0; k < rows; ++k) {
        const Vec<T> x1 = load(later + k * kLanes<T>), x2 = load(earlier + k * kLanes<T>);
        store(later + k * kLanes<T>, c * x1 + s * x2);
        store(earlier + k * kLanes<T>, c * x2 - s * x1);
      }
    }
    x[0] -= p;
    y[0] = g;
  }

  // Francis's and Kublanovskaya's iteration, in the direction in which the diagonal grows.
  bool run() const {
    int64_t hi = n - 1, block_lo = n, block_hi = -1, left = kSteps * n;
    bool from_hi = true;
    while (hi > 0) {
      if (is_small(hi - 1)) {
        --hi;
        continue;
      }
      int64_t lo = hi - 1;
      while (lo > 0 && !is_small(lo - 1)) --lo;
      if (lo < block_lo || hi > block_hi) {
        block_lo = lo, block_hi = hi;
        from_hi = taeda::TAEDA_ISA::abs(d[lo]) <= taeda::TAEDA_ISA::abs(d[hi]);
      }
      if (left-- == 0) return false;
      step(lo, hi, from_hi);
    }
    return true;
  }
};

// Divides the tridiagonal matrix by what becomes its norm, 1; returns that.
template <class T> T normalize(int64_t n, T* d, T* e) {
  T scale = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T x = taeda::TAEDA_ISA::abs(d[i]), y = taeda::TAEDA_ISA::abs(e[i]), z = x > y ? x : y;
    scale = z > scale ? z : scale;
  }
  for (int64_t i = 0; i < n && scale > 0; ++i) d[i] /= scale, e[i] /= scale;
  return scale;
}

// Eigenvalues times scale in ascending order, and their vectors in a, with the sign that makes
// their product with `weights` positive. q is lost.
template <class T>
void store_in_order(int64_t n, T scale, T* d, const T* weights, T* q, int64_t ld, T* a) {
  for (int64_t to = 0; to < n; ++to) {
    int64_t least = to;
    for (int64_t c = to + 1; c < n; ++c) least = d[c] < d[least] ? c : least;
    const T value = d[least];
    T *const from = q + least * ld, *const there = q + to * ld;
    const T sign = dot(0, ld, from, weights) < 0 ? T(-1) : T(1);
    for (int64_t r = 0; r < n; ++r) a[to * n + r] = sign * from[r];
    if (least != to) __builtin_memcpy(from, there, n * sizeof(T));
    d[least] = d[to];
    d[to] = value * scale;
  }
}

template <class T> bool vectors(int64_t n, T* d, T* e, T* a, T* memory) {
  const Work<T> work(n, memory);
  const int64_t ld = work.ld;
  T *const q = work.q, *const weights = work.v;
  __builtin_memset(q, 0, ld * (n + kColumns) * sizeof(T));
  for (int64_t c = 0; c < n; ++c) q[c * (ld + 1)] = 1;
  for (int64_t j = n - 1; j-- > 0;)
    reflect_columns(block_down(j + 1), ld, work.tau[j], work.x + j * ld, j + 1, n, q, ld);
  const T scale = normalize(n, d, e);
  if (!Rotations<T>{n, ld, d, e, q}.run()) return false;
  for (int64_t r = 0; r < ld; ++r) weights[r] = sign_weight<T>(r);
  store_in_order(n, scale, d, weights, q, ld, a);
  return true;
}

template <class T> constexpr EighLoops<T> eigh_loops{tridiagonal<T>, vectors<T>};

}  // namespace

extern constinit const ForFloats<EighLoops> eigh_kernels{eigh_loops<float>, eigh_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
