#include "base/cpu_features.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace taeda {
namespace {

// Everything that compilers may use in code for a level (-march=x86-64-v2 and so on). AVX and
// AVX-512 also need an operating system that saves their registers.
struct Feature {
  CpuLevel level;
  const char* name;
  uint32_t CpuId::* word;
  uint32_t bits;
};
constexpr uint32_t bit(int i) { return uint32_t{1} << i; }
constexpr Feature kFeatures[] = {
    {CpuLevel::v2, "sse3", &CpuId::leaf1_ecx, bit(0)},
    {CpuLevel::v2, "ssse3", &CpuId::leaf1_ecx, bit(9)},
    {CpuLevel::v2, "cmpxchg16b", &CpuId::leaf1_ecx, bit(13)},
    {CpuLevel::v2, "sse4.1", &CpuId::leaf1_ecx, bit(19)},
    {CpuLevel::v2, "sse4.2", &CpuId::leaf1_ecx, bit(20)},
    {CpuLevel::v2, "popcnt", &CpuId::leaf1_ecx, bit(23)},
    {CpuLevel::v2, "lahf", &CpuId::extended1_ecx, bit(0)},
    {CpuLevel::v3, "avx", &CpuId::leaf1_ecx, bit(28)},
    {CpuLevel::v3, "avx2", &CpuId::leaf7_ebx, bit(5)},
    {CpuLevel::v3, "bmi", &CpuId::leaf7_ebx, bit(3)},
    {CpuLevel::v3, "bmi2", &CpuId::leaf7_ebx, bit(8)},
    {CpuLevel::v3, "f16c", &CpuId::leaf1_ecx, bit(29)},
    {CpuLevel::v3, "fma", &CpuId::leaf1_ecx, bit(12)},
    {CpuLevel::v3, "lzcnt", &CpuId::extended1_ecx, bit(5)},
    {CpuLevel::v3, "movbe", &CpuId::leaf1_ecx, bit(22)},
    {CpuLevel::v3, "256-bit registers saved", &CpuId::saved_state, 0x06},
    {CpuLevel::v4, "avx512f", &CpuId::leaf7_ebx, bit(16)},
    {CpuLevel::v4, "avx512dq", &CpuId::leaf7_ebx, bit(17)},
    {CpuLevel::v4, "avx512cd", &CpuId::leaf7_ebx, bit(28)},
    {CpuLevel::v4, "avx512bw", &CpuId::leaf7_ebx, bit(30)},
    {CpuLevel::v4, "avx512vl", &CpuId::leaf7_ebx, bit(31)},
    {CpuLevel::v4, "512-bit registers saved", &CpuId::saved_state, 0xe6},
};

bool supports([[maybe_unused]] const CpuId& id, CpuLevel level) {
#if defined(__x86_64__)
  return level >= CpuLevel::v2 && missing_features(id, level).empty();
#else
  return level == CpuLevel::baseline;
#endif
}

}  // namespace

CpuId read_cpuid() {
  CpuId id;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) id.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) id.leaf7_ebx = ebx;
  if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) id.extended1_ecx = ecx;
  if (id.leaf1_ecx & bit(27)) {  // OSXSAVE: XCR0 can be read
    asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    id.saved_state = eax;
  }
#endif
  return id;
}

std::string missing_features(const CpuId& id, CpuLevel level) {
  std::string names;
  for (const Feature& f : kFeatures) {
    if (f.level > level || (id.*f.word & f.bits) == f.bits) continue;
    if (!names.empty()) names += ", ";
    names += f.name;
  }
  return names;
}

CpuChoice choose_cpu_level(const CpuId& id, const char* asked) {
  CpuChoice choice;
  const std::string wanted = asked == nullptr ? "" : asked;
  std::string names;  // of the levels that this machine supports
  bool known = wanted.empty();
  for (CpuLevel level : {CpuLevel::v4, CpuLevel::v3, CpuLevel::v2, CpuLevel::baseline}) {
    const char* name = cpu_level_name(level);
    known |= name == wanted;
    if (!supports(id, level)) continue;
    if (names.empty() || name == wanted) choice.level = level;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (names.empty()) {
    choice.error = "taeda needs an x86-64 processor of level v2 or above; this one lacks " +
                   missing_features(id, CpuLevel::v2);
  } else if (!known) {
    choice.error = "TAEDA_CPU=" + wanted + " is no instruction set; this machine has " + names;
  } else if (!wanted.empty() && wanted != cpu_level_name(choice.level)) {
    choice.warning = "TAEDA_CPU=" + wanted + " is beyond this machine, which has " + names +
                     "; using " + cpu_level_name(choice.level);
  }
  return choice;
}

const CpuChoice& cpu_choice() {
  static const CpuChoice choice = choose_cpu_level(read_cpuid(), std::getenv("TAEDA_CPU"));
  return choice;
}

CpuLevel cpu_level() {
  static const CpuLevel level = cpu_choice().level;
  return level;
}

CpuLevel supported_cpu_level() { return choose_cpu_level(read_cpuid(), nullptr).level; }

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

bool is_intel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

}  // namespace taeda
