#include "kernels/cpu/gemm/gemm_packed.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "base/cpu_features.h"
#include "base/half.h"
#include "base/thread_pool.h"

// Columns of b are packed into panels two registers wide, [p][column], or one for the last few.
// Rows of a are read where they are if they are contiguous along k, otherwise some at a time are
// packed too. Blocks of k and of columns are such that the panels stay in the second cache. A sum
// always runs over k in the same blocks and in order, so its bits do not depend on how the work is
// cut.
namespace taeda::cpu {
namespace {

constexpr int64_t kPanelBlock = 45 << 10;  // bytes of a panel and a tile's rows: in the first cache
constexpr int64_t kGroups = 16;            // tiles of rows that are packed at a time
constexpr int64_t kFewTileRows = 16;       // that do not pay for packing b
constexpr int64_t kNearest = 1 << 15;      // bytes of a transposed left side that is not packed
constexpr int64_t kNear = 1 << 17;         // bytes of a right side that is not packed
constexpr int64_t kShared = 1 << 22;       // elements that are packed once for all tasks
constexpr int64_t kPackTask = 1 << 15;     // of them, worth another thread
constexpr int64_t kMostCols = 512;

// Elements of T, which are converted to what they are summed in when they are packed.
template <class Of> struct Elements {
  using T = Of;
  using Packed = simd::SumOf<T>;
  static constexpr int64_t unit = 1;  // elements along k in a Packed
  static constexpr bool converts = !std::is_same_v<T, Packed>;
  static const simd::ProductKernels<T>& kernels() { return product_kernels<T>(); }
};

// bfloat16 numbers in pairs along k, where one instruction multiplies pairs.
struct Bf16Pairs {
  using T = BFloat16;
  using Packed = simd::Bf16Pair;
  static constexpr int64_t unit = 2;
  static constexpr bool converts = false;
  static const simd::Bf16Kernels& kernels() { return TAEDA_PICK(bf16_kernels); }
};
bool has_bf16_pairs() {
#if defined(__x86_64__)
  // Intel's processors multiply pairs no faster than float32, and the pairs must be packed.
  static const bool has =
      __builtin_cpu_supports("avx512bf16") && !is_intel() && Bf16Pairs::kernels().tile;
  return has;
#else
  return false;
#endif
}

// The rows and columns of a task, from the sizes alone.
struct Tasks {
  int64_t rows, cols;

