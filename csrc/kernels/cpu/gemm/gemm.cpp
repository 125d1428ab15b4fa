#include "kernels/cpu/gemm/gemm.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <string_view>
#include <type_traits>

#include "base/half.h"
#include "base/thread_pool.h"
#include "kernels/cpu/common/scratch.h"
#include "kernels/cpu/gemm/gemm_packed.h"

namespace taeda::cpu {
namespace {

template <class T> constexpr bool is_complex = false;
template <class R> constexpr bool is_complex<std::complex<R>> = true;
template <class T> using Sum = simd::SumOf<T>;

constexpr int64_t kTiny = 4096;      // multiplications that are not worth comparing costs
constexpr int64_t kTask = 1 << 17;   // those that are worth another thread
constexpr int64_t kColumns = 2048;   // of a task of a small product: sums in the first cache
constexpr int64_t kFewRows = 8;      // for which b is read once, whatever its size
constexpr int64_t kFar = 1 << 19;    // bytes of b that do not stay in the second cache
constexpr int64_t kRowsOfMany = 16;  // of b, then, so that it is read in order
constexpr int64_t kPart = 4096;      // of a long sum
constexpr int64_t kMostParts = 32;   // of it

template <class T> simd::Strided<T> strided(const MatrixRef<T>& x, int64_t next = 0) {
  const bool plain = x.trans == Trans::No;
  return {x.data, plain ? x.stride : 1, plain ? 1 : x.stride, next};
}
template <class T> simd::SmallProduct<T> small_product(const Product<T>& x) {
  return {x.m,
          x.n,
          x.k,
          strided(x.a),
          strided(x.b),
          x.c,
          x.ldc,
          0,
          x.epilogue,
          x.a.trans == Trans::Conj,
          x.b.trans == Trans::Conj};
}

// The results of rows [i, i + m) and columns [j, j + n).
template <class T>
Product<T> part_of(const Product<T>& x, int64_t i, int64_t m, int64_t j, int64_t n) {
  return {m,    n, x.k, x.a.from(i, 0), x.b.from(0, j), x.epilogue.at(i, j), x.c + i * x.ldc + j,
          x.ldc};
}

// c = the epilogue of sums, whose rows are contiguous.
template <class T> void finish(const Product<T>& x, const Sum<T>* sums) {
  for (int64_t i = 0; i < x.m; ++i) {
    const auto e = x.epilogue.at(i, 0);
    for (int64_t j = 0; j < x.n; ++j) {
      auto v = static_cast<Sum<T>>(e.alpha * sums[i * x.n + j]);
      if (e.beta != Sum<T>(0)) v = static_cast<Sum<T>>(v + e.beta * e.from[j * e.from_col]);
      x.c[i * x.ldc + j] = v;
    }
  }
}

// ---- small: tiles of results with both sides read where they are ----

// Rows of b are read where they are, or transposed into memory of the kernel.
template <class T> bool supports_small(const Product<T>& x) {
  const auto& e = x.epilogue;
  if (is_complex<T> && (e.alpha != Sum<T>(1) || (e.beta != Sum<T>(0) && e.beta != Sum<T>(1))))
    return false;
  return x.b.trans == Trans::No || x.n == 1 || x.n * x.k <= simd::kSmallTransposed;
}
bool is_far(int64_t n, int64_t k, int64_t size) { return n * k * size > kFar; }

template <class T> GemmWork small_work(const Product<T>& x) {
  double lanes, each = 1;
  if constexpr (is_complex<T>) {
    lanes = real(product_kernels<typename T::value_type>().lanes) / 2;
    each = 2;
  } else {
    lanes = real(product_kernels<T>().lanes);
    if (!std::is_same_v<T, Sum<T>>) each = 2;  // of half precision, which is converted every time
  }
  const double registers = real(ceil_div(x.n, static_cast<int64_t>(lanes)));
  const double all = real(x.m) * registers * real(x.k) * each;
  const bool far = is_far(x.n, x.k, sizeof(T));
  return {.small = far ? 0 : all,
          .far = far ? all : 0,
          .transpose = x.b.trans != Trans::No && x.n > 1 ? real(x.n * x.k) : 0};
}

// Some rows of b at a time, whose products are added.
template <class T> void small_blocks(const Product<T>& x, int64_t rows) {
  Product<T> part = x;
  for (int64_t p = 0; p < x.k; p += rows) {
    part.k = std::min(rows, x.k - p);
    part.a = x.a.from(0, p);
    part.b = x.b.from(p, 0);
    product_kernels<T>().small(1, small_product(part));
    part.epilogue = {x.epilogue.alpha, Sum<T>(1), x.c, x.ldc};
  }
}

template <class T> void run_small(const Product<T>& x) {
  const bool far = x.m <= kFewRows && x.b.trans == Trans::No && x.n > 1 &&
                   is_far(x.n, x.k, sizeof(T)) && !is_complex<T>;
  const auto run = [&](const Product<T>& part) {
    if (far) small_blocks(part, part.m == 1 ? simd::kRowsTogether : kRowsOfMany);
    else if (x.k > simd::kSmallDepth) small_blocks(part, simd::kSmallDepth);
    else product_kernels<T>().small(1, small_product(part));
  };
  if (x.m * x.n * (x.k + 2) < 2 * kTask) return run(x);
  if (far && x.m == 1) {  // whole rows of b, as far as the sums fit the first cache
    return parallel_for(x.n, kColumns / 4, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; j += kColumns)
        run(part_of(x, 0, 1, j, std::min(kColumns, end - j)));
    });
  }
  const int64_t least = far ? 512 : 64;
  const int64_t cols = std::min(
      x.n, std::clamp(kTask / (std::min<int64_t>(x.m, 32) * (x.k + 2)) / 64 * 64, least, kColumns));
  const int64_t rows = std::max<int64_t>(24, kTask / (cols * (x.k + 2)) / 24 * 24);
  const int64_t across = ceil_div(x.n, cols);
  parallel_each(ceil_div(x.m, rows) * across, 1, [&](int64_t t) {
    const int64_t i = t / across * rows, j = t % across * cols;
    run(part_of(x, i, std::min(rows, x.m - i), j, std::min(cols, x.n - j)));
  });
}

