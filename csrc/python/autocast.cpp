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
        const Autocast a = autocast();
        return nb::make_tuple(a.enabled, a.dtype, a.cache);
      },
      "Whether autocast is on in this thread, its dtype, and whether parameters are cached.");
  m.def(
      "_set_autocast",
      [](bool enabled, DType dtype, bool cache) { set_autocast({enabled, dtype, cache}); },
      nb::arg("enabled"), nb::arg("dtype"), nb::arg("cache"));
  m.def("_clear_autocast_cache", &clear_autocast_cache);
}

}  // namespace taeda
