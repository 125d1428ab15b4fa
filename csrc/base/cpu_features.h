// What this machine has: which of the instruction sets that kernels are compiled for, and caches.
#pragma once

#include <cstdint>

namespace taeda {

// x86-64 psABI levels (v2: SSE4.2, v3: AVX2 and FMA, v4: AVX-512). Other architectures have one
// level, `baseline`.
enum class CpuLevel { baseline = 1, v2 = 2, v3 = 3, v4 = 4 };

// The highest level this machine supports, or what TAEDA_CPU=v2|v3|v4 asks for where that is lower.
// Decided once.
CpuLevel cpu_level();
CpuLevel supported_cpu_level();
const char* cpu_level_name(CpuLevel level);

// Bytes of the data caches that one core reaches; l3 is the last level, whatever its number.
// Kernels choose by them when to prefetch and how to store, never what they compute.
struct Caches {
  int64_t l1, l2, l3;
};
const Caches& caches();  // read once

}  // namespace taeda
