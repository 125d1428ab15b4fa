// Matrix products: every inner loop on every instruction set, at sizes around the edges of tiles,
// and whole products by each algorithm, all against sums in float64. Operands end where readable
// memory does, so that a load beyond them is a fault.
#include <sys/mman.h>
#include <unistd.h>

#include <complex>

#include "base/half.h"
#include "kernels.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/simd/gemm_kernels.h"

namespace taeda::test {
namespace {

using namespace cpu;

// n elements, the last of which is followed by memory that cannot be read.
template <class T> class AtTheEnd {
 public:
  explicit AtTheEnd(int64_t n) : n_(n) {
    const auto page = static_cast<size_t>(getpagesize());
    const size_t bytes = static_cast<size_t>(n) * sizeof(T);
    size_ = (bytes + page - 1) / page * page + page;
    pages_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(pages_ != MAP_FAILED, "mmap");
    char* end = static_cast<char*>(pages_) + size_ - page;
    expect(mprotect(end, page, PROT_NONE) == 0, "mprotect");
    data_ = reinterpret_cast<T*>(end - bytes);
  }
  ~AtTheEnd() { munmap(pages_, size_); }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;

  T* data() const { return data_; }
  int64_t size() const { return n_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  int64_t n_;
  size_t size_;
  void* pages_;
  T* data_;
};

template <class T> void fill(const AtTheEnd<T>& x, unsigned seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto number = static_cast<int>(random() % 15) - 7;
    if constexpr (std::is_integral_v<T>) x[i] = static_cast<T>(number + 7);
    else x[i] = static_cast<T>(static_cast<float>(number) / 4);  // exact in half precision
  }
}
template <class S> bool near(S got, double want) {
  if constexpr (std::is_integral_v<S>)
    return got == static_cast<S>(static_cast<int64_t>(std::llround(want)));
  else return std::abs(static_cast<double>(got) - want) <= 1e-4 * std::max(1.0, std::abs(want));
}

// op(X)[i, j] of a matrix stored by rows or, `transposed`, by columns.
template <class T> struct Operand {
  AtTheEnd<T> memory;
  int64_t rows, cols;
  bool transposed;

  Operand(int64_t rows_, int64_t cols_, bool transposed_, unsigned seed)
      : memory(rows_ * cols_),
        rows(rows_),
        cols(cols_),
        transposed(transposed_) {
    fill(memory, seed);
  }
  int64_t row() const { return transposed ? 1 : cols; }
  int64_t col() const { return transposed ? rows : 1; }
  double at(int64_t i, int64_t j) const {
    return static_cast<double>(static_cast<float>(memory[i * row() + j * col()]));
  }
};

template <class T>
double sum_of(const Operand<T>& a, const Operand<T>& b, int64_t i, int64_t j, int64_t k) {
  double sum = 0;
  for (int64_t p = 0; p < k; ++p) sum += a.at(i, p) * b.at(p, j);
  return sum;
}

// The results and what is around them: alpha 2 (of floating point), and beta * c.
template <class T, class S, class F>
void check_product(const std::string& name, const Operand<T>& a, const Operand<T>& b, S beta,
                   F&& run) {
  const int64_t m = a.rows, n = b.cols, k = a.cols, ldc = n + 3;
  std::vector<S> c(static_cast<size_t>(m * ldc), S(3));
  run(c.data(), ldc);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      const double want = j < n ? 2 * sum_of(a, b, i, j, k) + 3 * static_cast<double>(beta) : 3.0;
      const S got = c[static_cast<size_t>(i * ldc + j)];
      expect(near(got, want), str(name, ", ", m, "x", n, "x", k, ": result ", i, ", ", j, " is ",
                                  static_cast<double>(got), ", not ", want));
    }
  }
}

