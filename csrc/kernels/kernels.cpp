#include "kernels/kernels.h"

#include <map>

namespace taeda {
namespace {

std::map<std::string_view, KernelTable>& tables() {
  static std::map<std::string_view, KernelTable> all;
  return all;
}

}  // namespace

MissingKernel::MissingKernel(std::string package)
    : NotImplemented("the device has no kernel for this operation"),
      without(std::move(package)) {}

void missing_kernel() { throw MissingKernel(""); }
void missing_package(std::string package) { throw MissingKernel(std::move(package)); }

bool list_table(const KernelTable& table) { return tables().emplace(table.name, table).second; }

const KernelTable* find_table(std::string_view name) {
  const auto found = tables().find(name);
  return found == tables().end() ? nullptr : &found->second;
}

}  // namespace taeda
