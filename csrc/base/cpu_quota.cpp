#include "base/cpu_quota.h"

#include <fstream>
#include <sstream>

namespace taeda {
namespace {

// "100000 50000" or "max 100000" of cpu.max (version 2): time allowed in each period.
double quota_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && quota > 0 && period > 0 ? quota / period : 0;
}

// Version 1 has a file for each of the two, and a quota of -1 where there is none.
double quota_v1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period
                                                                                 : 0;
}

// The least quota of the group at `path` below `mount`, and of all groups above it.
double least_quota(const std::string& mount, std::string path, double (*read)(const std::string&)) {
  double least = 0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const double quota = read(mount + path);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (path.empty()) return least;
    path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

bool contains(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

// A mounted hierarchy of groups: where, and which group its top folder shows (in a container, this
// may be the container's own).
struct Mount {
  std::string point{}, top{};
};
Mount find_mount(const std::string& root, bool v2) {
  std::ifstream file(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    // 36 35 98:0 /top /mount/point rw,noatime master:1 - type source options
    std::istringstream words(line);
    std::string skip, top, point, word, type, source, options;
    words >> skip >> skip >> skip >> top >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    if (v2 ? type == "cgroup2" : type == "cgroup" && contains(options, "cpu")) return {point, top};
  }
  return {};
}

}  // namespace

double cpu_quota(const std::string& root) {
  double least = 0;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // 4:cpu,cpuacct:/path, or 0::/path of version 2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && !contains(controllers, "cpu")) continue;
    const Mount mount = find_mount(root, v2);
    if (mount.point.empty()) continue;
    std::string path = line.substr(second + 1);
    if (mount.top != "/" && path.starts_with(mount.top)) path.erase(0, mount.top.size());
    const double quota = least_quota(root + mount.point, path, v2 ? quota_v2 : quota_v1);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  }
  return least;
}

}  // namespace taeda
