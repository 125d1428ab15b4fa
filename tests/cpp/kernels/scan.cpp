// Running sums and extremes, along rows and down columns.
#include <algorithm>

#include "kernels.h"
#include "kernels/cpu/reduce/simd/scan.h"

namespace taeda::test {
namespace {

using namespace cpu::simd;

constexpr int64_t kRows = 5;  // of the matrices whose columns are scanned

Numbers running_sums(const Numbers& x) {
  Numbers y;
  double sum = 0;
  for (double v : x) y.push_back(sum += v);
  return y;
}

// All extremes, then all their indices, down `columns` interleaved columns. Of equal elements the
// last counts, and NaN counts more than any number.
Numbers running_extremes(const Numbers& x, bool largest, size_t columns) {
  const size_t n = columns == 0 ? 0 : x.size() / columns * columns;
  Numbers y(2 * n);
  for (size_t i = 0; i < n; ++i) {
    const bool first = i < columns;
    const double v = x[i], best = first ? v : y[i - columns];
    const bool wins = first || std::isnan(v) || (largest ? v >= best : v <= best);
    y[i] = wins ? v : best;
    y[n + i] = wins ? static_cast<double>(i / columns) : y[n + i - columns];
  }
  return y;
}

// The kernel's values and indices as `results` has them.
template <class T>
void run_extreme(ScanExtreme<T> kernel, const T* x, int64_t rows, int64_t columns,
                 double* results) {
  const size_t count = static_cast<size_t>(rows * columns);
  std::vector<T> values(count), best(static_cast<size_t>(columns));
  std::vector<int64_t> indices(count), index(static_cast<size_t>(columns));
  kernel(x, rows, 0, columns, columns, best.data(), index.data(), values.data(), indices.data(),
         columns);
  std::copy(values.begin(), values.end(), results);
  std::copy(indices.begin(), indices.end(), results + count);
}

template <class T>
void add_extremes(std::vector<Kernel>& list, const std::string& of, const ScanExtremes<T>& k) {
  for (const bool largest : {true, false}) {
    const ScanExtreme<T> kernel = largest ? k.largest : k.smallest;
    const std::string name = largest ? "cummax" : "cummin";
    list.push_back(Map<T, double>::kernel(
        name + of, [kernel](const T* x, int64_t n, double* y) { run_extreme(kernel, x, n, 1, y); },
        [largest](const Numbers& x) { return running_extremes(x, largest, 1); }));
    Options narrow{.sizes = {10, 15, 40, 75, 80, 85, 165, kRows * kScanColumns}};
    list.push_back(Map<T, double>::kernel(
        name + " columns" + of,
        [kernel](const T* x, int64_t n, double* y) {
          run_extreme(kernel, x, kRows, std::min(n / kRows, kScanColumns), y);
        },
        [largest](const Numbers& x) {
          const size_t columns = std::min<size_t>(x.size() / kRows, kScanColumns);
          return running_extremes(Numbers(x.begin(), x.begin() + kRows * std::ssize(x) / kRows),
                                  largest, columns);
        },
        narrow));
  }
}

std::vector<Kernel> scans() {
  std::vector<Kernel> list;
  for (const auto& [set, k] : TAEDA_SETS(cpu::simd, scan_kernels)) {
    list.push_back(Map<float, float>::kernel(
        "cumsum float32 " + set,
        [k](const float* x, int64_t n, float* y) { k->sums_from(x, n, 0, y); }, running_sums));
    list.push_back(Map<int64_t, int64_t>::kernel(
        "cumsum int64 " + set,
        [k](const int64_t* x, int64_t n, int64_t* y) { k->integer_sums(x, n, y); }, running_sums));
    // In two spans, the second of which begins with the sum of the first.
    list.push_back(Map<float, float>::kernel(
        "cumsum in spans float32 " + set,
        [k](const float* x, int64_t n, float* y) {
          const int64_t half = n / 2;
          const double sum = k->sum(x, half);
          k->sums_from(x, half, 0, y);
          k->sums_from(x + half, n - half, sum, y + half);
        },
        running_sums));
    add_extremes<float>(list, " float32 " + set, k->f32);
    add_extremes<double>(list, " float64 " + set, k->f64);
    add_extremes<int64_t>(list, " int64 " + set, k->i64);
    add_extremes<int16_t>(list, " int16 " + set, k->i16);
    add_extremes<int8_t>(list, " int8 " + set, k->i8);
  }
  return list;
}

const RegisterFamily family("scan", scans);

}  // namespace
}  // namespace taeda::test
