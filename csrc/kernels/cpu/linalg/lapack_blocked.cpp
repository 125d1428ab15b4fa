#include "kernels/cpu/linalg/lapack_blocked.h"

#include <atomic>
#include <thread>
#include <vector>

#include "kernels/cpu/linalg/lapack_util.h"

// Fortran passes the length of every text behind the other arguments.
#define TAEDA_LAPACK_BLOCKED(T, x)                                                               \
  void scipy_##x##trsm_(const char*, const char*, const char*, const char*, const int*,          \
                        const int*, const T*, const T*, const int*, T*, const int*, size_t,      \
                        size_t, size_t, size_t);                                                 \
  void scipy_##x##trsv_(const char*, const char*, const char*, const int*, const T*, const int*, \
                        T*, const int*, size_t, size_t, size_t);                                 \
  void scipy_##x##potrf_(const char*, const int*, T*, const int*, int*, size_t);                 \
  void scipy_##x##getrf_(const int*, const int*, T*, const int*, int*, int*);                    \
  void scipy_##x##laswp_(const int*, T*, const int*, const int*, const int*, const int*,         \
                         const int*);

using ComplexFloat = std::complex<float>;
using ComplexDouble = std::complex<double>;
extern "C" {
TAEDA_LAPACK_BLOCKED(float, s)
TAEDA_LAPACK_BLOCKED(double, d)
TAEDA_LAPACK_BLOCKED(ComplexFloat, c)
TAEDA_LAPACK_BLOCKED(ComplexDouble, z)
}

namespace taeda::cpu::lapack {
namespace {

constexpr int64_t kPanel = 64;        // columns of a factor that LAPACK computes
constexpr int64_t kNext = 32;         // the same, of a panel that other threads may wait for
constexpr int64_t kWideFrom = 384;    // rows and columns of a matrix that is worth wide panels
constexpr int64_t kNarrowFor = 256;   // of what is left for narrow ones
constexpr int64_t kNear = 1 << 21;    // bytes of a matrix that is factored panel by panel
constexpr int64_t kFirst = 40 << 10;  // bytes of a panel that stays in the first cache
constexpr int64_t kStrip = 128;       // columns that a task multiplies, or applies a panel to
constexpr int64_t kCholesky = 256;    // rows and columns of a Cholesky factor that LAPACK computes

template <class T> struct Routines;
#define TAEDA_ROUTINES(T, x)                         \
  template <> struct Routines<T> {                   \
    static constexpr auto trsm = scipy_##x##trsm_;   \
    static constexpr auto trsv = scipy_##x##trsv_;   \
    static constexpr auto potrf = scipy_##x##potrf_; \
    static constexpr auto getrf = scipy_##x##getrf_; \
    static constexpr auto laswp = scipy_##x##laswp_; \
  };
TAEDA_ROUTINES(float, s)
TAEDA_ROUTINES(double, d)
TAEDA_ROUTINES(ComplexFloat, c)
TAEDA_ROUTINES(ComplexDouble, z)

const char* triangle(bool upper) { return upper ? "U" : "L"; }

// The first of two parts, made of whole panels if it can be.
int64_t half(int64_t n) { return (n / 2 + kPanel - 1) / kPanel * kPanel; }

}  // namespace

template <class T>
void solve_blocks(int64_t n, int64_t many, Triangle how, const T* t, int64_t ldt, T* b,
                  int64_t ldb) {
  if (n <= kPanel || many < 2) {
    const int rows = narrow(how.left ? n : many), cols = narrow(how.left ? many : n),
              ldt_ = leading(ldt), ldb_ = leading(ldb);
    const char* op = how.trans == Trans::No ? "N" : how.trans == Trans::Yes ? "T" : "C";
    if (how.left && many == 1 && n > 1) {
      const int step = 1;
      return Routines<T>::trsv(triangle(how.upper), op, how.unit ? "U" : "N", &rows, t, &ldt_, b,
                               &step, 1, 1, 1);
    }
    const T one(1);
    return Routines<T>::trsm(how.left ? "L" : "R", triangle(how.upper), op, how.unit ? "U" : "N",
                             &rows, &cols, &one, t, &ldt_, b, &ldb_, 1, 1, 1, 1);
  }
  const int64_t top = half(n), rest = n - top;
  const T *corner = t + top * (ldt + 1), *beside = how.upper ? t + top * ldt : t + top;
  T* later = how.left ? b + top : b + top * ldb;
  // Read by rows, as our products do, all matrices are transposed.
  auto subtract = [&](int64_t to_size, T* to, int64_t from_size, const T* from) {
    const MatrixRef<T> left{how.left ? from : beside, how.left ? ldb : ldt,
                            how.left ? Trans::No : how.trans};
    const MatrixRef<T> right{how.left ? beside : from, how.left ? ldt : ldb,
                             how.left ? how.trans : Trans::No};
    gemm(how.left ? many : to_size, how.left ? to_size : many, from_size, T(-1), left, right, T(1),
         to, ldb);
  };
  const bool is_upper = how.upper == (how.trans == Trans::No);
  if (is_upper != how.left) {
    solve_blocks(top, many, how, t, ldt, b, ldb);
    subtract(rest, later, top, b);
    solve_blocks(rest, many, how, corner, ldt, later, ldb);
  } else {
    solve_blocks(rest, many, how, corner, ldt, later, ldb);
    subtract(top, b, rest, later);
    solve_blocks(top, many, how, t, ldt, b, ldb);
  }
}

template <class T>
void swap_rows(int64_t n, T* a, int64_t ld, const int32_t* pivots, int64_t k, bool forward) {
  const int cols = narrow(n), lda = leading(ld), first = 1, last = narrow(k),
            step = forward ? 1 : -1;
  Routines<T>::laswp(&cols, a, &lda, &first, &last, pivots, &step);
}

namespace {

template <class T> int32_t lu_panel(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots) {
  if constexpr (std::is_floating_point_v<T>) {
    if (m * n * int64_t{sizeof(T)} <= kFirst) {
      Scratch<T> work(simd::TriangleLoops<T>::space(m, n));
      return triangle_loops<T>().lu(m, n, a, ld, pivots, work.data());
    }
  }
  const int rows = narrow(m), cols = narrow(n), lda = leading(ld);
  int32_t info = 0;
  Routines<T>::getrf(&rows, &cols, a, &lda, pivots, &info);
  return info;
}

static_assert(kStrip % (2 * kNext) == 0);  // a task's columns are counted by kNext

// One panel after the other, each applied to strips of what lies right of it, by tasks that wait
// for those before them to reach their columns. The first task of a step takes the columns of the
// next panel, and factors it.
template <class T> class LuPanels {
 public:
  LuPanels(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots)
      : m_(m),
        n_(n),
        k_(std::min(m, n)),
        a_(a),
        ld_(ld),
        pivots_(pivots),
        applied_(static_cast<size_t>((n + kNext - 1) / kNext)) {
    // Wide panels are applied faster; while the first and the last ones are factored, less can be
    // done meanwhile.
    for (int64_t at = 0; at < k_;) {
      starts_.push_back(at);
      at += at > 0 && k_ >= kWideFrom && k_ - at > kNarrowFor ? 2 * kNext : kNext;
    }
    steps_ = std::ssize(starts_);
    starts_.push_back(k_);
    info_.resize(static_cast<size_t>(steps_));
  }

  // The first pivot that is zero, counted from 1, or 0.
  int32_t run() {
    for (int64_t s = 0; s < steps_; ++s) {
      if (below(s) < k_) tasks_.push_back({s, -1});
      for (int64_t at = first(s) / kStrip * kStrip; at < n_; at += kStrip)
        tasks_.push_back({s, at});
    }
    factor(0);
    parallel_in_turn(std::ssize(tasks_), [&](int64_t begin, int64_t end) {
      try {
        for (int64_t t = begin; t < end; ++t) run_task(tasks_[static_cast<size_t>(t)]);
      } catch (...) {
        failed_.store(true, std::memory_order_relaxed);
        throw;
      }
    });
    parallel_for(steps_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t s = begin; s < end; ++s) {
        for (int64_t later = s + 1; later < steps_; ++later)
          swap_rows(width(s), a_ + top(s) * ld_ + top(later), ld_, pivots_ + top(later),
                    width(later), true);
      }
    });
    int32_t info = 0;
    for (int64_t s = 0; s < steps_; ++s) {
      const auto above = static_cast<int32_t>(top(s));
      for (int64_t i = top(s); i < below(s); ++i) pivots_[i] += above;
      const int32_t zero = info_[static_cast<size_t>(s)];
      if (!info && zero) info = zero + above;
    }
    return info;
  }

