// What this machine has: which of the instruction sets that kernels are compiled for, and caches.
#pragma once

#include <cstdint>
#include <string>

namespace taeda {

// x86-64 psABI levels (v2: SSE4.2, v3: AVX2 and FMA, v4: AVX-512). Other architectures have one
// level, `baseline`.
enum class CpuLevel { baseline = 1, v2 = 2, v3 = 3, v4 = 4 };

// The level that kernels run with: the highest that this machine supports, or what TAEDA_CPU asks
// for where that is lower. Decided once.
CpuLevel cpu_level();
CpuLevel supported_cpu_level();
const char* cpu_level_name(CpuLevel level);

// Bytes of the data caches that one core reaches; l3 is the last level, whatever its number.
// Kernels choose by them when to prefetch and how to store, never what they compute.
struct Caches {
  int64_t l1, l2, l3;
};
const Caches& caches();  // read once
bool is_intel();         // an x86 processor by Intel

// What a user is told when the library is loaded. With an error, no kernel can run: this x86
// processor is below v2, or TAEDA_CPU names no level. A warning: TAEDA_CPU names a level that the
// processor does not have.
struct CpuChoice {
  CpuLevel level = CpuLevel::baseline;
  std::string error{}, warning{};
};
const CpuChoice& cpu_choice();

// ---- the parts, for tests ----

// The registers in which an x86 processor says what it can do.
struct CpuId {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, extended1_ecx = 0;
  uint32_t saved_state = 0;  // XCR0: which registers the operating system saves
};
CpuId read_cpuid();
// The names of the features that code for `level` uses and this processor lacks, by commas.
std::string missing_features(const CpuId& id, CpuLevel level);
// `asked` is the value of TAEDA_CPU, or nullptr.
CpuChoice choose_cpu_level(const CpuId& id, const char* asked);

}  // namespace taeda