// ---- the same in another order: inner products of contiguous rows of a and columns of b ----

template <class T> bool supports_dots(const Product<T>& x) {
  return x.a.trans == Trans::No && (x.b.trans != Trans::No || (x.n == 1 && x.b.stride == 1));
}
template <class T> GemmWork dots_work(const Product<T>& x) {
  const double results = real(x.m * x.n);
  return {.dot = results * real(ceil_div(x.k, product_kernels<T>().lanes)), .reduce = results};
}
template <class T> void run_dots(const Product<T>& x) {
  const bool by_rows = x.m >= x.n;
  const int64_t grain = std::max<int64_t>(1, kTask / (x.k * (by_rows ? x.n : x.m)) / 4) * 4;
  parallel_for(by_rows ? x.m : x.n, grain, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    simd::SmallProduct<T> part = small_product(by_rows ? part_of(x, begin, count, 0, x.n)
                                                       : part_of(x, 0, x.m, begin, count));
    part.b.row = 1;
    if (x.b.trans == Trans::No) part.b.col = 0;
    product_kernels<T>().dots(part);
  });
}

// ---- the choice ----

template <class T> struct GemmAlgorithm {
  const char* name;
  bool (*supports)(const Product<T>& x);
  GemmWork (*work)(const Product<T>& x);
  void (*run)(const Product<T>& x);
};

template <class T> bool supports_any(const Product<T>&) { return true; }
// A panel of b that is used for a single row costs more to read than the row's products.
template <class T> bool supports_packed(const Product<T>& x) {
  return std::is_integral_v<T> || x.m > 1 || x.b.trans != Trans::No;
}

