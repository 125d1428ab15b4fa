#include "base/cpu_features.h"

#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace taeda {

CpuLevel supported_cpu_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  // Each level needs all of the one below; these are the extensions our code generation relies on.
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? CpuLevel::v4 : v3 ? CpuLevel::v3 : v2 ? CpuLevel::v2 : CpuLevel::baseline;
#else
  return CpuLevel::baseline;
#endif
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const CpuLevel supported = supported_cpu_level();
    const char* asked = std::getenv("TAEDA_CPU");
    if (asked == nullptr) return supported;
    for (CpuLevel level : {CpuLevel::v2, CpuLevel::v3, CpuLevel::v4}) {
      if (std::strcmp(asked, cpu_level_name(level)) == 0 && level <= supported) return level;
    }
    return supported;
  }();
  return level;
}

const char* cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::v2: return "v2";
    case CpuLevel::v3: return "v3";
    case CpuLevel::v4: return "v4";
    case CpuLevel::baseline: break;
  }
  return "baseline";
}

}  // namespace taeda
