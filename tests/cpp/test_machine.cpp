// What is found out about the machine: its instruction sets and the CPU time that it allows.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/cpu_features.h"
#include "base/cpu_quota.h"
#include "check.h"

namespace taeda::test {
namespace {

constexpr uint32_t bit(int i) { return uint32_t{1} << i; }
constexpr uint32_t kV2 = bit(0) | bit(9) | bit(13) | bit(19) | bit(20) | bit(23);
constexpr uint32_t kV3 = kV2 | bit(12) | bit(22) | bit(28) | bit(29);
constexpr uint32_t kV3Leaf7 = bit(3) | bit(5) | bit(8), kV3Extended = bit(0) | bit(5);
constexpr uint32_t kV4Leaf7 = kV3Leaf7 | bit(16) | bit(17) | bit(28) | bit(30) | bit(31);
constexpr CpuId kOld{bit(0) | bit(9) | bit(13), 0, bit(0), 0};
constexpr CpuId kLevel2{kV2, 0, bit(0), 0};
constexpr CpuId kLevel3{kV3, kV3Leaf7, kV3Extended, 7};
constexpr CpuId kLevel4{kV3, kV4Leaf7, kV3Extended, 0xe7};

// A folder with files like those of /proc and /sys, gone again at the end.
class Files {
 public:
  Files() {
    std::string name = std::filesystem::temp_directory_path() / "taeda-XXXXXX";
    expect(mkdtemp(name.data()) != nullptr, "no temporary folder");
    root_ = name;
  }
  ~Files() { std::filesystem::remove_all(root_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream(root_ + path) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

const std::string kMountsV2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string kMountsV1 =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

const Register machine[] = {
    {"machine: a level needs each of its features",
     [] {
       expect_equal(missing_features(kLevel2, CpuLevel::v2), "");
       expect_equal(missing_features(kLevel3, CpuLevel::v3), "");
       expect_equal(missing_features(kLevel4, CpuLevel::v4), "");
       expect_equal(missing_features(kOld, CpuLevel::v2), "sse4.1, sse4.2, popcnt");
       for (const auto& [word, bits, name] :
            {std::tuple{&CpuId::leaf1_ecx, bit(29), "f16c"},
             {&CpuId::leaf1_ecx, bit(22), "movbe"},
             {&CpuId::extended1_ecx, bit(5), "lzcnt"},
             {&CpuId::leaf7_ebx, bit(5), "avx2"},
             {&CpuId::saved_state, 4u, "256-bit registers saved"}}) {
         CpuId id = kLevel3;
         id.*word &= ~bits;
         expect_equal(missing_features(id, CpuLevel::v3), name);
         expect_equal(missing_features(id, CpuLevel::v2), "");
       }
       CpuId id = kLevel4;
       id.saved_state = 7;  // an operating system without AVX-512
       expect_equal(missing_features(id, CpuLevel::v4), "512-bit registers saved");
     }},
    {"machine: this one runs what was chosen",
     [] {
       expect_equal(cpu_choice().error, "");
       expect(cpu_level() <= supported_cpu_level(), "a level above the machine's");
       expect_equal(choose_cpu_level(read_cpuid(), nullptr).warning, "");
       expect(!choose_cpu_level(read_cpuid(), "avx9").error.empty(), "an unknown name passed");
     }},
#if defined(__x86_64__)
    {"machine: TAEDA_CPU lowers the level",
     [] {
       for (const char* nothing : {static_cast<const char*>(nullptr), ""}) {
         expect(choose_cpu_level(kLevel4, nothing).level == CpuLevel::v4, "not the highest");
         expect(choose_cpu_level(kLevel3, nothing).level == CpuLevel::v3, "not the highest");
       }
       const CpuChoice lower = choose_cpu_level(kLevel4, "v2");
       expect(lower.level == CpuLevel::v2 && lower.warning.empty() && lower.error.empty(), "v2");
       const CpuChoice higher = choose_cpu_level(kLevel3, "v4");
       expect(higher.level == CpuLevel::v3, "the highest there is");
       expect_equal(higher.warning,
                    "TAEDA_CPU=v4 is beyond this machine, which has v3, v2; using v3");
       expect_equal(choose_cpu_level(kLevel3, "AVX2").error,
                    "TAEDA_CPU=AVX2 is no instruction set; this machine has v3, v2");
     }},
    {"machine: processors below v2 are refused",
     [] {
       for (const char* asked : {static_cast<const char*>(nullptr), "v2"})
         expect_equal(choose_cpu_level(kOld, asked).error,
                      "taeda needs an x86-64 processor of level v2 or above; this one lacks "
                      "sse4.1, sse4.2, popcnt");
     }},
#endif
    {"machine: quotas of control groups, version 2",
     [] {
       const Files files;
       expect_equal(cpu_quota(files.root()), 0.0);
       files.write("/proc/self/cgroup", "0::/batch/job 7\n");
       expect_equal(cpu_quota(files.root()), 0.0);
       files.write("/proc/self/mountinfo", kMountsV2);
       expect_equal(cpu_quota(files.root()), 0.0);
       files.write("/sys/fs/cgroup/batch/job 7/cpu.max", "max 100000\n");
       expect_equal(cpu_quota(files.root()), 0.0);
       files.write("/sys/fs/cgroup/batch/job 7/cpu.max", "150000 100000\n");
       expect_equal(cpu_quota(files.root()), 1.5);
       files.write("/sys/fs/cgroup/batch/cpu.max", "40000 80000\n");  // the group above has less
       expect_equal(cpu_quota(files.root()), 0.5);
       files.write("/proc/self/cgroup", "0::/\n");  // in a container, its own group is the top
       files.write("/sys/fs/cgroup/cpu.max", "300000 100000\n");
       expect_equal(cpu_quota(files.root()), 3.0);
       files.write("/sys/fs/cgroup/cpu.max", "");
       expect_equal(cpu_quota(files.root()), 0.0);
     }},
    {"machine: quotas of control groups, version 1",
     [] {
       const Files files;
       const std::string folder = "/sys/fs/cgroup/cpu,cpuacct";
       files.write("/proc/self/mountinfo", kMountsV1);
       files.write("/proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/docker/abc\n0::/\n");
       files.write(folder + "/docker/abc/cpu.cfs_quota_us", "-1\n");
       files.write(folder + "/docker/abc/cpu.cfs_period_us", "100000\n");
       expect_equal(cpu_quota(files.root()), 0.0);
       files.write(folder + "/docker/abc/cpu.cfs_quota_us", "250000\n");
       expect_equal(cpu_quota(files.root()), 2.5);
       // A container that sees its own group as the top folder.
       files.write("/proc/self/mountinfo",
                   "33 31 0:30 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
       files.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
       files.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
       expect_equal(cpu_quota(files.root()), 4.0);
     }},
};

}  // namespace
}  // namespace taeda::test
