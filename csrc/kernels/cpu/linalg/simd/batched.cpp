#include "kernels/cpu/linalg/simd/batched.h"

#include "kernels/cpu/linalg/simd/signs.h"
#include "kernels/cpu/simd/vec.h"

namespace taeda::cpu::simd::TAEDA_ISA {
namespace {

constexpr int64_t kSide = kSmallMatrix;
constexpr int kSweeps = 20;  // which no matrix needs

// An element of `count` matrices that are `step` elements apart. Lanes beyond them repeat the last.
template <class T> FN Vec<T> load_interleaved(const T* from, int64_t step, int64_t count) {
  constexpr int64_t lanes = kLanes<T>;
  alignas(kRegisterBytes) T lane[lanes];
  if (count >= lanes) {
    for (int64_t l = 0; l < lanes; ++l) lane[l] = from[l * step];
  } else {
    for (int64_t l = 0; l < lanes; ++l) lane[l] = from[(l < count ? l : count - 1) * step];
  }
  return load(lane);
}

template <class T> FN void store_interleaved(Vec<T> x, T* to, int64_t step, int64_t count) {
  constexpr int64_t lanes = kLanes<T>;
  alignas(kRegisterBytes) T lane[lanes];
  store(lane, x);
  if (count >= lanes) {
    for (int64_t l = 0; l < lanes; ++l) to[l * step] = lane[l];
  } else {
    for (int64_t l = 0; l < count; ++l) to[l * step] = lane[l];
  }
}

// Lanes without a matrix of their own repeat another one, so they never fail alone.
template <class T> FN Vec<T> all(T x) { return broadcast_to(x); }
template <class V> FN V size_of(V x) { return x < 0 ? -x : x; }
template <class V> FN V root(V x) {
  for (int64_t l = 0; l < kLanesOf<V>; ++l) x[l] = taeda::TAEDA_ISA::sqrt(x[l]);
  return x;
}
// Whether all lanes are at most `most`, which NaN is not.
template <class T> FN bool within(Vec<T> x, T most) {
  return reduce(x <= most, [](auto a, auto b) { return a & b; }) != 0;
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
  Vec<T> x[kSide * kSide];
  Vec<T> largest;  // of the sizes of each one's elements

  // Returns whether all numbers can be computed with. row, col: steps from one to the next.
  bool load_all(int64_t count, int64_t m, int64_t n, const T* a, int64_t row, int64_t col,
                bool triangle = false) {
    largest = all(T(0));
    Vec<T> bad = all(T(0));
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = triangle ? j : 0; i < m; ++i) {
        const Vec<T> v = load_interleaved(a + i * row + j * col, m * n, count), s = size_of(v);
        x[j * m + i] = v;
        largest = max(largest, s);
        bad = s <= all(kMost<T>) ? bad : all(T(1));
      }
    }
    return within<T>(bad, T(0));
  }

  // Whether what is not all zeros is at least as large as that.
  static bool from(Vec<T> sizes, T least) {
    return within<T>(sizes == 0 ? all(T(0)) : least / sizes, T(1));
  }
};

// Jacobi's rotation of two vectors, by the smaller angle, that makes their inner product `mixed`
// vanish; `gap`: the second one's square less the first one's.
template <class T> struct Rotation {
  Vec<T> c, s, t;

  Rotation(Vec<T> gap, Vec<T> mixed) {
    const Vec<T> ratio = gap / (mixed + mixed), far = root(ratio * ratio + T(1));
    t = mixed == 0 ? all(T(0)) : T(1) / (ratio < 0 ? ratio - far : ratio + far);
    c = all(T(1)) / root(t * t + T(1));
    s = c * t;
  }
  void apply(Vec<T>& a, Vec<T>& b) const {
    const Vec<T> before = a;
    a = c * before - s * b;
    b = s * before + c * b;
  }
};

template <class T> void store_all(int64_t count, int64_t size, const Vec<T>* x, T* a) {
  for (int64_t e = 0; e < size; ++e) store_interleaved<T>(x[e], a + e, size, count);
}

// The columns of a matrix, `rows` high.
template <class T> struct Columns {
  Vec<T>* x;
  int64_t rows;

  Vec<T>* operator[](int64_t j) const { return x + j * rows; }
  void rotate(const Rotation<T>& r, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < rows; ++i) r.apply((*this)[p][i], (*this)[q][i]);
  }
  // Exchanges columns p and q where p's value is the larger one.
  void order(const Vec<T>& p_value, const Vec<T>& q_value, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < rows; ++i) {
      Vec<T>&a = (*this)[p][i], &b = (*this)[q][i];
      const Vec<T> before = a;
      a = p_value > q_value ? b : a;
      b = p_value > q_value ? before : b;
    }
  }
  void make_identity() const {
    for (int64_t e = 0; e < rows * rows; ++e) x[e] = all(T(e % (rows + 1) == 0));
  }
};

