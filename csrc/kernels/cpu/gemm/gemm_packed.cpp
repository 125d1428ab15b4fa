#include "kernels/cpu/gemm/gemm_packed.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/simd/panels.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/simd/pick.h"

// Columns of the right side are copied to panels as wide as two registers, [depth][column], or one
// for the last few; the rows of the left side are read where they lie if its elements along the
// depth lie side by side, otherwise some at a time are copied. A result's sum always runs over the
// depth in the same blocks and in order, so its bits do not depend on how the work is cut.
namespace taeda::cpu {
namespace {

constexpr int64_t kDepth = 512;        // at most, of what is multiplied at a time
constexpr int64_t kGroups = 8;         // of rows that are copied at a time
constexpr int64_t kFewRows = 16;       // that do not pay for a copy of the right side
constexpr int64_t kNearest = 1 << 15;  // bytes that stay in the first cache
constexpr int64_t kNear = 1 << 18;     // bytes that stay in a cache that the kernel can wait for
constexpr int64_t kShared = 1 << 20;   // elements that are copied once for all tasks
constexpr int64_t kCopied = 1 << 15;   // of them, worth another thread
constexpr int64_t kMostCols = 256;
constexpr int64_t kLargest = 8 * 32;  // elements of a product's result

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

template <class T> const simd::PanelLoops<T>& loops() {
  using namespace simd;
  if constexpr (std::is_same_v<T, float>) return TAEDA_PICK(panel_kernels).f32;
  else return TAEDA_PICK(panel_kernels).f64;
}
template <class T> simd::Transpose transposition() {
  using namespace simd;
  if constexpr (sizeof(T) == 4) return TAEDA_PICK(transpose_kernels).bytes4;
  else return TAEDA_PICK(transpose_kernels).bytes8;
}

// The rows and columns of a task, from the sizes alone.
struct Cut {
  int64_t rows, cols;

