// Autocast's state, for taeda.amp.
#include "autograd/autocast.h"

#include "python/casters.h"
#include "python/module.h"

namespace nb = nanobind;

namespace taeda {

void bind_autocast(nb::module_& m) {
  m.def(
      "_autocast",
      [] {
        const AutocastState s = autocast();
        return nb::make_tuple(s.cpu.enabled, s.cpu.dtype, s.cuda.enabled, s.cuda.dtype, s.cache);
      },
      "Whether autocast is on in this thread and its dtype, for the CPU and for CUDA, and whether "
      "parameters are cached.");
  m.def(
      "_set_autocast",
      [](bool cpu, DType cpu_dtype, bool cuda, DType cuda_dtype, bool cache) {
        set_autocast({{cpu, cpu_dtype}, {cuda, cuda_dtype}, cache});
      },
      nb::arg("cpu"), nb::arg("cpu_dtype"), nb::arg("cuda"), nb::arg("cuda_dtype"),
      nb::arg("cache"));
  m.def("_clear_autocast_cache", &clear_autocast_cache);
}

}  // namespace taeda