 private:
  struct Task {
    int64_t step, column;  // -1: those of the next panel
  };

  int64_t top(int64_t step) const { return starts_[static_cast<size_t>(step)]; }
  int64_t below(int64_t step) const { return top(step + 1); }
  int64_t width(int64_t step) const { return below(step) - top(step); }
  // The first column that is not the next panel's.
  int64_t first(int64_t step) const { return below(step) < k_ ? below(step + 1) : k_; }

  void run_task(const Task& task) {
    const bool next = task.column < 0;
    const int64_t left = next ? below(task.step) : std::max(task.column, first(task.step));
    const int64_t right = next ? first(task.step) : std::min(task.column + kStrip, n_);
    if (left >= right) return;
    wait_for(factored_, task.step + 1);
    for (int64_t c = left / kNext; c * kNext < right; ++c) wait_for(applied(c), task.step);
    if (failed_.load(std::memory_order_relaxed)) return;
    apply(task.step, left, right);
    for (int64_t c = left / kNext; c * kNext < right; ++c)
      applied(c).store(task.step + 1, std::memory_order_release);
    if (next) factor(task.step + 1);
  }

  void factor(int64_t step) {
    const int64_t at = top(step);
    info_[static_cast<size_t>(step)] =
        lu_panel(m_ - at, width(step), a_ + at * (ld_ + 1), ld_, pivots_ + at);
    factored_.store(step + 1, std::memory_order_release);
  }