// Ascending; what belongs to each value is carried along.
template <class T, class... Kept> void sort(int64_t n, Vec<T>* values, const Kept&... kept) {
  for (int64_t last = n - 1; last > 0; --last) {
    for (int64_t i = 0; i < last; ++i) {
      const Vec<T> a = values[i], b = values[i + 1];
      (kept.order(a, b, i, i + 1), ...);
      values[i] = min(a, b);
      values[i + 1] = max(a, b);
    }
  }
}

// One-sided Jacobi (Hestenes 1958): columns are rotated until all are orthogonal. Then their
// lengths are the singular values, their directions the left vectors, and the product of the
// rotations the right ones.
template <class T>
bool svd(int64_t count, int64_t m, int64_t n, const T* a, T* values, T* u, T* vh) {
  Matrices<T> work;
  Vec<T> product_of_rotations[kSide * kSide], lengths[kSide];
  const bool high = m >= n;
  const int64_t rows = high ? m : n, cols = high ? n : m;
  if (!work.load_all(count, rows, cols, a, high ? 1 : m, high ? m : 1)) return false;
  if (!work.from(work.largest, kScale<T>)) return false;
  const Columns<T> x{work.x, rows}, right{product_of_rotations, u ? cols : 0};
  right.make_identity();
  const Vec<T> near = all(kEps<T> * kEps<T> * static_cast<T>(rows * rows));
  auto product = [&](int64_t p, int64_t q) {
    Vec<T> sum = x[p][0] * x[q][0];
    for (int64_t i = 1; i < rows; ++i) sum += x[p][i] * x[q][i];
    return sum;
  };
  for (int sweep = 0;; ++sweep) {
    Vec<T> rotated = all(T(0));
    for (int64_t p = 0; p < cols; ++p) {
      for (int64_t q = p + 1; q < cols; ++q) {
        const Vec<T> first = product(p, p), second = product(q, q), mixed = product(p, q);
        rotated = mixed * mixed <= near * first * second ? rotated : all(T(1));
        const Rotation<T> r(second - first, mixed);
        x.rotate(r, p, q);
        right.rotate(r, p, q);
      }
    }
    if (within<T>(rotated, T(0))) break;
    if (sweep == kSweeps) return false;
  }
  for (int64_t j = 0; j < cols; ++j) lengths[j] = root(product(j, j));
  sort<T>(cols, lengths, x, right);
  // A column that vanishes has no direction; that of a very short one is not well known.
  if (u && !within<T>(kShort<T> / lengths[0], T(1))) return false;
  T *const of_x = high ? u : vh, *const of_right = high ? vh : u;
  const int64_t size = rows * cols, square = cols * cols;
  for (int64_t j = 0; j < cols; ++j) {
    const int64_t to = cols - 1 - j;
    store_interleaved<T>(lengths[j], values + to, cols, count);
    if (!u) continue;
    const Vec<T> scale = T(1) / lengths[j];
    // u lies by columns, and so does vh: its rows are vectors.
    for (int64_t i = 0; i < rows; ++i)
      store_interleaved<T>(x[j][i] * scale, of_x + (high ? to * rows + i : i * cols + to), size,
                           count);
    for (int64_t i = 0; i < cols; ++i)
      store_interleaved<T>(right[j][i], of_right + (high ? i * cols + to : to * cols + i), square,
                           count);
  }
  return true;
}

// Jacobi's method: rotations make one off-diagonal element after the other zero.
template <class T>
bool eigh(int64_t count, int64_t n, bool upper, const T* a, T* values, T* vectors) {
  Matrices<T> work;
  Vec<T> product_of_rotations[kSide * kSide], diagonal[kSide];
  if (!work.load_all(count, n, n, a, upper ? n : 1, upper ? 1 : n, true)) return false;
  if (!work.from(work.largest, kScale<T>)) return false;
  Vec<T>* const x = work.x;  // the lower triangle
  const Columns<T> kept{product_of_rotations, vectors ? n : 0};
  kept.make_identity();
  auto element = [&](int64_t i, int64_t j) -> Vec<T>& {
    return i > j ? x[j * n + i] : x[i * n + j];
  };
  const Vec<T> near = work.largest * (kEps<T> / 8);
  for (int sweep = 0;; ++sweep) {
    Vec<T> rotated = all(T(0));
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        Vec<T>& mixed = element(q, p);
        rotated = size_of(mixed) <= near ? rotated : all(T(1));
        const Rotation<T> r(element(q, q) - element(p, p), mixed);
        element(p, p) -= r.t * mixed;
        element(q, q) += r.t * mixed;
        mixed = all(T(0));
        for (int64_t i = 0; i < n; ++i) {
          if (i != p && i != q) r.apply(element(i, p), element(i, q));
        }
        kept.rotate(r, p, q);
      }
    }
    if (within<T>(rotated, T(0))) break;
    if (sweep == kSweeps) return false;
  }
  for (int64_t i = 0; i < n; ++i) diagonal[i] = element(i, i);
  sort<T>(n, diagonal, kept);
  for (int64_t i = 0; i < n; ++i) store_interleaved<T>(diagonal[i], values + i, n, count);
  for (int64_t j = 0; vectors && j < n; ++j) {
    Vec<T>* const v = kept[j];
    Vec<T> sum = all(T(0));
    for (int64_t i = 0; i < n; ++i) sum += v[i] * sign_weight<T>(i);
    for (int64_t i = 0; i < n; ++i)
      store_interleaved<T>(sum < 0 ? -v[i] : v[i], vectors + j * n + i, n * n, count);
  }
  return true;
}