  Cut(int64_t m, int64_t n, int64_t k, bool copies_rows) : rows(m), cols(std::min(n, kMostCols)) {
    constexpr double small = 1 << 18, large = 1 << 23;  // m * n * k that is worth another thread
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double tasks = std::min(work / small, std::clamp(work / large, 8.0, 64.0));
    // Each task copies its rows for itself: if there are such, cut that side first.
    auto cut = [&](bool by_rows, int64_t least) {
      int64_t& side = by_rows ? rows : cols;
      const int64_t whole = by_rows ? m : n;
      for (int64_t parts = ceil_div(whole, side); side >= 2 * least;) {
        if (2 * static_cast<double>(ceil_div(m, rows) * ceil_div(n, cols)) > tasks) return;
        parts *= 2;
        side = round_up(ceil_div(whole, parts), by_rows ? 8 : 32);
      }
    };
    if (copies_rows) cut(true, 32);
    for (const int64_t least : {128, 64, 32}) {
      cut(false, least);
      cut(true, least);
    }
  }
};

template <class T> struct Product {
  int64_t m, n, k;
  MatrixRef<T> a, b;
  simd::Finish<T> finish;
  T* c;
  int64_t ldc;
  const simd::PanelLoops<T>& loop = loops<T>();

  // Of a short left side, elements along the depth are read a row apart.
  bool copies_rows() const {
    return a.trans != Trans::No && k * a.stride * int64_t{sizeof(T)} > kNearest;
  }

  int64_t depth() const { return ceil_div(k, ceil_div(k, kDepth)); }
  int64_t padded(int64_t cols) const { return round_up(cols, loop.half); }

  // Columns from `left` to `right` of `count` rows of the right side, from row p on.
  void copy_panels(int64_t p, int64_t count, int64_t left, int64_t right, T* to) const {
    const int64_t width = 2 * loop.half;
    for (int64_t j = left; j < right; j += width)
      copy_panel(p, count, j, right, to + (j - left) * count);
  }

  // Whether the columns are read where they lie.
  bool in_place(int64_t rows) const {
    return b.trans == Trans::No &&
           (rows <= kFewRows || depth() * b.stride * int64_t{sizeof(T)} <= kNear);
  }

  // The results from row `top` to `bottom` and from column `left` to `right`. shared: all panels,
  // or null.
  void run(int64_t top, int64_t bottom, int64_t left, int64_t right, const T* shared) const {
    const int64_t width = 2 * loop.half, most = depth();
    for (int64_t p = 0; shared && p < k; p += most) {
      const int64_t count = std::min(most, k - p);
      const T* panels = shared + p * padded(n) + left * count;
      run_block(p, count, top, bottom, left, right, {panels, n});
    }
    if (shared) return;
    const int64_t there = in_place(bottom - top) ? (right - left) / width * width : 0;
    Scratch<T> panels(padded(right - left - there) * most);
    for (int64_t p = 0; p < k; p += most) {
      const int64_t count = std::min(most, k - p);
      copy_panels(p, count, left + there, right, panels.data());
      run_block(p, count, top, bottom, left, left + there, {at(b, p, left), right, b.stride});
      run_block(p, count, top, bottom, left + there, right, {panels.data(), right});
    }
  }

  // Where a block of columns is read: as panels one after the other, made of the columns up to
  // `end`, or, where `stride` is not 0, in the matrix itself.
  struct Columns {
    const T* data;
    int64_t end, stride = 0;
  };

  // A block of the depth.
  void run_block(int64_t p, int64_t count, int64_t top, int64_t bottom, int64_t left, int64_t right,
                 Columns columns) const {
    if (left >= right) return;
    const int64_t batch = copies_rows() ? kGroups * loop.rows : loop.rows;
    Scratch<T> rows(copies_rows() ? batch * count : 0);
    for (int64_t i = top; i < bottom; i += batch) {
      const int64_t most = std::min(batch, bottom - i);
      if (copies_rows()) loop.copy_rows(count, most, at(a, i, p), a.stride, rows.data());
      for (int64_t r = 0; r < most; r += loop.rows) {
        const int64_t many = std::min(loop.rows, most - r);
        const T* from = copies_rows() ? rows.data() + r * count : at(a, i + r, p);
        const bool plain = a.trans == Trans::No;
        const int64_t row = plain ? a.stride : 1;
        const int64_t step = plain ? 1 : copies_rows() ? many : a.stride;
        for (int64_t j = left; j < right; j += 2 * loop.half) {
          const T* panel = columns.data + (j - left) * (columns.stride ? 1 : count);
          const int64_t b_row = columns.stride ? columns.stride : panel_width(columns.end - j);
          panel_product(count, many, from, row, step, panel, b_row, p, right - j, i + r, j);
        }
      }
    }
  }

 private:
  static const T* at(const MatrixRef<T>& x, int64_t row, int64_t col) {
    return x.data + (x.trans == Trans::No ? row * x.stride + col : col * x.stride + row);
  }

  // Of a panel that begins where `cols` columns are left.
  int64_t panel_width(int64_t cols) const { return cols > loop.half ? 2 * loop.half : loop.half; }

  // The columns from j on, as many as a panel holds.
  void copy_panel(int64_t p, int64_t count, int64_t j, int64_t right, T* to) const {
    const int64_t width = panel_width(right - j), cols = std::min(width, right - j);
    const T* from = at(b, p, j);
    if (b.trans == Trans::No)
      return loop.copy_panel(count, cols, width > loop.half, from, b.stride, to);
    constexpr auto bytes = static_cast<int64_t>(sizeof(T));
    if (cols < width) std::fill_n(to, count * width, T(0));
    transposition<T>()(reinterpret_cast<char*>(to), width * bytes,
                       reinterpret_cast<const char*>(from), b.stride * bytes, cols, count);
  }

  // `many` rows from i on and `cols` columns from j on, or as many as a panel holds.
  void panel_product(int64_t count, int64_t many, const T* from, int64_t row, int64_t step,
                     const T* panel, int64_t b_row, int64_t p, int64_t cols, int64_t i,
                     int64_t j) const {
    T* to = c + i * ldc + j;
    const int64_t width = panel_width(cols);
    const bool wide = width > loop.half;
    simd::Finish<T> f{finish.alpha, T(1)};  // later blocks of the depth add to what is there
    if (p == 0) {
      f = {finish.alpha, finish.beta, finish.start ? finish.start + j : nullptr,
           finish.of_rows ? finish.of_rows + i : nullptr};
    }
    if (cols >= width) {
      return loop.product(count, many, wide, from, row, step, panel, b_row, f, to, ldc);
    }
    alignas(64) T sums[kLargest];
    loop.product(count, many, wide, from, row, step, panel, b_row, {f.alpha, T(0)}, sums, width);
    const T* v = sums;
    for (int64_t r = 0; r < many; ++r, to += ldc, v += width) {
      if (f.start) std::transform(v, v + cols, f.start, to, std::plus<T>());
      else if (f.of_rows) std::transform(v, v + cols, to, [&](T x) { return x + f.of_rows[r]; });
      else if (f.beta == T(0)) std::copy_n(v, cols, to);
      else std::transform(v, v + cols, to, to, [&](T x, T y) { return x + f.beta * y; });
    }
  }
};

}  // namespace

template <class T>
void gemm_panels(int64_t m, int64_t n, int64_t k, T alpha, MatrixRef<T> a, MatrixRef<T> b, T beta,
                 T* c, int64_t ldc, const T* start, const T* of_rows) {
  const Product<T> product{m, n, k, a, b, {alpha, beta, start, of_rows}, c, ldc};
  const Cut cut(m, n, k, product.copies_rows());
  const int64_t across = ceil_div(n, cut.cols), down = ceil_div(m, cut.rows);
  std::optional<Panels<T>> shared;
  if (down > 1 && n * k <= kShared && !product.in_place(cut.rows)) shared.emplace(k, n, b);
  parallel_for(across * down, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / across * cut.rows, j = t % across * cut.cols;
      product.run(i, std::min(i + cut.rows, m), j, std::min(j + cut.cols, n),
                  shared ? shared->data() : nullptr);
    }
  });
}

