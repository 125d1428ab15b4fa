// Softmax, normalisation, transposition and sums of rows.
#include <numeric>

#include "kernels.h"
#include "kernels/cpu/nn/simd/norm.h"
#include "kernels/cpu/nn/simd/softmax.h"
#include "kernels/cpu/pointwise/simd/transpose.h"
#include "kernels/cpu/reduce/simd/reduce.h"

namespace taeda::test {
namespace {

using namespace cpu;

double total(const Numbers& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

Numbers softmax(const Numbers& x, bool logarithm) {
  double largest = -HUGE_VAL, sum = 0;
  for (double v : x) largest = std::isnan(v) ? v : std::max(largest, v);
  for (double v : x) sum += std::exp(v - largest);
  return each([=](double v) {
    return logarithm ? v - largest - std::log(sum) : std::exp(v - largest) / sum;
  })(x);
}

template <class T, class Loops>
void add_softmax(std::vector<Kernel>& list, const std::string& of, const Loops& loops) {
  const auto sizes =
      std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 65, 255, 1000, 4099};
  for (bool logarithm : {false, true}) {
    const auto rows = (logarithm ? loops.log_softmax : loops.softmax).rows;
    list.push_back(
        Map<T, T>::kernel((logarithm ? "log_softmax " : "softmax ") + of,
                          [rows](const T* x, int64_t n, T* y) { rows(1, n, x, y, false); },
                          [logarithm](const Numbers& x) { return softmax(x, logarithm); },
                          {.tolerance = 3e-6, .specials = false, .sizes = sizes}));
  }
}

template <class T, class Loops>
void add_norm(std::vector<Kernel>& list, const std::string& of, const Loops& loops) {
  list.push_back(Map<T, double>::kernel(
      "norm sum " + of, [&loops](const T* x, int64_t n, double* y) { *y = loops.sum(x, n); },
      [](const Numbers& x) { return Numbers{total(x)}; }, {.tolerance = 1e-5, .specials = false}));
  list.push_back(Map<T, double>::kernel(
      "norm squares " + of,
      [&loops](const T* x, int64_t n, double* y) { *y = loops.squares(x, n, 0.5); },
      [](const Numbers& x) {
        return Numbers{total(each([](double v) { return (v - 0.5) * (v - 0.5); })(x))};
      },
      {.tolerance = 1e-5, .specials = false}));
  list.push_back(Map<T, T>::kernel(
      "norm scale_shift " + of,
      [&loops](const T* x, int64_t n, T* y) { loops.scale_shift(x, n, T(0.5), 2, 3, y, false); },
      each([](double v) { return (v - 0.5) * 2 + 3; }), {.tolerance = 2e-6}));
}

std::vector<Kernel> norms() {
  std::vector<Kernel> list;
  for (const auto& [set, table] : TAEDA_SETS(simd, softmax_kernels)) {
    add_softmax<float>(list, "float32 " + set, table->f32);
    add_softmax<double>(list, "float64 " + set, table->f64);
  }
  for (const auto& [set, table] : TAEDA_SETS(simd, norm_kernels)) {
    add_norm<float>(list, "float32 " + set, table->f32);
    add_norm<double>(list, "float64 " + set, table->f64);
  }
  return list;
}

// A matrix of n elements, about as high as wide, in rows that are two elements further apart.
std::pair<int64_t, int64_t> shape(int64_t n) {
  const auto rows = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  return {rows, rows ? n / rows - 2 : 0};
}

template <class T>
void add_transpose(std::vector<Kernel>& list, const std::string& of, simd::Transpose transpose) {
  list.push_back(Map<T, T>::kernel(
      "transpose " + of,
      [transpose](const T* x, int64_t n, T* y) {
        const auto [rows, columns] = shape(n);
        const auto size = static_cast<int64_t>(sizeof(T));
        if (columns > 0)
          transpose(reinterpret_cast<char*>(y), rows * size, reinterpret_cast<const char*>(x),
                    (columns + 2) * size, rows, columns);
      },
      [](const Numbers& x) {
        const auto [rows, columns] = shape(std::ssize(x));
        Numbers y;
        for (int64_t j = 0; j < columns; ++j) {
          for (int64_t i = 0; i < rows; ++i)
            y.push_back(x[static_cast<size_t>(i * (columns + 2) + j)]);
        }
        return y;
      },
      {.tolerance = 0, .low = 0, .high = 100}));
}

std::vector<Kernel> layouts() {
  std::vector<Kernel> list;
  for (const auto& [set, table] : TAEDA_SETS(simd, transpose_kernels)) {
    add_transpose<uint8_t>(list, "1 byte " + set, table->of(1, false));
    add_transpose<uint16_t>(list, "2 bytes " + set, table->of(2, false));
    add_transpose<float>(list, "4 bytes " + set, table->of(4, false));
    add_transpose<double>(list, "8 bytes " + set, table->of(8, false));
  }
  for (const auto& [set, table] : TAEDA_SETS(simd, row_sums)) {
    const auto f32 = table->f32;
    list.push_back(Map<float, float>::kernel(
        "row_sums float32 " + set,
        [f32](const float* x, int64_t n, float* y) { f32(x, 3, n / 3, n / 3, y); },
        [](const Numbers& x) {
          const size_t columns = x.size() / 3;
          Numbers y;
          for (size_t c = 0; c < columns; ++c)
            y.push_back(x[c] + x[columns + c] + x[2 * columns + c]);
          return y;
        }));
  }
  return list;
}

const RegisterFamily families[] = {{"nn", norms}, {"layout", layouts}};

}  // namespace
}  // namespace taeda::test
