// Factorizations of small matrices of a batch, and of one matrix that fits a near cache.
#include <algorithm>

#include "kernels.h"
#include "kernels/cpu/linalg/simd/batched.h"
#include "kernels/cpu/linalg/simd/eigen.h"
#include "kernels/cpu/linalg/simd/reflectors.h"
#include "kernels/cpu/linalg/simd/triangle.h"

namespace taeda::test {
namespace {

using namespace cpu::simd;

// A square matrix by columns.
struct Matrix {
  int64_t n;
  Numbers x;

  explicit Matrix(int64_t size) : n(size), x(static_cast<size_t>(size * size)) {}
  double& at(int64_t i, int64_t j) { return x[static_cast<size_t>(j * n + i)]; }
};

// Triangles L and U, the rows of a in the order in which pivots exchange them.
Matrix lu_of(Matrix a) {
  for (int64_t j = 0; j < a.n; ++j) {
    int64_t best = j;
    for (int64_t i = j; i < a.n; ++i) {
      if (std::abs(a.at(i, j)) > std::abs(a.at(best, j))) best = i;
    }
    for (int64_t c = 0; c < a.n; ++c) std::swap(a.at(j, c), a.at(best, c));
    for (int64_t i = j + 1; i < a.n; ++i) a.at(i, j) /= a.at(j, j);
    for (int64_t c = j + 1; c < a.n; ++c) {
      for (int64_t i = j + 1; i < a.n; ++i) a.at(i, c) -= a.at(i, j) * a.at(j, c);
    }
  }
  return a;
}

// a x, or a' x.
Numbers product(Matrix a, bool transposed, const Numbers& x) {
  Numbers y(x.size());
  for (int64_t i = 0; i < a.n; ++i) {
    for (int64_t j = 0; j < a.n; ++j)
      y[static_cast<size_t>(i)] +=
          (transposed ? a.at(j, i) : a.at(i, j)) * x[static_cast<size_t>(j)];
  }
  return y;
}

Matrix cholesky_of(Matrix a) {
  Matrix l(a.n);
  for (int64_t j = 0; j < a.n; ++j) {
    for (int64_t i = j; i < a.n; ++i) {
      double sum = a.at(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l.at(i, k) * l.at(j, k);
      l.at(i, j) = i == j ? std::sqrt(sum) : sum / l.at(j, j);
    }
  }
  return l;
}

// R above, reflectors below the diagonal.
Matrix qr_of(Matrix a) {
  for (int64_t j = 0; j + 1 < a.n; ++j) {
    double square = 0;
    for (int64_t i = j; i < a.n; ++i) square += a.at(i, j) * a.at(i, j);
    const double first = a.at(j, j), to = std::copysign(std::sqrt(square), -first);
    const double tau = (to - first) / to;
    for (int64_t i = j + 1; i < a.n; ++i) a.at(i, j) /= first - to;
    a.at(j, j) = to;
    for (int64_t c = j + 1; c < a.n; ++c) {
      double along = a.at(j, c);
      for (int64_t i = j + 1; i < a.n; ++i) along += a.at(i, j) * a.at(i, c);
      a.at(j, c) -= tau * along;
      for (int64_t i = j + 1; i < a.n; ++i) a.at(i, c) -= tau * along * a.at(i, j);
    }
  }
  return a;
}

// Of a symmetric matrix, ascending, by Jacobi's rotations.
Numbers eigenvalues_of(Matrix a) {
  for (int sweep = 0; sweep < 12; ++sweep) {
    for (int64_t p = 0; p < a.n; ++p) {
      for (int64_t q = p + 1; q < a.n; ++q) {
        if (std::abs(a.at(p, q)) < 1e-30) continue;
        const double ratio = (a.at(q, q) - a.at(p, p)) / (2 * a.at(p, q));
        const double t = std::copysign(1 / (std::abs(ratio) + std::hypot(ratio, 1.0)), ratio);
        const double c = 1 / std::hypot(t, 1.0), s = c * t;
        const auto rotate = [&](double& x, double& y) {
          const double before = x;
          x = c * before - s * y;
          y = s * before + c * y;
        };
        for (int64_t i = 0; i < a.n; ++i) rotate(a.at(i, p), a.at(i, q));
        for (int64_t i = 0; i < a.n; ++i) rotate(a.at(p, i), a.at(q, i));
      }
    }
  }
  Numbers values;
  for (int64_t i = 0; i < a.n; ++i) values.push_back(a.at(i, i));
  std::sort(values.begin(), values.end());
  return values;
}

// x x', and some of the identity unless `shift` is 0.
Matrix square_of(Matrix x, double shift) {
  Matrix a(x.n);
  for (int64_t i = 0; i < x.n; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      for (int64_t k = 0; k < x.n; ++k) a.at(i, j) += x.at(i, k) * x.at(j, k);
      if (i == j) a.at(i, j) += shift;
    }
  }
  return a;
}
Numbers singular_values_of(const Matrix& a) {
  Numbers values = eigenvalues_of(square_of(a, 0));
  for (double& v : values) v = std::sqrt(std::max(v, 0.0));
  std::reverse(values.begin(), values.end());
  return values;
}

// What the numbers are made to be: any matrix with a diagonal that keeps it far from singular, a
// symmetric, a positive one, or one whose triangles are far from singular with a diagonal of 1 too.
enum class Kind { Any, Symmetric, Positive, Triangle };
Matrix make(Kind kind, Matrix a) {
  if (kind == Kind::Positive) return square_of(a, 8);
  for (int64_t i = 0; i < a.n; ++i) {
    if (kind == Kind::Any) a.at(i, i) += 2 * static_cast<double>(a.n);
    for (int64_t j = 0; kind == Kind::Triangle && j < a.n; ++j)
      a.at(i, j) = i == j ? 1 + std::abs(a.at(i, j)) : a.at(i, j) / static_cast<double>(a.n);
    for (int64_t j = 0; kind == Kind::Symmetric && j < i; ++j) a.at(i, j) = a.at(j, i);
  }
  return a;
}

// Matrices of n rows among numbers.
std::vector<Matrix> matrices_of(const Numbers& x, int64_t n, Kind kind) {
  std::vector<Matrix> all;
  for (int64_t i = 0; (i + 1) * n * n <= std::ssize(x); ++i) {
    Matrix a(n);
    std::copy_n(x.begin() + i * n * n, n * n, a.x.begin());
    all.push_back(make(kind, a));
  }
  return all;
}

template <class T> struct Factor {
  const char* name;
  Kind kind;
  // The results for `count` matrices a (which may be overwritten), one after the other.
  std::function<void(int64_t count, int64_t n, T* a, T* y)> run;
  std::function<Numbers(const Matrix& a)> reference;
};

template <class T>
Kernel factor(const std::string& of, const Factor<T>& f, int64_t n, std::vector<int64_t> counts,
              double tolerance) {
  Options options{.tolerance = tolerance, .specials = false, .sizes = {}};
  for (const int64_t count : counts) options.sizes.push_back(count * n * n);
  const int64_t most = counts.back();
  return Map<T, T>::kernel(
      str(f.name, " ", n, "x", n, of),
      [=](const T* x, int64_t size, T* y) {
        std::vector<T> a;
        for (const Matrix& m : matrices_of(Numbers(x, x + size), n, f.kind))
          a.insert(a.end(), m.x.begin(), m.x.end());
        a.shrink_to_fit();
        f.run(std::min(std::ssize(a) / (n * n), most), n, a.data(), y);
      },
      [=](const Numbers& x) {
        Numbers y;
        for (const Matrix& m : matrices_of(x, n, f.kind)) {
          if (const Numbers one = f.reference(m); std::ssize(y) < most * std::ssize(one))
            y.insert(y.end(), one.begin(), one.end());
        }
        return y;
      },
      options);
}

template <class T> std::vector<Factor<T>> of_batches(const BatchedLoops<T>& loops) {
  std::vector<Factor<T>> all;
  all.push_back({"LU of a batch", Kind::Any,
                 [&loops](int64_t count, int64_t n, T* a, T* y) {
                   std::vector<int32_t> pivots(static_cast<size_t>(count * n)), info(pivots);
                   loops.lu(count, n, n, a, pivots.data(), info.data());
                   std::copy_n(a, count * n * n, y);
                 },
                 [](const Matrix& a) { return lu_of(a).x; }});
  for (const bool transposed : {false, true}) {
    // The right side is made so that the solution is 1, 2, ...
    const auto solution = [](int64_t n) {
      Numbers x;
      for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<double>(i + 1));
      return x;
    };
    all.push_back({transposed ? "solve a', of a batch" : "solve a, of a batch", Kind::Any,
                   [&loops, transposed, solution](int64_t count, int64_t n, T* a, T* y) {
                     std::vector<int32_t> pivots(static_cast<size_t>(count * n)), info(pivots);
                     for (int64_t i = 0; i < count; ++i) {
                       Matrix m(n);
                       std::copy_n(a + i * n * n, n * n, m.x.begin());
                       const Numbers b = product(m, transposed, solution(n));
                       std::copy(b.begin(), b.end(), y + i * n);
                     }
                     loops.lu(count, n, n, a, pivots.data(), info.data());
                     loops.lu_solve(count, n, 1, transposed, a, n * n, pivots.data(), n, y);
                   },
                   [solution](const Matrix& a) { return solution(a.n); }});
  }
  all.push_back({"Cholesky of a batch", Kind::Positive,
                 [&loops](int64_t count, int64_t n, T* a, T* y) {
                   std::vector<int32_t> info(static_cast<size_t>(count));
                   loops.cholesky(count, n, false, a, info.data());
                   for (int64_t i = 0; i < count * n * n; ++i)
                     y[i] = i % n >= i / n % n ? a[i] : T(0);
                 },
                 [](const Matrix& a) { return cholesky_of(a).x; }});
  all.push_back({"QR of a batch", Kind::Any,
                 [&loops](int64_t count, int64_t n, T* a, T* y) {
                   std::vector<T> tau(static_cast<size_t>(count * n));
                   expect(loops.qr(count, n, n, a, tau.data()), "QR is refused");
                   std::copy_n(a, count * n * n, y);
                 },
                 [](const Matrix& a) { return qr_of(a).x; }});
  all.push_back({"eigenvalues of a batch", Kind::Symmetric,
                 [&loops](int64_t count, int64_t n, T* a, T* y) {
                   expect(loops.eigh(count, n, true, a, y, a), "eigh is refused");
                 },
                 [](const Matrix& a) { return eigenvalues_of(a); }});
  all.push_back({"singular values of a batch", Kind::Any,
                 [&loops](int64_t count, int64_t n, T* a, T* y) {
                   expect(loops.svd(count, n, n, a, y, nullptr, nullptr), "svd is refused");
                 },
                 [](const Matrix& a) { return singular_values_of(a); }});
  return all;
}

template <class T>
std::vector<Factor<T>> of_one(const ReflectorLoops<T>& reflectors, const EighLoops<T>& symmetric,
                              const SchurLoops<T>& schur) {
  std::vector<Factor<T>> all;
  all.push_back({"QR", Kind::Any,
                 [&reflectors](int64_t, int64_t n, T* a, T* y) {
                   std::vector<T> tau(static_cast<size_t>(n)),
                       work(static_cast<size_t>(ReflectorLoops<T>::space(n, n)));
                   reflectors.qr(n, n, a, n, tau.data(), work.data());
                   std::copy_n(a, n * n, y);
                 },
                 [](const Matrix& a) { return qr_of(a).x; }});
  all.push_back({"eigh", Kind::Symmetric,
                 [&symmetric](int64_t, int64_t n, T* a, T* y) {
                   std::vector<T> e(static_cast<size_t>(n)),
                       work(static_cast<size_t>(EighLoops<T>::space(n)));
                   expect(symmetric.tridiagonal(n, true, a, y, e.data(), work.data()) &&
                              symmetric.vectors(n, y, e.data(), a, work.data()),
                          "eigh is refused");
                 },
                 [](const Matrix& a) { return eigenvalues_of(a); }});
  all.push_back({"Schur's form", Kind::Symmetric,
                 [&symmetric, &schur](int64_t, int64_t n, T* a, T* y) {
                   const int64_t ld = (n + 15) / 16 * 16;
                   std::vector<T> h(static_cast<size_t>(n * ld)), d(static_cast<size_t>(n)), e(d),
                       work(static_cast<size_t>(EighLoops<T>::space(n)));
                   symmetric.tridiagonal(n, true, a, d.data(), e.data(), work.data());
                   const auto at = [&](int64_t r, int64_t c) -> T& {
                     return h[static_cast<size_t>(c * ld + r)];
                   };
                   for (int64_t i = 0; i < n; ++i) {
                     const auto k = static_cast<size_t>(i);
                     at(i, i) = d[k];
                     if (i + 1 < n) at(i + 1, i) = at(i, i + 1) = e[k];
                   }
                   schur.to_blocks(n, ld, h.data(), nullptr);
                   for (int64_t i = 0; i < n; ++i) {
                     y[i] = at(i, i);
                     if (i + 1 == n || at(i + 1, i) == 0) continue;
                     const T mean = (y[i] + at(i + 1, i + 1)) / 2, half = (y[i] - mean);
                     const T root = std::sqrt(half * half + at(i + 1, i) * at(i, i + 1));
                     y[i] = mean - root;
                     y[++i] = mean + root;
                   }
                   std::sort(y, y + n);
                 },
                 [](const Matrix& a) { return eigenvalues_of(a); }});
  return all;
}

// Systems x m = b with a triangle m, b made so that element j of each solution's side s is s + j.
template <class T>
std::vector<Factor<T>> of_triangles(const TriangleLoops<T>& loops, int64_t sides) {
  const auto solution = [sides](const Matrix& m) {
    Numbers x;
    for (int64_t i = 0; i < m.n * sides; ++i)
      x.push_back(static_cast<double>(i % sides + i / sides));
    return x;
  };
  std::vector<Factor<T>> all;
  for (const bool upper : {true, false}) {
    for (const bool unit : {true, false}) {
      const auto run = [&loops, sides, upper, unit, solution](int64_t, int64_t n, T* a, T* y) {
        const Numbers x = solution(Matrix(n));
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t s = 0; s < sides; ++s) {
            double sum = 0;
            for (int64_t i = upper ? 0 : j; i < (upper ? j + 1 : n); ++i)
              sum += x[static_cast<size_t>(i * sides + s)] * (unit && i == j ? 1 : a[i + j * n]);
            y[s + j * sides] = static_cast<T>(sum);
          }
        }
        if (upper) return loops.solve(n, sides, unit, a, 1, n, y, sides);
        loops.solve(n, sides, unit, a + n * n - 1, -1, -n, y + (n - 1) * sides, -sides);
      };
      static constexpr const char* kNames[] = {"lower", "lower, unit", "upper", "upper, unit"};
      all.push_back({kNames[upper * 2 + unit], Kind::Triangle, run, solution});
    }
  }
  return all;
}

