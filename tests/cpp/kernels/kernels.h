// Direct tests of kernels: each is run on every instruction set that this machine has, through the
// tables that dispatch chooses from, and compared with a scalar reference in float64. The same
// entries are timed by `taeda_tests --bench [part of a name]`.
//
// A kernel is described as a map from n numbers to results; what else it needs (shapes, strides)
// its entry derives from n.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../check.h"
#include "base/cpu_features.h"

namespace taeda::test {

// The tables of all instruction sets that run here, with their names.
template <class Table> using Sets = std::vector<std::pair<std::string, const Table*>>;
template <class Table> Sets<Table> supported(std::initializer_list<const Table*> tables) {
  Sets<Table> sets;
#if defined(__x86_64__)
  CpuLevel level = CpuLevel::v2;
#else
  CpuLevel level = CpuLevel::baseline;
#endif
  for (const Table* table : tables) {
    if (level <= supported_cpu_level()) sets.emplace_back(cpu_level_name(level), table);
    level = static_cast<CpuLevel>(static_cast<int>(level) + 1);
  }
  return sets;
}
#if defined(__x86_64__)
#define TAEDA_SETS(space, table) \
  supported({&space::v2::table, &space::v3::table, &space::v4::table})
#else
#define TAEDA_SETS(space, table) supported({&space::base::table})
#endif

struct Kernel {
  std::string name;
  std::function<void()> check;
  std::function<void(int64_t n)> prepare;  // for timing
  std::function<void()> run;
};
struct Family {
  const char* name;
  std::vector<Kernel> (*kernels)();
};
inline std::vector<Family>& families() {
  static std::vector<Family> all;
  return all;
}
struct RegisterFamily {
  RegisterFamily(const char* name, std::vector<Kernel> (*kernels)()) {
    families().push_back({name, kernels});
  }
};

using Numbers = std::vector<double>;

struct Options {
  double tolerance = 1e-6;    // relative to the result, or to 1 where that is smaller
  double low = -4, high = 4;  // of the inputs
  bool specials =
      true;  // NaN, infinities and zeros of both signs are treated as the reference does
  std::vector<int64_t> sizes = {0,  1,  2,  3,  4,  5,  7,   8,   9,   15,   16,  17,
                                31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 4099};
};

// A kernel from n values of T to results of R; `reference` gives as many results as there are.
template <class T, class R> class Map {
 public:
  using Run = std::function<void(const T* x, int64_t n, R* y)>;
  using Reference = std::function<Numbers(const Numbers& x)>;

  static Kernel kernel(std::string name, Run run, Reference reference, Options options = {}) {
    auto inputs = std::make_shared<std::pair<std::vector<T>, std::vector<R>>>();
    return {name, [=] { check(name, run, reference, options); },
            [=](int64_t n) {
              std::mt19937 random(1);
              inputs->first = values(n, random, options, false);
              const Numbers x(inputs->first.begin(), inputs->first.end());
              inputs->second.resize(reference(x).size());
            },
            [=] { run(inputs->first.data(), std::ssize(inputs->first), inputs->second.data()); }};
  }

 private:
  static std::vector<T> values(int64_t n, std::mt19937& random, const Options& o, bool specials) {
    std::uniform_real_distribution<double> uniform(o.low, o.high);
    std::vector<T> x(static_cast<size_t>(n));
    for (T& v : x) v = static_cast<T>(uniform(random));
    if constexpr (std::is_floating_point_v<T>) {
      using L = std::numeric_limits<T>;
      const T special[] = {L::quiet_NaN(), L::infinity(), -L::infinity(), T{0}, -T{0}};
      for (T& v : x) {
        if (specials && random() % 7 == 0) v = special[random() % 5];
      }
    }
    return x;
  }

  static void check(const std::string& name, const Run& run, const Reference& reference,
                    const Options& options) {
    constexpr int kGuard = 64;  // results beyond the end, which must stay
    constexpr unsigned char kMark = 0x5a;
    std::mt19937 random(1);
    for (const int64_t n : options.sizes) {
      for (int round = 0; round < (options.specials ? 3 : 1); ++round) {
        // From the second element of its memory: nothing may depend on alignment.
        std::vector<T> x = values(n, random, options, round == 2);
        x.insert(x.begin(), T{});
        x.shrink_to_fit();  // so that AddressSanitizer sees what is read beyond the end
        const Numbers expected = reference(Numbers(x.begin() + 1, x.end()));
        const size_t count = expected.size();
        std::vector<R> y(count + 1 + kGuard);
        std::memset(static_cast<void*>(y.data()), kMark, y.size() * sizeof(R));
        const std::vector<R> before = y;
        run(x.data() + 1, n, y.data() + 1);
        for (size_t i = 0; i < count; ++i) compare(name, n, i, y[i + 1], expected[i], options);
        const auto same = [&](size_t from, size_t many) {
          return std::memcmp(&y[from], &before[from], many * sizeof(R)) == 0;
        };
        expect(same(0, 1) && same(count + 1, kGuard), name + ": wrote beyond its results");
      }
    }
  }
  static void compare(const std::string& name, int64_t n, size_t i, double got, double want,
                      const Options& o) {
    const bool equal = std::isnan(want) ? std::isnan(got)
                       : std::isinf(want)
                           ? got == want
                           : std::abs(got - want) <= o.tolerance * std::max(1.0, std::abs(want));
    expect(equal, str(name, ", n = ", n, ": result ", i, " is ", got, ", not ", want));
  }
};

// Results of f for each element alone.
template <class F> auto each(F f) {
  return [f](const Numbers& x) {
    Numbers y;
    for (double v : x) y.push_back(f(v));
    return y;
  };
}

}  // namespace taeda::test