  void apply(int64_t step, int64_t left, int64_t right) const {
    const int64_t at = top(step), high = width(step), under = below(step);
    T* b = a_ + left * ld_ + at;
    swap_rows(right - left, b, ld_, pivots_ + at, high, true);
    const Triangle how{.left = true, .upper = false, .unit = true, .trans = Trans::No};
    solve_blocks(high, right - left, how, a_ + at * (ld_ + 1), ld_, b, ld_);
    if (m_ > under)
      gemm(right - left, m_ - under, high, T(-1), {b, ld_}, {a_ + at * ld_ + under, ld_}, T(1),
           b + high, ld_);
  }

  // Tasks are taken in their order, so that who is waited for is at work.
  void wait_for(const std::atomic<int64_t>& done, int64_t steps) const {
    for (int spins = 1; done.load(std::memory_order_acquire) < steps; ++spins) {
      if (failed_.load(std::memory_order_relaxed)) return;
      if (spins % 256 == 0) std::this_thread::yield();  // the core may be needed elsewhere
    }
  }
  std::atomic<int64_t>& applied(int64_t column) { return applied_[static_cast<size_t>(column)]; }

  int64_t m_, n_, k_;
  T* a_;
  int64_t ld_;
  int32_t* pivots_;
  std::vector<int64_t> starts_;  // of panels
  int64_t steps_ = 0;
  std::vector<Task> tasks_;
  std::vector<int32_t> info_;
  std::atomic<int64_t> factored_{0};           // panels
  std::vector<std::atomic<int64_t>> applied_;  // panels, to each kNext columns
  std::atomic<bool> failed_{false};
};

}  // namespace

template <class T> int32_t lu_blocks(int64_t m, int64_t n, T* a, int64_t ld, int32_t* pivots) {
  if (n <= kPanel) return lu_panel(m, n, a, ld, pivots);
  if (n * ld * int64_t{sizeof(T)} <= kNear) return LuPanels<T>(m, n, a, ld, pivots).run();
  const int64_t k = std::min(m, n), left = std::min(m, half(k)), right = n - left;
  const int32_t info = lu_blocks(m, left, a, ld, pivots);
  T *beside = a + left * ld, *corner = beside + left;
  parallel_for(right, kPanel, [&](int64_t begin, int64_t end) {
    T* b = beside + begin * ld;
    swap_rows(end - begin, b, ld, pivots, left, true);
    solve_blocks(left, end - begin,
                 {.left = true, .upper = false, .unit = true, .trans = Trans::No}, a, ld, b, ld);
  });
  if (m == left) return info;
  gemm(right, m - left, left, T(-1), {beside, ld}, {a + left, ld}, T(1), corner, ld);
  const int32_t later = lu_blocks(m - left, right, corner, ld, pivots + left);
  swap_rows(left, a + left, ld, pivots + left, k - left, true);
  for (int64_t i = left; i < k; ++i) pivots[i] += static_cast<int32_t>(left);
  return info || !later ? info : later + static_cast<int32_t>(left);
}

template <class T> int32_t cholesky_blocks(int64_t n, bool upper, T* a, int64_t ld) {
  int32_t info = 0;
  if (n <= kCholesky) {
    const int size = narrow(n), lda = leading(ld);
    Routines<T>::potrf(triangle(upper), &size, a, &lda, &info, 1);
    return info;
  }
  const int64_t top = half(n), rest = n - top;
  info = cholesky_blocks(top, upper, a, ld);
  if (info) return info;
  T *beside = upper ? a + top * ld : a + top, *corner = a + top * (ld + 1);
  parallel_for(rest, kPanel, [&](int64_t begin, int64_t end) {
    solve_blocks(top, end - begin,
                 {.left = upper, .upper = upper, .unit = false, .trans = Trans::Conj}, a, ld,
                 beside + begin * (upper ? ld : 1), ld);
  });
  for (int64_t j = 0; j < rest; j += kStrip) {
    const int64_t width = std::min(kStrip, rest - j);
    if (upper) {
      gemm(width, j + width, top, T(-1), {beside + j * ld, ld}, {beside, ld, Trans::Conj}, T(1),
           corner + j * ld, ld);
    } else {
      gemm(width, rest - j, top, T(-1), {beside + j, ld, Trans::Conj}, {beside + j, ld}, T(1),
           corner + j * (ld + 1), ld);
    }
  }
  info = cholesky_blocks(rest, upper, corner, ld);
  return info ? info + static_cast<int32_t>(top) : 0;
}

#define TAEDA_INSTANTIATE(T)                                                                 \
  template void solve_blocks<T>(int64_t, int64_t, Triangle, const T*, int64_t, T*, int64_t); \
  template int32_t lu_blocks<T>(int64_t, int64_t, T*, int64_t, int32_t*);                    \
  template void swap_rows<T>(int64_t, T*, int64_t, const int32_t*, int64_t, bool);           \
  template int32_t cholesky_blocks<T>(int64_t, bool, T*, int64_t);
TAEDA_INSTANTIATE(float)
TAEDA_INSTANTIATE(double)
TAEDA_INSTANTIATE(ComplexFloat)
TAEDA_INSTANTIATE(ComplexDouble)

}  // namespace taeda::cpu::lapack