template <class T>
void add(std::vector<Kernel>& list, const std::string& of, const BatchedLoops<T>& batched,
         const ReflectorLoops<T>& reflectors, const TriangleLoops<T>& triangles,
         const EighLoops<T>& symmetric, const SchurLoops<T>& schur, double tolerance) {
  for (const Factor<T>& f : of_batches(batched)) {
    for (const int64_t n : {1, 2, 3, 4, 8, 16})
      list.push_back(factor(of, f, n, {1, batched.lanes - 1, batched.lanes}, tolerance));
  }
  for (const Factor<T>& f : of_one(reflectors, symmetric, schur)) {
    for (const int64_t n : {2, 3, 8, 15, 16, 17, 33, 40})
      list.push_back(factor(of, f, n, {1}, tolerance));
  }
  for (const int64_t sides : {1, 5, 16, 33, 64}) {
    for (const Factor<T>& f : of_triangles(triangles, sides)) {
      for (const int64_t n : {1, 3, 4, 31, 64})
        list.push_back(factor(str(", ", sides, " sides", of), f, n, {1}, tolerance));
    }
  }
}

std::vector<Kernel> factorizations() {
  std::vector<Kernel> list;
  const auto reflectors = TAEDA_SETS(cpu::simd, reflector_kernels);
  const auto triangles = TAEDA_SETS(cpu::simd, triangle_kernels);
  const auto symmetric = TAEDA_SETS(cpu::simd, eigh_kernels);
  const auto schur = TAEDA_SETS(cpu::simd, schur_kernels);
  size_t i = 0;
  for (const auto& [set, batched] : TAEDA_SETS(cpu::simd, batched_kernels)) {
    add<float>(list, " float32 " + set, batched->f32, reflectors[i].second->f32,
               triangles[i].second->f32, symmetric[i].second->f32, schur[i].second->f32, 1e-3);
    add<double>(list, " float64 " + set, batched->f64, reflectors[i].second->f64,
                triangles[i].second->f64, symmetric[i].second->f64, schur[i].second->f64, 1e-11);
    ++i;
  }
  return list;
}

const RegisterFamily family("linalg", factorizations);

}  // namespace
}  // namespace taeda::test
