// The profiler's record, for taeda.profiler.
#include "ops/core/profile.h"

#include <nanobind/stl/string.h>

#include "python/casters.h"
#include "python/module.h"

namespace nb = nanobind;

namespace taeda {
namespace {

nb::object as_tuple(const ProfileEvent& e) {
  auto as_list = [](const Dims& d) {
    nb::list sizes;
    for (int64_t n : d) sizes.append(n);
    return sizes;
  };
  nb::list shapes;
  for (const Dims& d : e.shapes) shapes.append(as_list(d));
  return nb::make_tuple(e.name, e.begin, e.end, e.parent, e.memory, e.user, shapes,
                        as_list(e.result));
}

}  // namespace

void bind_profile(nb::module_& m) {
  m.def("_profile_start", &profile_start, nb::arg("shapes"), nb::arg("memory"));
  m.def(
      "_profile_stop",
      [] {
        nb::list events;
        for (const ProfileEvent& e : profile_stop()) events.append(as_tuple(e));
        return events;
      },
      "What was recorded: (name, begin, end, parent, memory, user, shapes, result) of each event.");
  m.def("_profile_enter", &profile_enter, nb::arg("name"));
  m.def("_profile_exit", &profile_exit, nb::arg("range"));
}

}  // namespace taeda
