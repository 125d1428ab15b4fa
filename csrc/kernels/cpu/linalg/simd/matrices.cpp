#include "kernels/cpu/linalg/simd/matrices.h"

#include "kernels/cpu/linalg/simd/abreast.h"
#include "kernels/cpu/linalg/simd/signs.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kSide = kSmallMatrix;
constexpr int kSweeps = 20;  // which no matrix needs

template <class T> using V = typename Vector<T>::type;

template <class T> FN V<T> all(T x) { return V<T>{} + x; }
template <class T> FN V<T> size_of(V<T> x) { return x < 0 ? -x : x; }
template <class T> FN V<T> larger(V<T> a, V<T> b) { return a > b ? a : b; }
template <class T> FN V<T> smaller(V<T> a, V<T> b) { return a > b ? b : a; }
template <class T> FN V<T> root(V<T> x) {
  alignas(kBytes) T each[kLanes<T>];
  at(each) = x;
  for (T& e : each) e = taeda::TAEDA_ISA::sqrt(e);
  return at(each);
}
// Whether all lanes are at most `most`, which none that is not a number is.
template <class T> FN bool within(V<T> x, T most) {
  alignas(kBytes) T each[kLanes<T>];
  at(each) = x;
  bool good = true;
  for (T e : each) good &= e <= most;
  return good;
}

// Numbers up to kMost have products of squares. From kLeast on they have squares, and from kScale
// on products of squares, beside which those of rounding errors do not vanish.
template <class T> constexpr T kMost = sizeof(T) == 4 ? T(0x1p28) : T(0x1p250);
template <class T> constexpr T kLeast = sizeof(T) == 4 ? T(0x1p-50) : T(0x1p-450);
template <class T> constexpr T kScale = sizeof(T) == 4 ? T(0x1p-14) : T(0x1p-200);
// Of what is no shorter all products of squares count.
template <class T> constexpr T kShort = sizeof(T) == 4 ? T(0x1p-36) : T(0x1p-250);
template <class T> constexpr T kEps = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);

template <class T> struct Matrices {
  V<T> x[kSide * kSide];
  V<T> largest;  // of the sizes of each one's elements

  // Returns whether all numbers can be computed with. row, col: steps from one to the next.
  bool load(int64_t count, int64_t m, int64_t n, const T* a, int64_t row, int64_t col,
            bool triangle = false) {
    largest = all(T(0));
    V<T> bad = all(T(0));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = triangle ? j : 0; i < m; ++i) {
        V<T>& v = x[j * m + i];
        gather(v, a + i * row + j * col, m * n, count);
        const V<T> s = size_of<T>(v);
        largest = larger<T>(largest, s);
        bad = s <= all(kMost<T>) ? bad : all(T(1));
      }
    }
    return within<T>(bad, T(0));
  }

  // Whether what is not all zeros is at least as large as that.
  static bool from(V<T> sizes, T least) {
    return within<T>(sizes == 0 ? all(T(0)) : least / sizes, T(1));
  }
};

// What turns two directions so that their product, which is `mixed`, vanishes; `gap` is how much
// longer the second one is. Jacobi's rotation by the smaller angle.
template <class T> struct Rotation {
  V<T> c, s, t;

  Rotation(V<T> gap, V<T> mixed) {
    const V<T> ratio = gap / (mixed + mixed), far = root<T>(ratio * ratio + T(1));
    t = mixed == 0 ? all(T(0)) : T(1) / (ratio < 0 ? ratio - far : ratio + far);
    c = all(T(1)) / root<T>(t * t + T(1));
    s = c * t;
  }
  void turn(V<T>& a, V<T>& b) const {
    const V<T> before = a;
    a = c * before - s * b;
    b = s * before + c * b;
  }
};

template <class T> void store(int64_t count, int64_t size, const V<T>* x, T* a) {
  for (int64_t e = 0; e < size; ++e) scatter(x[e], a + e, size, count);
}

