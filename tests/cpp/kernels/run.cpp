// Runs all kernels' tests, and times them.
#include "run.h"

#include <chrono>
#include <cstdio>

#include "kernels.h"

namespace taeda::test {
namespace {

double nanoseconds(const Kernel& kernel) {
  using Clock = std::chrono::steady_clock;
  double best = 1e300;
  for (int64_t count = 1, repeat = 0; repeat < 8;) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < count; ++i) kernel.run();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (ns < 1e6) {
      count *= 2;
      continue;
    }
    best = std::min(best, ns / static_cast<double>(count));
    ++repeat;
  }
  return best;
}

const Register tests[] = {{"kernels: every instruction set against scalar references", [] {
                             expect(!families().empty(), "no kernels");
                             for (const Family& family : families()) {
                               for (const Kernel& kernel : family.kernels()) kernel.check();
                             }
                           }}};

}  // namespace

int run_benchmarks(const std::string& filter) {
  constexpr int64_t kElements = 4096;
  std::printf("%-36s ns per element, %d of them\n", "kernel", static_cast<int>(kElements));
  for (const Family& family : families()) {
    for (const Kernel& kernel : family.kernels()) {
      if (kernel.name.find(filter) == std::string::npos) continue;
      kernel.prepare(kElements);
      std::printf("%-36s %8.3f\n", kernel.name.c_str(), nanoseconds(kernel) / kElements);
    }
  }
  return 0;
}

}  // namespace taeda::test