  Tasks(int64_t m, int64_t n, int64_t k, int64_t tile_rows, int64_t tile_cols, int64_t most_cols,
        bool packs_a)
      : rows(m),
        cols(std::min(n, most_cols)) {
    constexpr double small = 1 << 18, large = 1 << 23;  // m * n * k that is worth another thread
    const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const double tasks = std::min(work / small, std::clamp(work / large, 8.0, 64.0));
    if (n > cols) cols = round_up(ceil_div(n, ceil_div(n, cols)), tile_cols);
    const auto cut = [&](bool by_rows, int64_t least) {
      int64_t& side = by_rows ? rows : cols;
      const int64_t whole = by_rows ? m : n;
      for (int64_t parts = ceil_div(whole, side); side >= 2 * least;) {
        const int64_t count = ceil_div(m, rows) * ceil_div(n, cols);
        if (2 * static_cast<double>(count) > tasks) return;
        parts *= 2;
        side = round_up(ceil_div(whole, parts), by_rows ? tile_rows : tile_cols);
      }
    };
    if (packs_a) cut(true, 32);  // each task packs its rows of a for itself
    for (const int64_t least : {128, 64, 32}) {
      cut(false, least);
      cut(true, least);
    }
  }
};

template <class E> class Packer {
 public:
  using T = typename E::T;
  using Packed = typename E::Packed;
  // What stays in the first cache: a panel of b for many tiles, or, of 8-byte elements, rows of a.
  static constexpr bool kStreams = sizeof(Packed) == 8;

  explicit Packer(const Product<T>& x) : x_(x) {
    const bool contiguous = x.a.trans == Trans::No;
    const int64_t bytes = x.k * x.a.stride * int64_t{sizeof(T)};
    if constexpr (E::unit > 1) {
      // Not where rows are so far apart that they share few lines of the first cache.
      const bool whole = x.k % E::unit == 0 && x.a.stride % E::unit == 0;
      a_ = contiguous && whole && x.a.stride % 1024 != 0 ? Left::in_place : Left::packed;
    } else if (contiguous) {
      a_ = E::converts ? Left::converted : Left::in_place;
    } else {
      a_ = E::converts || bytes > kNearest ? Left::packed : Left::in_place;
    }
  }

  bool packs_a() const { return a_ != Left::in_place; }
  int64_t width() const { return 2 * kernel_.lanes; }
  int64_t depth() const {
    const int64_t step = (kernel_.rows + (kStreams ? 0 : width())) * int64_t{sizeof(Packed)};
    const int64_t most = std::clamp<int64_t>(kPanelBlock / step, 256, 512) * E::unit;
    return round_up(ceil_div(x_.k, ceil_div(x_.k, most)), E::unit);
  }
  int64_t padded(int64_t cols) const { return round_up(cols, kernel_.lanes); }
  static int64_t units(int64_t count) { return ceil_div(count, E::unit); }

  // Columns of a task: a block of panels takes half of the second cache.
  int64_t most_cols() const {
    const int64_t column = units(depth()) * int64_t{sizeof(Packed)};
    const int64_t fit = caches().l2 / 2 / column / width() * width();
    return std::clamp(fit, 2 * width(), kMostCols);
  }
  bool in_place(int64_t rows) const {
    if (E::converts || E::unit > 1 || x_.b.trans != Trans::No) return false;
    return rows <= kFewTileRows || depth() * x_.b.stride * int64_t{sizeof(T)} <= kNear;
  }

  // Columns [left, right) of rows [p, p + count) of b.
  void pack(int64_t p, int64_t count, int64_t left, int64_t right, Packed* to) const {
    const int64_t whole = (right - left) / width() * width(), rest = right - left - whole;
    pack_panels(p, count, left, whole, width(), to);
    pack_panels(p, count, left + whole, rest, panel_width(rest), to + whole * units(count));
  }

  // The results of rows [top, bottom) and columns [left, right). shared: all panels of b, or null.
  void run(int64_t top, int64_t bottom, int64_t left, int64_t right, const Packed* shared) const {
    const int64_t there = !shared && in_place(bottom - top)
                              ? (right - left) / width() * width()
                              : 0;  // columns that are read where they are
    Scratch<Packed> panels(shared ? 0 : padded(right - left - there) * units(depth()));
    for (int64_t p = 0; p < x_.k; p += depth()) {
      const int64_t count = std::min(depth(), x_.k - p);
      if (shared) {
        run_block(p, count, top, bottom, left, right, x_.n,
                  shared + units(p) * padded(x_.n) + left * units(count));
        continue;
      }
      pack(p, count, left + there, right, panels.data());
      if constexpr (!E::converts && E::unit == 1)
        run_block(p, count, top, bottom, left, left + there, right, x_.b.from(p, left).data,
                  x_.b.stride);
      run_block(p, count, top, bottom, left + there, right, right, panels.data());
    }
  }

  // A block of k. panels: of the columns [left, end_of_panels), or, with `b_row`, that part of b
  // itself.
  void run_block(int64_t p, int64_t count, int64_t top, int64_t bottom, int64_t left, int64_t right,
                 int64_t end_of_panels, const Packed* panels, int64_t b_row = 0) const {
    if (left >= right) return;
    const bool packed = a_ == Left::packed;
    const bool narrow = !packed && right - left <= kernel_.lanes;
    const int64_t of_tile = narrow ? kernel_.narrow_rows : kernel_.rows;
    const int64_t batch = (packs_a() || !kStreams ? kGroups : 1) * of_tile;
    const int64_t all = bottom - top, batches = ceil_div(all, batch);
    Scratch<Packed> copy(packs_a() ? batch * units(count) : 0);
    for (int64_t s = 0, i = top, next; s < batches; ++s, i = next) {
      next = packed ? std::min(bottom, i + batch) : top + (s + 1) * all / batches;
      const int64_t many = next - i, tiles = ceil_div(many, of_tile);
      copy_rows(i, many, p, count, copy.data());
      for (int64_t j = left; j < right; j += width()) {
        const int64_t step = b_row ? b_row : panel_width(end_of_panels - j);
        const Packed* from = panels + (j - left) * (b_row ? 1 : units(count));
        for (int64_t t = 0, first = 0, end; t < tiles; ++t, first = end) {
          // Tiles of about as many rows each: those of one or two wait for their sums.
          end =
              packed ? std::min(many, first + of_tile) : first + many / tiles + (t < many % tiles);
          const Rows rows = rows_at(i, first, p, count, copy.data());
          kernel_.tile(end - first, std::min(width(), right - j),
                       {units(count), rows.data, rows.row, rows.step, from, step,
                        x_.c + (i + first) * x_.ldc + j, x_.ldc, epilogue(p, i + first, j)});
        }
      }
    }
  }

 private:
  enum class Left : uint8_t { in_place, converted, packed };
  struct Rows {
    const Packed* data;
    int64_t row, step;
  };

  void pack_panels(int64_t p, int64_t count, int64_t j, int64_t cols, int64_t width,
                   Packed* to) const {
    const bool plain = x_.b.trans == Trans::No;
    if (cols > 0)
      kernel_.pack(count, cols, width, x_.b.from(p, j).data, plain ? x_.b.stride : 1,
                   plain ? 1 : x_.b.stride, to);
  }

  // Of a panel that begins where `cols` columns are left.
  int64_t panel_width(int64_t cols) const { return cols > kernel_.lanes ? width() : kernel_.lanes; }

  void copy_rows(int64_t i, int64_t many, int64_t p, int64_t count, Packed* to) const {
    if (!packs_a()) return;
    const MatrixRef<T> a = x_.a.from(i, p);
    if constexpr (E::unit == 1) {
      if (a_ == Left::converted)
        return kernel_.convert_rows(many, count, a.data, a.stride, to, count);
    }
    const bool plain = a.trans == Trans::No;
    kernel_.pack(count, many, kernel_.rows, a.data, plain ? 1 : a.stride, plain ? a.stride : 1, to);
  }

  // The rows from i + first on, of which those from i on have been copied.
  Rows rows_at(int64_t i, int64_t first, int64_t p, int64_t count, const Packed* copy) const {
    if (a_ == Left::packed) return {copy + first * units(count), 1, kernel_.rows};
    if (a_ == Left::converted) return {copy + first * count, count, 1};
    const MatrixRef<T> a = x_.a.from(i + first, p);
    const auto* data = reinterpret_cast<const Packed*>(a.data);
    if (a.trans == Trans::No) return {data, a.stride / E::unit, 1};
    return {data, 1, a.stride};
  }

  auto epilogue(int64_t p, int64_t i, int64_t j) const {
    if (p == 0) return x_.epilogue.at(i, j);
    // Later blocks add to what is there.
    return decltype(x_.epilogue){x_.epilogue.alpha, 1, x_.c + i * x_.ldc + j, x_.ldc};
  }

  const Product<T>& x_;
  decltype(E::kernels()) kernel_ = E::kernels();
  Left a_;
};

// All panels of b, one block of k after the other.
template <class E> void pack_all(const Packer<E>& packer, int64_t k, int64_t n, auto* to) {
  const int64_t depth = packer.depth(), width = packer.width();
  const int64_t grain = std::max<int64_t>(1, kPackTask / (width * depth));
  for (int64_t p = 0; p < k; p += depth) {
    const int64_t count = std::min(depth, k - p);
    auto* block = to + packer.units(p) * packer.padded(n);
    parallel_for(ceil_div(n, width), grain, [&](int64_t begin, int64_t end) {
      packer.pack(p, count, begin * width, std::min(end * width, n),
                  block + begin * width * packer.units(count));
    });
  }
}

template <class E> void multiply(const Product<typename E::T>& x) {
  using Packed = typename E::Packed;
  const Packer<E> packer(x);
  const Tasks task(x.m, x.n, x.k, E::kernels().rows, packer.width(), packer.most_cols(),
                   packer.packs_a());
  const int64_t across = ceil_div(x.n, task.cols), down = ceil_div(x.m, task.rows);
  std::optional<Scratch<Packed>> shared;
  if (down > 1 && x.n * x.k <= kShared && !packer.in_place(task.rows)) {
    shared.emplace(packer.padded(x.n) * packer.units(x.k + E::unit * x.k / packer.depth()));
    pack_all(packer, x.k, x.n, shared->data());
  }
  parallel_each(across * down, 1, [&](int64_t t) {
    const int64_t i = t % down * task.rows, j = t / down * task.cols;
    packer.run(i, std::min(i + task.rows, x.m), j, std::min(j + task.cols, x.n),
               shared ? shared->data() : nullptr);
  });
}

}  // namespace

template <class T> void packed_gemm(const Product<T>& x) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (has_bf16_pairs()) return multiply<Bf16Pairs>(x);
  }
  multiply<Elements<T>>(x);
}