template <class T> constexpr auto algorithms() {
  using A = GemmAlgorithm<T>;
  if constexpr (std::is_integral_v<T>) {
    return std::array{A{"packed", supports_packed<T>, packed_work<T>, packed_gemm<T>}};
  } else if constexpr (is_complex<T>) {
    return std::array{A{"small", supports_small<T>, small_work<T>, run_small<T>},
                      A{"real", supports_any<T>, real_work<T>, real_gemm<T>}};
  } else {
    return std::array{A{"small", supports_small<T>, small_work<T>, run_small<T>},
                      A{"dots", supports_dots<T>, dots_work<T>, run_dots<T>},
                      A{"packed", supports_packed<T>, packed_work<T>, packed_gemm<T>}};
  }
}

std::atomic<const char*> forced_name = nullptr;

template <class T> const GemmAlgorithm<T>& choose(const Product<T>& x) {
  static constexpr auto table = algorithms<T>();
  const char* forced = forced_name.load(std::memory_order_relaxed);
  if (!forced && real(x.m) * real(x.n) * real(x.k) <= kTiny && table[0].supports(x))
    return table[0];
  const GemmAlgorithm<T>* best = nullptr;
  double least = HUGE_VAL;
  for (const GemmAlgorithm<T>& g : table) {
    if (!g.supports(x)) continue;
    const double time = g.work(x).time(gemm_rates());
    if (forced && std::string_view(forced) == g.name) return g;
    if (time < least) best = &g;
    least = std::min(least, time);
  }
  return *best;
}

// ---- products that are computed by others ----

template <class T> void multiply(const Product<T>& x);

// Few results of long sums: these are cut, and the parts added in order.
bool has_long_sums(int64_t m, int64_t n, int64_t k) {
  return k >= 2 * kPart && m * n <= std::min<int64_t>(256 * 256, k * 4);
}
template <class T> void split_k(const Product<T>& x) {
  const int64_t step = std::max(kPart, ceil_div(x.k, kMostParts)), size = x.m * x.n;
  const int64_t parts = ceil_div(x.k, step);
  Scratch<Sum<T>> sums(size * parts);
  parallel_each(parts, kTask / (size * step), [&](int64_t p) {
    const int64_t first = p * step;
    const Product<T> part{x.m,
                          x.n,
                          std::min(step, x.k - first),
                          x.a.from(0, first),
                          x.b.from(first, 0),
                          {},
                          sums.data() + p * size,
                          x.n};
    multiply(part);
  });
  Scratch<Sum<T>> total(size);
  for (int64_t i = 0; i < size; ++i) {
    Sum<T> sum = sums.data()[i];
    for (int64_t p = 1; p < parts; ++p) sum += sums.data()[p * size + i];
    total.data()[i] = sum;
  }
  finish(x, total.data());
}

