#include "base/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>

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

namespace {

// One line of a file under /sys; empty where there is none.
std::string read_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// "32K" or "16M"
int64_t parse_bytes(const std::string& text) {
  const int64_t n = std::strtoll(text.c_str(), nullptr, 10);
  switch (text.empty() ? '\0' : text.back()) {
    case 'K': return n << 10;
    case 'M': return n << 20;
    default: return n;
  }
}

Caches read_caches() {
  int64_t bytes[3] = {32 << 10, 1 << 20, 16 << 20};
  for (int i = 0; i < 8; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = read_line(folder + "type");
    const int64_t level = parse_bytes(read_line(folder + "level")),
                  size = parse_bytes(read_line(folder + "size"));
    if (type.empty()) break;
    if (type != "Instruction" && level >= 1 && level <= 3 && size > 0) bytes[level - 1] = size;
  }
  // Virtual machines report odd sizes, and a last level shared by dozens of cores is not one's own.
  const int64_t l1 = std::clamp<int64_t>(bytes[0], 16 << 10, 256 << 10),
                l2 = std::clamp<int64_t>(bytes[1], 128 << 10, 4 << 20);
  return {l1, l2, std::clamp<int64_t>(bytes[2], 4 << 20, 64 << 20)};
}

}  // namespace

const Caches& caches() {
  static const Caches sizes = read_caches();
  return sizes;
}

}  // namespace taeda
