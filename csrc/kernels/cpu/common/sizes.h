// Arithmetic of sizes.
#pragma once

#include <cstdint>

namespace taeda::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
inline double real(int64_t n) { return static_cast<double>(n); }

}  // namespace taeda::cpu