template <class T>
Panels<T>::Panels(int64_t k, int64_t n, MatrixRef<T> b)
    : k_(k),
      n_(n),
      panels_(k * round_up(n, loops<T>().half)) {
  if (k == 0) return;
  const Product<T> product{0, n, k, {}, b, {}, nullptr, 0};
  const int64_t depth = product.depth(), width = 2 * loops<T>().half;
  const int64_t grain = std::max<int64_t>(1, kCopied / (width * depth));
  for (int64_t p = 0; p < k; p += depth) {
    const int64_t count = std::min(depth, k - p);
    T* to = panels_.data() + p * product.padded(n);
    parallel_for(ceil_div(n, width), grain, [&](int64_t begin, int64_t end) {
      product.copy_panels(p, count, begin * width, std::min(end * width, n),
                          to + begin * width * count);
    });
  }
}

template <class T> int64_t Panels<T>::rows_together() { return loops<T>().rows; }

template <class T>
void Panels<T>::multiply(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, T beta, T* c,
                         int64_t ldc) const {
  if (k_ == 0) return gemm<T>(m, n, 0, alpha, {a, lda}, {}, beta, c, ldc);
  const Product<T> product{m, n, k_, {a, lda}, {}, {alpha, beta}, c, ldc};
  const int64_t depth = product.depth(), width = 2 * loops<T>().half;
  const int64_t grain = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, m * k_ * width));
  parallel_for(ceil_div(n, width), grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = 0; p < k_; p += depth) {
      const int64_t count = std::min(depth, k_ - p), left = begin * width;
      const T* panels = panels_.data() + p * product.padded(n_) + left * count;
      product.run_block(p, count, 0, m, left, std::min(end * width, n), {panels, n_});
    }
  });
}

template void gemm_panels(int64_t, int64_t, int64_t, float, MatrixRef<float>, MatrixRef<float>,
                          float, float*, int64_t, const float*, const float*);
template void gemm_panels(int64_t, int64_t, int64_t, double, MatrixRef<double>, MatrixRef<double>,
                          double, double*, int64_t, const double*, const double*);
template class Panels<float>;
template class Panels<double>;

}  // namespace taeda::cpu