template <class T>
void check_tiles(const std::string& name, const simd::ProductKernels<T>& kernels) {
  using S = simd::SumOf<T>;
  const int64_t lanes = kernels.lanes, narrow = kernels.narrow;
  for (const int64_t n : {int64_t{1}, narrow - 1, narrow, lanes, lanes + 1, 2 * lanes}) {
    if (n < 1) continue;
    const int64_t width = n > lanes ? 2 * lanes : n > narrow ? lanes : narrow;
    for (int64_t m = 1; m <= (n > lanes ? kernels.rows : kernels.narrow_rows); ++m) {
      for (const int64_t k : {0, 1, 5}) {
        for (const bool transposed : {false, true}) {
          const Operand<S> a(m, k, transposed, 1);
          const AtTheEnd<S> panel(k * width);
          fill(panel, 2);
          Operand<S> b(k, n, false, 3);
          for (int64_t i = 0; i < k * n; ++i) b.memory[i] = panel[i / n * width + i % n];
          for (const S beta : {S(0), S(1)}) {
            check_product(name + " tile", a, b, beta, [&](S* c, int64_t ldc) {
              kernels.tile(m, n,
                           {k,
                            a.memory.data(),
                            a.row(),
                            a.col(),
                            panel.data(),
                            width,
                            c,
                            ldc,
                            {S(2), beta, c, ldc}});
            });
          }
        }
      }
    }
  }
}

template <class T>
void check_pack(const std::string& name, const simd::ProductKernels<T>& kernels) {
  using S = simd::SumOf<T>;
  for (const int64_t width : {kernels.lanes, 2 * kernels.lanes, kernels.rows}) {
    for (const int64_t n : {int64_t{1}, width - 1, width, 2 * width + 1}) {
      for (const int64_t k : {int64_t{1}, int64_t{7}, int64_t{65}}) {
        for (const bool transposed : {false, true}) {
          if (n < 1) continue;
          const Operand<T> x(k, n, transposed, 1);
          const int64_t panels = (n + width - 1) / width;
          const AtTheEnd<S> to(panels * width * k);
          kernels.pack(k, n, width, x.memory.data(), x.row(), x.col(), to.data());
          for (int64_t i = 0; i < to.size(); ++i) {
            const int64_t p = i / width % k, j = i / (width * k) * width + i % width;
            // Bytes fill the low half of their sums.
            const double want = j < n ? x.at(p, j) : 0;
            expect(
                near(static_cast<S>(static_cast<std::conditional_t<sizeof(T) == 1, T, S>>(to[i])),
                     want),
                str(name, ": packing ", k, "x", n, ", width ", width, ", element ", i));
          }
        }
      }
    }
  }
}

template <class T>
void check_small(const std::string& name, const simd::ProductKernels<T>& kernels) {
  using S = simd::SumOf<T>;
  const int64_t lanes = kernels.lanes;
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13}) {
    for (const int64_t n : {int64_t{1}, int64_t{3}, lanes - 1, lanes, lanes + 1, 2 * lanes,
                            2 * lanes + 1, 9 * lanes}) {
      for (const int64_t k : {1, 7, 8, 33}) {
        if (n < 1) continue;
        for (int layout = 0; layout < 4; ++layout) {
          const bool b_transposed = layout > 1;
          const Operand<T> a(m, k, layout % 2 != 0, 1), b(k, n, b_transposed, 2);
          const S beta = m % 2 == 0 ? S(0) : S(1);
          const auto product = [&](S* c, int64_t ldc) {
            return simd::SmallProduct<T>{m,
                                         n,
                                         k,
                                         {a.memory.data(), a.row(), a.col()},
                                         {b.memory.data(), b.row(), b.col()},
                                         c,
                                         ldc,
                                         0,
                                         {S(2), beta, c, ldc}};
          };
          if (!b_transposed || n == 1 || n * k <= simd::kSmallTransposed) {
            check_product(name + " small", a, b, beta,
                          [&](S* c, int64_t ldc) { kernels.small(1, product(c, ldc)); });
          }
          if (layout == 2) {
            check_product(name + " dots", a, b, beta,
                          [&](S* c, int64_t ldc) { kernels.dots(product(c, ldc)); });
          }
        }
      }
    }
  }
}