// Exchanges x[i] and x[with], with >= i, in each lane.
template <class T> FN void exchange(int64_t i, int64_t n, Vec<T> with, Vec<T>* x) {
  Vec<T> top = x[i];
  for (int64_t r = i + 1; r < n; ++r) {
    const auto here = with == static_cast<T>(r);
    const Vec<T> before = x[r];
    x[r] = here ? x[i] : before;
    top = here ? before : top;
  }
  x[i] = top;
}

template <class T>
void lu(int64_t count, int64_t m, int64_t n, T* a, int32_t* pivots, int32_t* info) {
  Vec<T> x[kSide * kSide], best[kSide], singular = all(T(0));
  for (int64_t e = 0; e < m * n; ++e) x[e] = load_interleaved(a + e, m * n, count);
  const int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; ++j) {
    Vec<T>* const v = x + j * m;
    Vec<T> pivot = v[j];
    best[j] = all(static_cast<T>(j));
    for (int64_t i = j + 1; i < m; ++i) {
      const auto more = size_of(v[i]) > size_of(pivot);
      best[j] = more ? all(static_cast<T>(i)) : best[j];
      pivot = more ? v[i] : pivot;
    }
    for (int64_t c = 0; c < n; ++c) exchange<T>(j, m, best[j], x + c * m);
    singular = singular == 0 && pivot == 0 ? all(static_cast<T>(j + 1)) : singular;
    pivot = pivot == 0 ? all(T(1)) : pivot;
    for (int64_t i = j + 1; i < m; ++i) v[i] /= pivot;
    for (int64_t c = j + 1; c < n; ++c) {
      Vec<T>* const to = x + c * m;
      for (int64_t i = j + 1; i < m; ++i) to[i] -= v[i] * to[j];
    }
  }
  store_all<T>(count, m * n, x, a);
  const int64_t many = count < kLanes<T> ? count : kLanes<T>;
  for (int64_t l = 0; l < many; ++l) {
    for (int64_t j = 0; j < k; ++j) pivots[l * k + j] = static_cast<int32_t>(best[j][l]) + 1;
    info[l] = static_cast<int32_t>(singular[l]);
  }
}

template <class T>
void lu_solve(int64_t count, int64_t n, int64_t cols, bool transposed, const T* lu, int64_t lu_step,
              const int32_t* pivots, int64_t pivot_step, T* b) {
  Vec<T> x[kSide * kSide], row[kSide], c[kSide];
  for (int64_t e = 0; e < n * n; ++e) x[e] = load_interleaved(lu + e, lu_step, count);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t l = 0; l < kLanes<T>; ++l)
      row[i][l] = static_cast<T>(pivots[(l < count ? l : count - 1) * pivot_step + i] - 1);
  }
  for (int64_t j = 0; j < cols; ++j) {
    for (int64_t i = 0; i < n; ++i) c[i] = load_interleaved(b + j * n + i, n * cols, count);
    for (int64_t i = 0; !transposed && i < n; ++i) exchange<T>(i, n, row[i], c);
    // From the first unknown to the last one by a lower triangle, and back by an upper one.
    for (int64_t p = 0; p < n; ++p) {
      if (transposed) {
        for (int64_t i = 0; i < p; ++i) c[p] -= x[p * n + i] * c[i];
        c[p] /= x[p * n + p];
      } else {
        for (int64_t i = p + 1; i < n; ++i) c[i] -= x[p * n + i] * c[p];
      }
    }
    for (int64_t p = n; p-- > 0;) {
      if (transposed) {
        for (int64_t i = p + 1; i < n; ++i) c[p] -= x[p * n + i] * c[i];
      } else {
        c[p] /= x[p * n + p];
        for (int64_t i = 0; i < p; ++i) c[i] -= x[p * n + i] * c[p];
      }
    }
    for (int64_t i = n; transposed && i-- > 0;) exchange<T>(i, n, row[i], c);
    for (int64_t i = 0; i < n; ++i) store_interleaved<T>(c[i], b + j * n + i, n * cols, count);
  }
}