// Vectors that are turned together: the columns of a matrix, `rows` high.
template <class T> struct Columns {
  V<T>* x;
  int64_t rows;

  V<T>* operator[](int64_t j) const { return x + j * rows; }
  void turn(const Rotation<T>& r, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < rows; ++i) r.turn((*this)[p][i], (*this)[q][i]);
  }
  // p and q change places where p's value is the larger one.
  void order(const V<T>& p_value, const V<T>& q_value, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < rows; ++i) {
      V<T>&a = (*this)[p][i], &b = (*this)[q][i];
      const V<T> before = a;
      a = p_value > q_value ? b : a;
      b = p_value > q_value ? before : b;
    }
  }
  void make_identity() const {
    for (int64_t e = 0; e < rows * rows; ++e) x[e] = all(T(e % (rows + 1) == 0));
  }
};

// Ascending; what belongs to each value is carried along.
template <class T, class... Kept> void sort(int64_t n, V<T>* values, const Kept&... kept) {
  for (int64_t last = n - 1; last > 0; --last) {
    for (int64_t i = 0; i < last; ++i) {
      const V<T> a = values[i], b = values[i + 1];
      (kept.order(a, b, i, i + 1), ...);
      values[i] = smaller<T>(a, b);
      values[i + 1] = larger<T>(a, b);
    }
  }
}

// One-sided Jacobi (Hestenes, 1958): columns are turned until all are orthogonal; then they are the
// left vectors as long as the singular values, and what was turned with them are the right ones.
template <class T>
bool svd(int64_t count, int64_t m, int64_t n, const T* a, T* values, T* u, T* vh) {
  Matrices<T> work;
  V<T> turns[kSide * kSide], lengths[kSide];
  const bool high = m >= n;
  const int64_t rows = high ? m : n, cols = high ? n : m;
  if (!work.load(count, rows, cols, a, high ? 1 : m, high ? m : 1)) return false;
  if (!work.from(work.largest, kScale<T>)) return false;
  const Columns<T> x{work.x, rows}, right{turns, u ? cols : 0};
  right.make_identity();
  const V<T> near = all(kEps<T> * kEps<T> * static_cast<T>(rows * rows));
  auto product = [&](int64_t p, int64_t q) {
    V<T> sum = x[p][0] * x[q][0];
    for (int64_t i = 1; i < rows; ++i) sum += x[p][i] * x[q][i];
    return sum;
  };
  for (int sweep = 0;; ++sweep) {
    V<T> turned = all(T(0));
    for (int64_t p = 0; p < cols; ++p) {
      for (int64_t q = p + 1; q < cols; ++q) {
        const V<T> first = product(p, p), second = product(q, q), mixed = product(p, q);
        turned = mixed * mixed <= near * first * second ? turned : all(T(1));
        const Rotation<T> r(second - first, mixed);
        x.turn(r, p, q);
        right.turn(r, p, q);
      }
    }
    if (within<T>(turned, T(0))) break;
    if (sweep == kSweeps) return false;
  }
  for (int64_t j = 0; j < cols; ++j) lengths[j] = root<T>(product(j, j));
  sort<T>(cols, lengths, x, right);
  // A column that vanishes has no direction; that of a very short one is not well known.
  if (u && !within<T>(kShort<T> / lengths[0], T(1))) return false;
  T *const of_x = high ? u : vh, *const of_right = high ? vh : u;
  const int64_t size = rows * cols, square = cols * cols;
  for (int64_t j = 0; j < cols; ++j) {
    const int64_t to = cols - 1 - j;
    scatter(lengths[j], values + to, cols, count);
    if (!u) continue;
    const V<T> scale = T(1) / lengths[j];
    // u lies by columns, and so does vh: its rows are vectors.
    for (int64_t i = 0; i < rows; ++i)
      scatter(x[j][i] * scale, of_x + (high ? to * rows + i : i * cols + to), size, count);
    for (int64_t i = 0; i < cols; ++i)
      scatter(right[j][i], of_right + (high ? i * cols + to : to * cols + i), square, count);
  }
  return true;
}

