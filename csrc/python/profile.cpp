// The profiler's record, for taeda.profiler.
#include "ops/core/profile.h"

#include <nanobind/stl/string.h>

#include <memory>

#include "python/casters.h"
#include "python/module.h"

namespace nb = nanobind;

namespace taeda {
namespace {

nb::list as_list(const Dims& d) {
  nb::list sizes;
  for (int64_t n : d) sizes.append(n);
  return sizes;
}
nb::list shapes_of(const ProfileEvent& e) {
  nb::list shapes;
  for (const Dims& d : e.shapes) shapes.append(as_list(d));
  return shapes;
}

nb::object as_tuple(const ProfileEvent& e) {
  return nb::make_tuple(e.name, e.begin, e.end, e.parent, e.memory, e.user, shapes_of(e),
                        as_list(e.result));
}

// A function that threads may forget when they end, with the lock or without it.
std::shared_ptr<nb::callable> shared(nb::callable f) {
  return {std::make_unique<nb::callable>(std::move(f)).release(), [](nb::callable* held) {
            const std::unique_ptr<nb::callable> owned(held);
            if (!Py_IsInitialized()) {
              (void)owned->release();
              return;
            }
            const nb::gil_scoped_acquire gil;
            owned->reset();
          }};
}

void watch(nb::callable begin, nb::callable end, bool shapes) {
  const auto on_begin = shared(std::move(begin)), on_end = shared(std::move(end));
  profile_start(shapes, false,
                {[on_begin](const ProfileEvent& e) {
                   const nb::gil_scoped_acquire gil;
                   (*on_begin)(e.name, shapes_of(e));
                 },
                 [on_end] {
                   const nb::gil_scoped_acquire gil;
                   try {
                     (*on_end)();
                   } catch (nb::python_error& error) {
                     error.discard_as_unraisable("the end of an operation");
                   }
                 }});
}

}  // namespace

void bind_profile(nb::module_& m) {
  m.def(
      "_profile_start", [](bool shapes, bool memory) { profile_start(shapes, memory); },
      nb::arg("shapes"), nb::arg("memory"));
  m.def("_profile_watch", &watch, nb::arg("begin"), nb::arg("end"), nb::arg("shapes"),
        "Call begin(name, shapes) and end() for each operation and range of this thread, until "
        "_profile_stop.");
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
