// How much CPU time the control groups of this process allow (containers, batch systems).
#pragma once

#include <string>

namespace taeda {

// The number of CPUs that quotas of control groups, version 1 or 2, amount to: the least over the
// process's group and all groups above it, or 0 without any. `root` stands before the paths that
// are read.
double cpu_quota(const std::string& root = "");

}  // namespace taeda