// By columns of the lower triangle; of the upper one rows and columns are exchanged.
template <class T> void cholesky(int64_t count, int64_t n, bool upper, T* a, int32_t* info) {
  Vec<T> x[kSide * kSide], failed = all(T(0));
  const int64_t row = upper ? n : 1, col = upper ? 1 : n;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i)
      x[j * n + i] = load_interleaved(a + i * row + j * col, n * n, count);
  }
  for (int64_t j = 0; j < n; ++j) {
    Vec<T>* const v = x + j * n;
    for (int64_t k = 0; k < j; ++k) {
      const Vec<T> factor = x[k * n + j];
      for (int64_t i = j; i < n; ++i) v[i] -= x[k * n + i] * factor;
    }
    const auto positive = v[j] > 0;
    failed = failed == 0 ? (positive ? failed : all(static_cast<T>(j + 1))) : failed;
    v[j] = root(positive ? v[j] : all(T(1)));
    for (int64_t i = j + 1; i < n; ++i) v[i] /= v[j];
  }
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i)
      store_interleaved<T>(x[j * n + i], a + i * row + j * col, n * n, count);
  }
  for (int64_t l = 0; l < count && l < kLanes<T>; ++l) info[l] = static_cast<int32_t>(failed[l]);
}

// The column c, from row `top` on, becomes (I - tau v v') c; v begins with 1.
template <class T> FN void reflect(int64_t top, int64_t m, Vec<T> tau, const Vec<T>* v, Vec<T>* c) {
  Vec<T> along = c[top];
  for (int64_t i = top + 1; i < m; ++i) along += v[i] * c[i];
  along *= tau;
  c[top] -= along;
  for (int64_t i = top + 1; i < m; ++i) c[i] -= v[i] * along;
}

template <class T> bool qr(int64_t count, int64_t m, int64_t n, T* a, T* tau) {
  Matrices<T> work;
  if (!work.load_all(count, m, n, a, 1, m)) return false;
  const int64_t k = m < n ? m : n;
  Vec<T> factors[kSide];
  for (int64_t j = 0; j < k; ++j) {
    Vec<T>* const v = work.x + j * m;
    Vec<T> largest = all(T(0)), square = all(T(0));
    for (int64_t i = j + 1; i < m; ++i) {
      largest = max(largest, size_of(v[i]));
      square += v[i] * v[i];
    }
    if (!work.from(largest, kLeast<T>)) return false;
    // As LAPACK does: what is all zeros already is left as it is, even where negative.
    const Vec<T> first = v[j], length = root(first * first + square);
    const Vec<T> to = square == 0 ? first : first < 0 ? length : -length;
    factors[j] = square == 0 ? all(T(0)) : (to - first) / to;
    const Vec<T> scale = square == 0 ? all(T(0)) : T(1) / (first - to);
    v[j] = to;
    for (int64_t i = j + 1; i < m; ++i) v[i] *= scale;
    for (int64_t c = j + 1; c < n; ++c) reflect<T>(j, m, factors[j], v, work.x + c * m);
  }
  store_all<T>(count, m * n, work.x, a);
  store_all<T>(count, k, factors, tau);
  return true;
}

template <class T> void q(int64_t count, int64_t m, int64_t n, int64_t k, T* a, const T* tau) {
  Vec<T> x[kSide * kSide], factors[kSide];
  for (int64_t j = 0; j < k; ++j) factors[j] = load_interleaved(tau + j, k, count);
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t i = 0; i < m; ++i) {
      if (c < k) x[c * m + i] = load_interleaved(a + c * m + i, m * n, count);
      else x[c * m + i] = all(T(i == c));
    }
  }
  for (int64_t j = k; j-- > 0;) {
    Vec<T>* const v = x + j * m;
    for (int64_t c = j + 1; c < n; ++c) reflect<T>(j, m, factors[j], v, x + c * m);
    for (int64_t i = 0; i < j; ++i) v[i] = all(T(0));
    v[j] = T(1) - factors[j];
    for (int64_t i = j + 1; i < m; ++i) v[i] *= -factors[j];
  }
  store_all<T>(count, m * n, x, a);
}

template <class T>
constexpr BatchedLoops<T> batched_loops{kLanes<T>,   svd<T>,      eigh<T>, lu<T>,
                                        lu_solve<T>, cholesky<T>, qr<T>,   q<T>};

}  // namespace

extern constinit const ForFloats<BatchedLoops> batched_kernels = {batched_loops<float>,
                                                                  batched_loops<double>};

}  // namespace taeda::cpu::simd::TAEDA_ISA
