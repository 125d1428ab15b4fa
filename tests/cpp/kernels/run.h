#pragma once

#include <string>

namespace taeda::test {

// Prints the time of each kernel whose name contains `filter` on each instruction set.
int run_benchmarks(const std::string& filter);

}  // namespace taeda::test