// A whole product by an algorithm, for the instruction set that this process runs with.
template <class T>
void check_gemm(const char* algorithm, int64_t m, int64_t n, int64_t k, Trans ta, Trans tb) {
  using S = GemmOut<T>;
  const Operand<T> a(m, k, ta != Trans::No, 1), b(k, n, tb != Trans::No, 2);
  const auto ref = [](const Operand<T>& x, Trans trans) {
    return MatrixRef<T>{x.memory.data(), trans == Trans::No ? x.cols : x.rows, trans};
  };
  force_gemm_algorithm(algorithm);
  for (const S beta : {S(0), S(1)}) {
    check_product(str("gemm by ", algorithm), a, b, beta, [&](S* c, int64_t ldc) {
      gemm<S, T>(m, n, k, S(2), ref(a, ta), ref(b, tb), beta, c, ldc);
    });
  }
  force_gemm_algorithm(nullptr);
}

void check_algorithms() {
  const int64_t sizes[][3] = {{1, 1, 1},    {1, 40, 300},  {40, 1, 300},   {3, 7, 5},
                              {17, 33, 65}, {31, 100, 20}, {65, 129, 400}, {2, 3, 9000}};
  for (const char* algorithm : {"small", "dots", "packed"}) {
    for (const auto& [m, n, k] : sizes) {
      for (const Trans ta : {Trans::No, Trans::Yes}) {
        for (const Trans tb : {Trans::No, Trans::Yes}) {
          check_gemm<float>(algorithm, m, n, k, ta, tb);
          check_gemm<double>(algorithm, m, n, k, ta, tb);
          check_gemm<Half>(algorithm, m, n, k, ta, tb);
          check_gemm<BFloat16>(algorithm, m, n, k, ta, tb);
        }
      }
    }
  }
}

template <class T>
void add(std::vector<Kernel>& list, const std::string& of, const simd::ProductKernels<T>& kernels) {
  using S = simd::SumOf<T>;
  struct Memory {
    AtTheEnd<T> a{64 * 64}, b{64 * 64};
    AtTheEnd<S> left{64 * 64}, panel{64 * 64}, c{64 * 64};
  };
  auto memory = std::make_shared<std::unique_ptr<Memory>>();
  const auto prepare = [memory](int64_t) {
    *memory = std::make_unique<Memory>();
    fill((*memory)->a, 1);
    fill((*memory)->b, 2);
    fill((*memory)->left, 3);
    fill((*memory)->panel, 4);
  };
  list.push_back({"gemm tile " + of,
                  [of, &kernels] {
                    check_tiles(of, kernels);
                    check_pack(of, kernels);
                  },
                  prepare, [memory, &kernels] {  // one tile, of 64 terms
                    const Memory& x = **memory;
                    kernels.tile(kernels.rows, 2 * kernels.lanes,
                                 {64, x.left.data(), 64, 1, x.panel.data(), 2 * kernels.lanes,
                                  x.c.data(), 2 * kernels.lanes});
                  }});
  if (!kernels.small) return;
  list.push_back(
      {"gemm small 64x64x64 " + of, [of, &kernels] { check_small(of, kernels); }, prepare,
       [memory, &kernels] {
         const Memory& x = **memory;
         kernels.small(1, {64, 64, 64, {x.a.data(), 64, 1}, {x.b.data(), 64, 1}, x.c.data(), 64});
       }});
}

std::vector<Kernel> products() {
  std::vector<Kernel> list;
  for (const auto& [set, table] : TAEDA_SETS(simd, gemm_table)) {
    add(list, "float32 " + set, table->f32);
    add(list, "float64 " + set, table->f64);
    add(list, "float16 " + set, table->f16);
    add(list, "bfloat16 " + set, table->bf16);
    add(list, "uint8 " + set, table->u8);
    add(list, "uint16 " + set, table->u16);
    add(list, "uint32 " + set, table->u32);
    add(list, "uint64 " + set, table->u64);
  }
  return list;
}

const RegisterFamily family("gemm", products);
const Register tests[] = {{"gemm: each algorithm, element type and layout", check_algorithms}};

}  // namespace
}  // namespace taeda::test
