// Runs every registered test; the last line is what a test runner reads.
#include <exception>

#include "base/cpu_features.h"
#include "check.h"

int main() {
  if (const std::string& error = taeda::cpu_choice().error; !error.empty()) {
    std::printf("%s\n", error.c_str());
    return 1;
  }
  int passed = 0, failed = 0;
  for (const auto& t : taeda::test::tests()) {
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