// Jacobi's method: one element after the other beside the diagonal is turned to zero.
template <class T>
bool eigh(int64_t count, int64_t n, bool upper, const T* a, T* values, T* vectors) {
  Matrices<T> work;
  V<T> turns[kSide * kSide], diagonal[kSide];
  if (!work.load(count, n, n, a, upper ? n : 1, upper ? 1 : n, true)) return false;
  if (!work.from(work.largest, kScale<T>)) return false;
  V<T>* const x = work.x;  // the lower triangle
  const Columns<T> kept{turns, vectors ? n : 0};
  kept.make_identity();
  auto element = [&](int64_t i, int64_t j) -> V<T>& { return i > j ? x[j * n + i] : x[i * n + j]; };
  const V<T> near = work.largest * (kEps<T> / 8);
  for (int sweep = 0;; ++sweep) {
    V<T> turned = all(T(0));
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        V<T>& mixed = element(q, p);
        turned = size_of<T>(mixed) <= near ? turned : all(T(1));
        const Rotation<T> r(element(q, q) - element(p, p), mixed);
        element(p, p) -= r.t * mixed;
        element(q, q) += r.t * mixed;
        mixed = all(T(0));
        for (int64_t i = 0; i < n; ++i) {
          if (i != p && i != q) r.turn(element(i, p), element(i, q));
        }
        kept.turn(r, p, q);
      }
    }
    if (within<T>(turned, T(0))) break;
    if (sweep == kSweeps) return false;
  }
  for (int64_t i = 0; i < n; ++i) diagonal[i] = element(i, i);
  sort<T>(n, diagonal, kept);
  for (int64_t i = 0; i < n; ++i) scatter(diagonal[i], values + i, n, count);
  for (int64_t j = 0; vectors && j < n; ++j) {
    V<T>* const v = kept[j];
    V<T> sum = all(T(0));
    for (int64_t i = 0; i < n; ++i) sum += v[i] * sign_weight<T>(i);
    for (int64_t i = 0; i < n; ++i)
      scatter(sum < 0 ? -v[i] : v[i], vectors + j * n + i, n * n, count);
  }
  return true;
}

// Exchanges x[i] and x[with], with >= i, in each lane.
template <class T> FN void exchange(int64_t i, int64_t n, V<T> with, V<T>* x) {
  V<T> top = x[i];
  for (int64_t r = i + 1; r < n; ++r) {
    const auto here = with == static_cast<T>(r);
    const V<T> before = x[r];
    x[r] = here ? x[i] : before;
    top = here ? before : top;
  }
  x[i] = top;
}

template <class T>
void lu(int64_t count, int64_t m, int64_t n, T* a, int32_t* pivots, int32_t* info) {
  V<T> x[kSide * kSide], best[kSide], singular = all(T(0));
  for (int64_t e = 0; e < m * n; ++e) gather(x[e], a + e, m * n, count);
  const int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; ++j) {
    V<T>* const v = x + j * m;
    V<T> pivot = v[j];
    best[j] = all(static_cast<T>(j));
    for (int64_t i = j + 1; i < m; ++i) {
      const auto more = size_of<T>(v[i]) > size_of<T>(pivot);
      best[j] = more ? all(static_cast<T>(i)) : best[j];
      pivot = more ? v[i] : pivot;
    }
    for (int64_t c = 0; c < n; ++c) exchange<T>(j, m, best[j], x + c * m);
    singular = singular == 0 && pivot == 0 ? all(static_cast<T>(j + 1)) : singular;
    pivot = pivot == 0 ? all(T(1)) : pivot;
    for (int64_t i = j + 1; i < m; ++i) v[i] /= pivot;
    for (int64_t c = j + 1; c < n; ++c) {
      V<T>* const to = x + c * m;
      for (int64_t i = j + 1; i < m; ++i) to[i] -= v[i] * to[j];
    }
  }
  store<T>(count, m * n, x, a);
  const int64_t many = count < kLanes<T> ? count : kLanes<T>;
  for (int64_t l = 0; l < many; ++l) {
    for (int64_t j = 0; j < k; ++j) pivots[l * k + j] = static_cast<int32_t>(best[j][l]) + 1;
    info[l] = static_cast<int32_t>(singular[l]);
  }
}

