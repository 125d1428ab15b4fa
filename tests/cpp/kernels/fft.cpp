// The passes of Fourier transforms, and what comes before and after them.
#include <complex>
#include <numbers>

#include "kernels.h"
#include "kernels/cpu/fft/simd/fft.h"

namespace taeda::test {
namespace {

using namespace cpu::simd;
using Complex = std::complex<double>;

// exp(-2 pi i k / n)
Complex root(int64_t k, int64_t n) {
  return std::polar(1.0,
                    -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n));
}

// The real parts of all numbers, then their imaginary parts.
Complex at(const Numbers& x, int64_t i) {
  const size_t k = static_cast<size_t>(i);
  return {x[k], x[x.size() / 2 + k]};
}
void put(Numbers& x, int64_t i, Complex value) {
  const size_t k = static_cast<size_t>(i);
  x[k] = value.real();
  x[x.size() / 2 + k] = value.imag();
}

// x is seen as (radix, m, s), where s takes up what there is.
struct PassShape {
  int64_t radix, m;
  int64_t width(int64_t numbers) const { return numbers / 2 / (radix * m); }
};

Numbers one_pass(const Numbers& x, PassShape shape) {
  const auto [radix, m] = shape;
  const int64_t s = shape.width(std::ssize(x));
  Numbers y(x.size());
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t k = 0; k < radix; ++k) {
      for (int64_t q = 0; q < s; ++q) {
        Complex sum = 0;
        for (int64_t j = 0; j < radix; ++j) sum += at(x, (j * m + p) * s + q) * root(j * k, radix);
        put(y, (p * radix + k) * s + q, sum * root(k * p, radix * m));
      }
    }
  }
  return y;
}

// The factors that a plan makes for a pass.
template <class T> std::vector<T> factors_of(PassShape shape) {
  const auto [radix, m] = shape;
  std::vector<T> cosines, sines, factors;
  for (int64_t k = 1; k < radix; ++k) {
    for (int64_t p = 0; p < m; ++p) {
      cosines.push_back(static_cast<T>(root(k * p, radix * m).real()));
      sines.push_back(static_cast<T>(root(k * p, radix * m).imag()));
    }
  }
  factors = cosines;
  factors.insert(factors.end(), sines.begin(), sines.end());
  for (int64_t k = 0; k < radix; ++k) factors.push_back(static_cast<T>(root(k, radix).real()));
  for (int64_t k = 0; k < radix; ++k) factors.push_back(static_cast<T>(-root(k, radix).imag()));
  return factors;
}

template <class T>
Kernel pass(const std::string& of, const FftLoops<T>& loops, PassShape shape, double tolerance) {
  Options options{.tolerance = tolerance, .specials = false, .sizes = {}};
  for (const int64_t s : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64})
    options.sizes.push_back(2 * shape.radix * shape.m * s);
  const auto factors = std::make_shared<std::vector<T>>(factors_of<T>(shape));
  return Map<T, T>::kernel(
      str("fft radix ", shape.radix, " of ", shape.m, of),
      [=, &loops](const T* x, int64_t n, T* y) {
        const int64_t s = shape.width(n);
        const T* twiddles = factors->data();
        const FftPass<T> f{static_cast<int>(shape.radix), shape.m, twiddles,
                           twiddles + 2 * (shape.radix - 1) * shape.m};
        loops.pass(f, s, x, x + n / 2, y, y + n / 2, 0, shape.m, 0, s);
      },
      [=](const Numbers& x) { return one_pass(x, shape); }, options);
}

// n / 2 complex numbers, whose parts are pairs, taken apart and put together again.
template <class T> Kernel split_and_join(const std::string& of, const FftLoops<T>& loops) {
  Options options{.specials = false, .sizes = {0, 2, 4, 6, 14, 16, 18, 32, 34, 66, 1000}};
  return Map<T, T>::kernel(
      "fft split and join" + of,
      [&loops](const T* x, int64_t n, T* y) {
        std::vector<T> parts(static_cast<size_t>(n));
        loops.split(n / 2, x, parts.data(), parts.data() + n / 2);
        loops.join(n / 2, parts.data(), parts.data() + n / 2, T(2), y);
      },
      each([](double v) { return 2 * v; }), options);
}

// Columns of n / s complex numbers times one factor for each row; then those of a real signal of
// twice the length, and back, which doubles them.
template <class T>
void add_rows(std::vector<Kernel>& list, const std::string& of, const FftLoops<T>& loops, int64_t s,
              double tolerance) {
  Options options{.tolerance = tolerance, .specials = false, .sizes = {}};
  for (const int64_t rows : {1, 2, 3, 4, 7, 8, 9, 16, 17, 33})
    options.sizes.push_back(2 * s * rows);
  list.push_back(Map<T, T>::kernel(
      str("fft multiply, ", s, " columns", of),
      [=, &loops](const T* x, int64_t n, T* y) {
        const int64_t rows = n / 2 / s;
        std::vector<T> w(static_cast<size_t>(2 * rows));
        for (int64_t k = 0; k < rows; ++k) {
          w[static_cast<size_t>(k)] = static_cast<T>(root(k, rows).real());
          w[static_cast<size_t>(rows + k)] = static_cast<T>(root(k, rows).imag());
        }
        loops.multiply(rows, s, w.data(), w.data() + rows, x, x + n / 2, y, y + n / 2);
      },
      [=](const Numbers& x) {
        Numbers y(x.size());
        const int64_t count = std::ssize(x) / 2;
        for (int64_t i = 0; i < count; ++i) put(y, i, at(x, i) * root(i / s, count / s));
        return y;
      },
      options));
  list.push_back(Map<T, T>::kernel(
      str("fft real, ", s, " columns", of),
      [=, &loops](const T* x, int64_t n, T* y) {
        const int64_t h = n / 2 / s, more = (h + 1) * s;
        std::vector<T> w, middle(static_cast<size_t>(2 * more));
        for (int64_t k = 0; k <= h / 2; ++k) w.push_back(static_cast<T>(root(k, 2 * h).real()));
        for (int64_t k = 0; k <= h / 2; ++k) w.push_back(static_cast<T>(root(k, 2 * h).imag()));
        T *re = middle.data(), *im = re + more;
        loops.real_after(h, s, w.data(), x, x + n / 2, re, im);
        loops.real_before(h, s, w.data(), re, im, y, y + n / 2);
      },
      each([](double v) { return 2 * v; }), options));
}

template <class T>
void add(std::vector<Kernel>& list, const std::string& of, const FftLoops<T>& loops,
         double tolerance) {
  for (const int64_t radix : {2, 3, 4, 5, 7, 8, 11, 13, 31}) {
    for (const int64_t m : {1, 3, 20}) list.push_back(pass(of, loops, {radix, m}, tolerance));
  }
  list.push_back(split_and_join(of, loops));
  for (const int64_t s : {1, 3, 16}) add_rows(list, of, loops, s, tolerance);
}

std::vector<Kernel> transforms() {
  std::vector<Kernel> list;
  for (const auto& [set, k] : TAEDA_SETS(cpu::simd, fft_kernels)) {
    add<float>(list, " float32 " + set, k->f32, 2e-5);
    add<double>(list, " float64 " + set, k->f64, 1e-13);
  }
  return list;
}

const RegisterFamily family("fft", transforms);

}  // namespace
}  // namespace taeda::test
