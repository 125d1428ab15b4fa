// Indexing, sorting and optimizer steps. Kernels that are compiled once, for the oldest
// machine, have no instruction set in their names.
#include <algorithm>
#include <numeric>

#include "kernels.h"
#include "kernels/cpu/index/simd/combine.h"
#include "kernels/cpu/nn/simd/optim.h"
#include "kernels/scatter.h"
#include "kernels/sort.h"

namespace taeda::test {
namespace {

using namespace cpu;

size_t index(int64_t i) { return static_cast<size_t>(i); }
Numbers first(const Numbers& x, size_t n) {
  return {x.begin(), x.begin() + static_cast<int64_t>(n)};
}

// ---- rows combined ----

double combined(simd::Combination how, double a, double b) {
  if (how == simd::kAdd) return a + b;
  if (how == simd::kMultiply) return a * b;
  if (std::isnan(a) || std::isnan(b)) return NAN;
  return how == simd::kMax ? std::max(a, b) : std::min(a, b);
}

template <class T>
void add_combine(std::vector<Kernel>& list, const std::string& of, const simd::IndexKernels& table,
                 DType dtype, double low) {
  const char* names[] = {"add", "multiply", "max", "min"};
  for (const auto how : {simd::kAdd, simd::kMultiply, simd::kMax, simd::kMin}) {
    const simd::Combine row = table.combine[how][static_cast<int>(dtype)];
    list.push_back(Map<T, T>::kernel(
        str("combine ", names[how], " ", of),
        [row](const T* x, int64_t n, T* y) {
          std::copy_n(x, n / 2, y);
          row(y, x + n / 2, n / 2);
        },
        [how](const Numbers& x) {
          Numbers y = first(x, x.size() / 2);
          for (size_t i = 0; i < y.size(); ++i) y[i] = combined(how, y[i], x[y.size() + i]);
          return y;
        },
        {.low = low}));
  }
}

std::vector<Kernel> rows() {
  std::vector<Kernel> list;
  for (const auto& [set, table] : TAEDA_SETS(simd, index_kernels)) {
    add_combine<float>(list, "float32 " + set, *table, DType::Float32, -4);
    add_combine<double>(list, "float64 " + set, *table, DType::Float64, -4);
    add_combine<int32_t>(list, "int32 " + set, *table, DType::Int32, -4);
    add_combine<uint8_t>(list, "uint8 " + set, *table, DType::UInt8, 0);
  }
  return list;
}

// ---- gather and scatter ----

// Every index below `size`, in no order.
const int64_t* some_indices(int64_t n, int64_t size) {
  static std::vector<int64_t> list;
  static int64_t listed = -1;
  if (std::ssize(list) != n || listed != size) {
    list.resize(index(n));
    for (int64_t i = 0; i < n; ++i) list[index(i)] = i * 7919 % std::max<int64_t>(size, 1);
    listed = size;
  }
  return list.data();
}

// n numbers as rows of `width` (the last ones left out), whose rows are indexed.
template <int64_t Width> struct RowsOf {
  Dims sizes, strides{Width, 1}, index_strides{1, 0};
  explicit RowsOf(int64_t n) : sizes{n / Width, Width} {}
  ScatterLayout layout(int64_t size) const {
    return {sizes, index_strides, strides, strides, 0, some_indices(sizes[0], size), size};
  }
};

template <int64_t Width> void add_indexing(std::vector<Kernel>& list) {
  using M = Map<float, float>;
  const std::string of = str(" rows of ", Width);
  list.push_back(M::kernel(
      "gather" + of,
      [](const float* x, int64_t n, float* y) {
        const RowsOf<Width> r(n);
        expect(ScatterKernels::cpu.gather(y, x, r.layout(r.sizes[0]), DType::Float32),
               "gather: index");
      },
      [](const Numbers& x) {
        const int64_t rows = std::ssize(x) / Width;
        const int64_t* from = some_indices(rows, rows);
        Numbers y;
        for (int64_t i = 0; i < rows * Width; ++i)
          y.push_back(x[index(from[i / Width] * Width + i % Width)]);
        return y;
      },
      {.tolerance = 0}));
  // To a quarter as many rows, so that several meet.
  list.push_back(M::kernel(
      "scatter add" + of,
      [](const float* x, int64_t n, float* y) {
        const RowsOf<Width> r(n);
        const int64_t size = r.sizes[0] / 4 + 1;
        std::fill_n(y, size * Width, 0.0f);
        expect(ScatterKernels::cpu.scatter(y, x, r.layout(size), DType::Float32, ScatterMode::Add),
               "scatter: index");
      },
      [](const Numbers& x) {
        const int64_t rows = std::ssize(x) / Width, size = rows / 4 + 1;
        const int64_t* to = some_indices(rows, size);
        Numbers y(index(size * Width));
        for (int64_t i = 0; i < rows * Width; ++i)
          y[index(to[i / Width] * Width + i % Width)] += x[index(i)];
        return y;
      },
      {.tolerance = 1e-5}));
}

std::vector<Kernel> indexing() {
  std::vector<Kernel> list;
  add_indexing<1>(list);
  add_indexing<3>(list);
  add_indexing<8>(list);
  add_indexing<64>(list);
  return list;
}

// ---- sorting ----

Numbers sorted(Numbers x, bool descending) {
  const auto before = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  std::sort(x.begin(), x.end(), before);
  if (descending) std::reverse(x.begin(), x.end());
  return x;
}

template <class T>
void sort_one(const T* x, int64_t n, int64_t k, DType dtype, bool descending, T* y) {
  static std::vector<int64_t> indices;
  indices.resize(index(n));
  if (n > 0)
    SortKernels::cpu.sort(x, y, indices.data(), {{}, {}, {}, n, 1, k, 1}, dtype, descending, true);
  for (int64_t i = 0; i < k; ++i) {
    const T from = x[indices[index(i)]];
    expect(from == y[i] || (from != from && y[i] != y[i]), "sort: an index is not its value's");
  }
}

template <class T>
void add_sorting(std::vector<Kernel>& list, const std::string& of, DType dtype, double low) {
  using M = Map<T, T>;
  const Options options{.tolerance = 0, .low = low, .high = 100};
  for (const bool descending : {false, true}) {
    list.push_back(M::kernel(
        str("sort ", of, descending ? " descending" : ""),
        [=](const T* x, int64_t n, T* y) { sort_one(x, n, n, dtype, descending, y); },
        [=](const Numbers& x) { return sorted(x, descending); }, options));
  }
  for (const int64_t most : {5, 100}) {
    list.push_back(M::kernel(
        str("topk ", most, " ", of),
        [=](const T* x, int64_t n, T* y) { sort_one(x, n, std::min(n, most), dtype, true, y); },
        [=](const Numbers& x) {
          return first(sorted(x, true), std::min(x.size(), static_cast<size_t>(most)));
        },
        options));
  }
  list.push_back(M::kernel(
      "select rank " + of,
      [=](const T* x, int64_t n, T* y) {
        int64_t at = 0;
        if (n > 0)
          SelectKernels::cpu.select(x, y, &at, {{}, {}, {}, n, 1, 1, 1}, dtype, Select::Rank,
                                    n / 3);
      },
      [](const Numbers& x) {
        return x.empty() ? Numbers{} : Numbers{sorted(x, false)[x.size() / 3]};
      },
      options));
}

std::vector<Kernel> sorting() {
  std::vector<Kernel> list;
  add_sorting<float>(list, "float32", DType::Float32, -100);
  add_sorting<double>(list, "float64", DType::Float64, -100);
  add_sorting<int64_t>(list, "int64", DType::Int64, -100);
  add_sorting<uint8_t>(list, "uint8", DType::UInt8, 0);
  return list;
}

// ---- optimizer steps ----

// The new parameter of p with gradient g, and states 0.1 (and 0.2, 0.3) that are not null.
template <class Step, class F>
void add_rule(std::vector<Kernel>& list, const char* name, int states, Step step, F reference) {
  for (const auto& [set, table] : TAEDA_SETS(simd, optim_table)) {
    const auto loop = table->loops[portable::position<Step>(portable::OptimRules{})][0];
    list.push_back(Map<float, float>::kernel(
        str("optim ", name, " float32 ", set),
        [=](const float* x, int64_t n, float* y) {
          static std::vector<float> memory;
          memory.resize(index(3 * n));
          float* at[kMostOperands] = {y, const_cast<float*>(x + n / 2)};
          for (int k = 0; k < states; ++k) {
            at[2 + k] = memory.data() + k * n;
            std::fill_n(at[2 + k], n / 2, 0.1f * static_cast<float>(k + 1));
          }
          void* operands[kMostOperands];
          std::copy(std::begin(at), std::end(at), operands);
          std::copy_n(x, n / 2, y);
          loop(step, operands, n / 2);
        },
        [=](const Numbers& x) {
          Numbers y = first(x, x.size() / 2);
          for (size_t i = 0; i < y.size(); ++i) y[i] = reference(y[i], x[y.size() + i]);
          return y;
        },
        {.tolerance = 2e-6, .specials = false}));
  }
}

std::vector<Kernel> optimizers() {
  std::vector<Kernel> list;
  const StepBase base{.lr = 0.5, .weight_decay = 0.25};
  const auto decayed = [](double p, double g) { return g + 0.25 * p; };
  add_rule(list, "sgd", 0, portable::Sgd{base, 0, 0, false, false},
           [=](double p, double g) { return p - 0.5 * decayed(p, g); });
  add_rule(list, "sgd momentum", 1, portable::Sgd{base, 0.9, 0.1, true, false},
           [=](double p, double g) {
             const double m = 0.9 * 0.1 + 0.9 * decayed(p, g);
             return p - 0.5 * (decayed(p, g) + 0.9 * m);
           });
  for (const int states : {2, 3}) {
    add_rule(list, states == 2 ? "adam" : "amsgrad", states,
             portable::Adam{base, 0.9, 0.8, 1e-3, 0.7}, [=](double p, double g) {
               const double d = decayed(p, g), m = 0.1 + 0.1 * (d - 0.1);
               const double v = std::max(0.8 * 0.2 + 0.2 * d * d, states == 3 ? 0.3 : 0.0);
               return p - 0.5 * (m / (std::sqrt(v) / 0.7 + 1e-3));
             });
  }
  add_rule(list, "rmsprop centered", 3, portable::RmsProp{base, 0.9, 0.8, 1.0},
           [=](double p, double g) {
             const double d = decayed(p, g), v = 0.9 * 0.1 + 0.1 * d * d;
             const double mean = 0.3 + 0.1 * (d - 0.3);
             return p - 0.5 * (d / (std::sqrt(v - mean * mean) + 1.0) + 0.8 * 0.2);
           });
  add_rule(list, "adagrad", 1, portable::Adagrad{base, 1e-3, 0.5, 0}, [=](double p, double g) {
    const double d = decayed(p, g);
    return p - 0.5 * d / (std::sqrt(0.1 + d * d) + 1e-3);
  });
  add_rule(list, "adadelta", 2, portable::Adadelta{base, 0.9, 1e-3}, [=](double p, double g) {
    const double d = decayed(p, g), v = 0.9 * 0.1 + 0.1 * d * d;
    return p - 0.5 * std::sqrt(0.2 + 1e-3) / std::sqrt(v + 1e-3) * d;
  });
  return list;
}

const RegisterFamily families[] = {
    {"rows", rows}, {"index", indexing}, {"sort", sorting}, {"optim", optimizers}};

}  // namespace
}  // namespace taeda::test