template <class T>
void lu_solve(int64_t count, int64_t n, int64_t cols, bool turned, const T* lu, int64_t lu_step,
              const int32_t* pivots, int64_t pivot_step, T* b) {
  V<T> x[kSide * kSide], row[kSide], c[kSide];
  for (int64_t e = 0; e < n * n; ++e) gather(x[e], lu + e, lu_step, count);
  for (int64_t i = 0; i < n; ++i) {
    T each[kLanes<T>];
    for (int64_t l = 0; l < kLanes<T>; ++l)
      each[l] = static_cast<T>(pivots[(l < count ? l : count - 1) * pivot_step + i] - 1);
    row[i] = at(each);
  }
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < n; ++i) gather(c[i], b + j * n + i, n * cols, count);
    for (int64_t i = 0; !turned && i < n; ++i) exchange<T>(i, n, row[i], c);
    // From the first unknown to the last one by a lower triangle, and back by an upper one.
    for (int64_t p = 0; p < n; ++p) {
      if (turned) {
        for (int64_t i = 0; i < p; ++i) c[p] -= x[p * n + i] * c[i];
        c[p] /= x[p * n + p];
      } else {
        for (int64_t i = p + 1; i < n; ++i) c[i] -= x[p * n + i] * c[p];
      }
    }
    for (int64_t p = n; p-- > 0;) {
      if (turned) {
        for (int64_t i = p + 1; i < n; ++i) c[p] -= x[p * n + i] * c[i];
      } else {
        c[p] /= x[p * n + p];
        for (int64_t i = 0; i < p; ++i) c[i] -= x[p * n + i] * c[p];
      }
    }
    for (int64_t i = n; turned && i-- > 0;) exchange<T>(i, n, row[i], c);
    for (int64_t i = 0; i < n; ++i) scatter(c[i], b + j * n + i, n * cols, count);
  }
}

// The column c, from row `top` on, becomes (I - tau v v') c; v begins with 1.
template <class T> FN void reflect(int64_t top, int64_t m, V<T> tau, const V<T>* v, V<T>* c) {
  V<T> along = c[top];
  for (int64_t i = top + 1; i < m; ++i) along += v[i] * c[i];
  along *= tau;
  c[top] -= along;
  for (int64_t i = top + 1; i < m; ++i) c[i] -= v[i] * along;
}

template <class T> bool qr(int64_t count, int64_t m, int64_t n, T* a, T* tau) {
  Matrices<T> work;
  if (!work.load(count, m, n, a, 1, m)) return false;
  const int64_t k = m < n ? m : n;
  V<T> factors[kSide];
  for (int64_t j = 0; j < k; ++j) {
    V<T>* const v = work.x + j * m;
    V<T> largest = all(T(0)), square = all(T(0));
    for (int64_t i = j + 1; i < m; ++i) {
      largest = larger<T>(largest, size_of<T>(v[i]));
      square += v[i] * v[i];
    }
    if (!work.from(largest, kLeast<T>)) return false;
    // As LAPACK does: what is all zeros already is left as it is, even where negative.
    const V<T> first = v[j], length = root<T>(first * first + square);
    const V<T> to = square == 0 ? first : first < 0 ? length : -length;
    factors[j] = square == 0 ? all(T(0)) : (to - first) / to;
    const V<T> scale = square == 0 ? all(T(0)) : T(1) / (first - to);
    v[j] = to;
    for (int64_t i = j + 1; i < m; ++i) v[i] *= scale;
    for (int64_t c = j + 1; c < n; ++c) reflect<T>(j, m, factors[j], v, work.x + c * m);
  }
  store<T>(count, m * n, work.x, a);
  store<T>(count, k, factors, tau);
  return true;
}

template <class T> void q(int64_t count, int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  V<T> x[kSide * kSide], factors[kSide];
  for (int64_t j = 0; j < k; ++j) gather(factors[j], tau + j, k, count);
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t i = 0; i < m; ++i) {
      if (c < k) gather(x[c * m + i], a + c * m + i, m * n, count);
      else x[c * m + i] = all(T(i == c));
    }
  }
  for (int64_t j = k; j-- > 0;) {
    V<T>* const v = x + j * m;
    for (int64_t c = j + 1; c < n; ++c) reflect<T>(j, m, factors[j], v, x + c * m);
    for (int64_t i = 0; i < j; ++i) v[i] = all(T(0));
    v[j] = T(1) - factors[j];
    for (int64_t i = j + 1; i < m; ++i) v[i] *= -factors[j];
  }
  store<T>(count, m * n, x, a);
}

template <class T>
constexpr MatrixLoops<T> matrix_loops{kLanes<T>, svd<T>, eigh<T>, lu<T>, lu_solve<T>, qr<T>, q<T>};

}  // namespace

extern constinit const MatrixKernels matrix_kernels = {matrix_loops<float>, matrix_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