template <class T> GemmWork packed_work(const Product<T>& x) {
  const Packer<Elements<T>> packer(x);
  const auto m = static_cast<double>(x.m), n = static_cast<double>(x.n),
             k = static_cast<double>(x.k);
  const double lanes = static_cast<double>(product_kernels<T>().lanes);
  const bool transposes = Elements<T>::converts || x.b.trans != Trans::No;
  const double of_b = packer.in_place(x.m) ? 0 : n * k, of_a = packer.packs_a() ? m * k : 0;
  return {.packed = m * static_cast<double>(packer.padded(x.n)) / lanes * k,
          .pack = transposes ? 0 : of_b,
          .transpose = of_a + (transposes ? of_b : 0),
          .call = 1};
}

template <class T>
PackedMatrix<T>::PackedMatrix(int64_t k, int64_t n, MatrixRef<T> b)
    : k_(k),
      n_(n),
      panels_(k * round_up(n, product_kernels<T>().lanes)) {
  if (k == 0) return;
  const Product<T> x{0, n, k, {}, b, {}, nullptr, 0};
  pack_all(Packer<Elements<T>>(x), k, n, panels_.data());
}

template <class T>
void PackedMatrix<T>::multiply(int64_t m, int64_t n, T alpha, const T* a, int64_t lda, T beta, T* c,
                               int64_t ldc) const {
  if (k_ == 0) return gemm<T>(m, n, 0, alpha, {a, lda}, {}, beta, c, ldc);
  const Product<T> x{m, n, k_, {a, lda}, {}, {alpha, beta, c, ldc}, c, ldc};
  const Packer<Elements<T>> packer(x);
  const int64_t depth = packer.depth(), width = packer.width();
  const int64_t grain = std::max<int64_t>(1, (1 << 20) / std::max<int64_t>(1, m * k_ * width));
  parallel_for(ceil_div(n, width), grain, [&](int64_t begin, int64_t end) {
    for (int64_t p = 0; p < k_; p += depth) {
      const int64_t count = std::min(depth, k_ - p), left = begin * width;
      const T* panels = panels_.data() + p * packer.padded(n_) + left * count;
      packer.run_block(p, count, 0, m, left, std::min(end * width, n), n_, panels);
    }
  });
}

#define TAEDA_PACKED(T)                           \
  template void packed_gemm(const Product<T>& x); \
  template GemmWork packed_work(const Product<T>& x);
TAEDA_PACKED(float)
TAEDA_PACKED(double)
TAEDA_PACKED(Half)
TAEDA_PACKED(BFloat16)
TAEDA_PACKED(uint8_t)
TAEDA_PACKED(uint16_t)
TAEDA_PACKED(uint32_t)
TAEDA_PACKED(uint64_t)
#undef TAEDA_PACKED
template class PackedMatrix<float>;
template class PackedMatrix<double>;

}  // namespace taeda::cpu
