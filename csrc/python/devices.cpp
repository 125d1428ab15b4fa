// Loading devices from libraries.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <map>

#include "base/error.h"
#include "kernels/device_plugin.h"
#include "kernels/kernels.h"
#include "ops/pointwise/copy.h"
#include "python/casters.h"
#include "python/module.h"

namespace taeda::py {
namespace {

const void* cpu_kernels(const char* table) {
  const KernelTable* found = taeda::find_table(table);
  return found ? found->cpu : nullptr;
}

// The library stays loaded: tensors of its device may live until the process ends.
const DevicePlugin& open_plugin(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  check(library, "register_device(): ", library ? "" : dlerror());
  const auto entry = reinterpret_cast<DeviceEntry>(dlsym(library, "taeda_device"));
  check(entry, "register_device(): ", path, " has no function taeda_device");
  static const DeviceHost host{cpu_kernels};
  static std::map<DeviceEntry, const DevicePlugin*> asked;  // once each, also after a failure
  const DevicePlugin*& plugin = asked[entry];
  if (!plugin) plugin = entry(host);
  check(plugin, "register_device(): ", path, " gave no device");
  check(plugin->interface == kDeviceInterface, "register_device(): ", path,
        " was compiled for interface ", plugin->interface, ", this version of taeda has ",
        kDeviceInterface);
  for (const DeviceTable& t : plugin->tables) {
    const KernelTable* known = taeda::find_table(t.name);
    check(known && known->size == t.size, "register_device(): ", path, " has kernels ", t.name,
          " that this version of taeda does not know");
  }
  return *plugin;
}

void add_device(DeviceType type, const DevicePlugin& plugin) {
  register_device(type, plugin.runtime);
  for (const DeviceTable& t : plugin.tables)
    taeda::find_table(t.name)->others[static_cast<size_t>(type)] = t.kernels;
}

void load_device(const std::string& name, const std::string& path) {
  require_no_device(DeviceType::PrivateUse1);
  const DevicePlugin& plugin = open_plugin(path);
  set_private_device_name(name);
  add_device(DeviceType::PrivateUse1, plugin);
}

void load_cuda(const std::string& path) {
  require_no_device(DeviceType::CUDA);
  add_device(DeviceType::CUDA, open_plugin(path));
}

// Python knows where the library is, if anywhere.
void find_cuda() {
  const nanobind::gil_scoped_acquire gil;
  nanobind::module_::import_("taeda.cuda._library").attr("load")();
}

}  // namespace

void init_devices(PyObject* module) {
  cuda_loader = find_cuda;
  auto m = nanobind::borrow<nanobind::module_>(module);
  m.def("_load_cuda", load_cuda, nanobind::arg("library"), "Loads the library of CUDA devices.");
  m.def("_register_device", load_device, nanobind::arg("name"), nanobind::arg("library"),
        "Loads a library that adds a device.");
  m.def("_pinned_copy", pinned_copy, nanobind::arg("input"), "A copy in pinned memory.");
  m.def("_set_fallback_to_cpu", &set_fallback_to_cpu, nanobind::arg("on"),
        "Whether operations that a device has no kernel for run on the CPU.");
}

}  // namespace taeda::py