template <class T> void copy_strided(const T* from, int64_t step, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

// A vector that is strided, or a matrix whose columns it is multiplied by: a copy of the vector,
// and the transposed product, have contiguous rows.
template <class T> bool vector_product(const Product<T>& x) {
  if constexpr (is_complex<T>) return false;
  const bool strided_a = x.m == 1 && x.a.trans != Trans::No && x.a.stride > 1;
  const bool strided_b = x.n == 1 && x.b.trans == Trans::No && x.b.stride > 1;
  const bool transposes = x.n == 1 && x.m > 1 && x.a.trans != Trans::No;
  if (!strided_a && !strided_b && !transposes) return false;
  Product<T> y = x;
  Scratch<T> vector(x.k);
  if (strided_a) {
    copy_strided(x.a.data, x.a.stride, x.k, vector.data());
    y.a = {vector.data(), x.k};
  } else if (strided_b) {
    copy_strided(x.b.data, x.b.stride, x.k, vector.data());
    y.b = {vector.data(), 1};
  }
  if (!transposes) return multiply(y), true;
  // c' = b' a'
  Scratch<Sum<T>> row(x.m);
  multiply(Product<T>{1, x.m, x.k, {y.b.data, x.k}, x.a.transposed(), {}, row.data(), x.m});
  finish(x, row.data());
  return true;
}

template <class T> void multiply(const Product<T>& x) {
  if (x.m <= 0 || x.n <= 0) return;
  if (x.k <= 0) {
    const Scratch<Sum<T>> zeros(x.m * x.n);
    std::fill_n(zeros.data(), x.m * x.n, Sum<T>(0));
    return finish(x, zeros.data());
  }
  if (has_long_sums(x.m, x.n, x.k)) return split_k(x);
  if (x.m * x.k > kTiny && x.n == 1 && vector_product(x)) return;
  if (x.n * x.k > kTiny && x.m == 1 && vector_product(x)) return;
  if constexpr (is_complex<T>) {
    if (x.m * x.n * x.k > 8 * kTiny && is_transposed(x)) return transposed_gemm(x);
  }
  choose(x).run(x);
}

}  // namespace

template <class S, class T>
void gemm(int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a, MatrixRef<T> b, S beta, S* c,
          int64_t ldc) {
  multiply(Product<T>{m, n, k, a, b, {alpha, beta, c, ldc}, c, ldc});
}

template <class T, bool Rows>
void gemm_onto(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, const T* start,
               T* c, int64_t ldc) {
  multiply(Product<T>{m, n, k, a, b, {T(1), T(1), start, Rows, !Rows}, c, ldc});
}

template <class T>
void gemm_integer(int64_t m, int64_t n, int64_t k, MatrixRef<T> a, MatrixRef<T> b, T* c,
                  int64_t ldc) {
  using U = std::make_unsigned_t<T>;
  const auto as = [](const MatrixRef<T>& x) {
    return MatrixRef<U>{reinterpret_cast<const U*>(x.data), x.stride, x.trans};
  };
  if constexpr (sizeof(T) > 1) {
    multiply(Product<U>{m, n, k, as(a), as(b), {}, reinterpret_cast<U*>(c), ldc});
  } else {
    Scratch<Sum<U>> sums(m * n);
    multiply(Product<U>{m, n, k, as(a), as(b), {}, sums.data(), n});
    for (int64_t i = 0; i < m; ++i)
      std::copy_n(sums.data() + i * n, n, reinterpret_cast<U*>(c) + i * ldc);
  }
}

template <class S, class T>
void gemm_batched(int64_t batch, int64_t m, int64_t n, int64_t k, S alpha, MatrixRef<T> a,
                  int64_t a_step, MatrixRef<T> b, int64_t b_step, S beta, S* c, int64_t ldc,
                  int64_t c_step) {
  const auto product = [&](int64_t i) {
    MatrixRef<T> left = a, right = b;
    left.data += i * a_step;
    right.data += i * b_step;
    S* to = c + i * c_step;
    return Product<T>{m, n, k, left, right, {alpha, beta, to, ldc}, to, ldc};
  };
  const double work = real(m) * real(n) * real(std::max<int64_t>(k, 1));
  // A few large matrices: parallel inside each. Otherwise whole matrices are dealt out.
  constexpr double large = 1 << 24;
  const auto grain = std::max<int64_t>(1, static_cast<int64_t>(2 * kTask / std::max(work, 1.0)));
  const bool small = m > 0 && n > 0 && k > 0 && k <= simd::kSmallDepth && batch > 0 &&
                     work < kTask && choose(product(0)).run == run_small<T>;
  parallel_for(batch, batch < 8 && work > large ? batch : grain, [&](int64_t begin, int64_t end) {
    if (small) {
      simd::SmallProduct<T> x = small_product(product(begin));
      x.a.next = a_step;
      x.b.next = b_step;
      x.c_next = c_step;
      return product_kernels<T>().small(end - begin, x);
    }
    for (int64_t i = begin; i < end; ++i) multiply(product(i));
  });
}

