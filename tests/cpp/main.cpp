// Runs every registered test; the last line is what a test runner reads. `--skip PART` leaves out
// those whose name contains PART; `--bench [PART]` times kernels instead, all or those.
#include <exception>

#include "base/cpu_features.h"
#include "check.h"
#include "kernels/run.h"

int main(int count, char** words) {
  if (const std::string& error = taeda::cpu_choice().error; !error.empty()) {
    std::printf("%s\n", error.c_str());
    return 1;
  }
  if (count > 1 && std::string(words[1]) == "--bench")
    return taeda::test::run_benchmarks(count > 2 ? words[2] : "");
  const std::string skip = count > 2 && std::string(words[1]) == "--skip" ? words[2] : "";
  int passed = 0, failed = 0;
  for (const auto& t : taeda::test::tests()) {
    if (!skip.empty() && std::string(t.name).find(skip) != std::string::npos) continue;
    try {
      t.run();
      ++passed;
    } catch (const std::exception& e) {
      ++failed;
      std::printf("FAILED %s: %s\n", t.name, e.what());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