std::vector<GemmCandidate> gemm_candidates(int64_t m, int64_t n, int64_t k, bool a_transposed,
                                           bool b_transposed) {
  const auto matrix = [](int64_t rows, int64_t cols, bool transposed) {
    return MatrixRef<float>{nullptr, transposed ? rows : cols, transposed ? Trans::Yes : Trans::No};
  };
  const Product<float> x{m,  n,       k, matrix(m, k, a_transposed), matrix(k, n, b_transposed),
                         {}, nullptr, n};
  std::vector<GemmCandidate> list;
  for (const auto& g : algorithms<float>()) {
    if (!g.supports(x)) continue;
    const GemmWork w = g.work(x);
    list.push_back({g.name,
                    w.time(gemm_rates()),
                    {w.packed, w.small, w.far, w.dot, w.reduce, w.pack, w.transpose, w.call}});
  }
  return list;
}

template <class T>
void batched_integers(int64_t batch, int64_t m, int64_t n, int64_t k, MatrixRef<T> a,
                      int64_t a_step, MatrixRef<T> b, int64_t b_step, T* c, int64_t ldc,
                      int64_t c_step) {
  for (int64_t i = 0; i < batch; ++i, a.data += a_step, b.data += b_step, c += c_step)
    gemm_integer<T>(m, n, k, a, b, c, ldc);
}

bool force_gemm_algorithm(const char* name) {
  forced_name = nullptr;
  for (const char* known : {"small", "dots", "packed", "real"}) {
    if (name && std::string_view(name) == known) forced_name = known;
  }
  return !name || forced_name;
}

template void gemm_onto<float, true>(int64_t, int64_t, int64_t, MatrixRef<float>, MatrixRef<float>,
                                     const float*, float*, int64_t);
template void gemm_onto<double, true>(int64_t, int64_t, int64_t, MatrixRef<double>,
                                      MatrixRef<double>, const double*, double*, int64_t);
template void gemm_integer<uint8_t>(int64_t, int64_t, int64_t, MatrixRef<uint8_t>,
                                    MatrixRef<uint8_t>, uint8_t*, int64_t);
template void gemm_integer<uint16_t>(int64_t, int64_t, int64_t, MatrixRef<uint16_t>,
                                     MatrixRef<uint16_t>, uint16_t*, int64_t);
template void gemm_integer<uint32_t>(int64_t, int64_t, int64_t, MatrixRef<uint32_t>,
                                     MatrixRef<uint32_t>, uint32_t*, int64_t);
template void gemm_integer<uint64_t>(int64_t, int64_t, int64_t, MatrixRef<uint64_t>,
                                     MatrixRef<uint64_t>, uint64_t*, int64_t);

}  // namespace taeda::cpu

namespace taeda {

template <class T> constexpr decltype(GemmKernels<T>::onto) onto_kernel() {
  if constexpr (std::is_same_v<GemmOut<T>, T>) return cpu::gemm_onto<T>;
  else return nullptr;
}
template <class T>
const GemmKernels<T> GemmKernels<T>::cpu = {cpu::gemm<S, T>, cpu::gemm_batched<S, T>,
                                            onto_kernel<T>(), nullptr};
template struct GemmKernels<Half>;
template struct GemmKernels<BFloat16>;
template struct GemmKernels<float>;
template struct GemmKernels<double>;
template struct GemmKernels<std::complex<float>>;
template struct GemmKernels<std::complex<double>>;

template <class T>
const IntegerGemmKernels<T> IntegerGemmKernels<T>::cpu = {cpu::batched_integers<T>};
template struct IntegerGemmKernels<uint8_t>;
template struct IntegerGemmKernels<int8_t>;
template struct IntegerGemmKernels<int16_t>;
template struct IntegerGemmKernels<int32_t>;
template struct IntegerGemmKernels<int64_t>;

}  // namespace taeda
