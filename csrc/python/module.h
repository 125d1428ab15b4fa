// The parts of taeda._C that have no header of their own.
#pragma once

#include <nanobind/nanobind.h>

#include "python/errors.h"

namespace taeda {

void bind_autograd(nanobind::module_& m);        // autograd.cpp
void bind_autocast(nanobind::module_& m);        // autocast.cpp
void bind_profile(nanobind::module_& m);         // profile.cpp
void bind_step_log(nanobind::module_& m);        // step_log.cpp: losses and times for taeda.record
void bind_gradient_watch(nanobind::module_& m);  // gradient_watch.cpp: checks of taeda.strict

namespace py {
void init_creation(PyObject* module);  // tensor_new.cpp: tensor, as_tensor, asarray
void init_interop(PyObject* module);   // numpy.cpp, to_numpy.cpp, dlpack.cpp and storage.cpp
void init_to_numpy(PyObject* module);
void init_dlpack(PyObject* module);
void init_cuda_array(PyObject* module);
void init_storage(PyObject* module);
void init_files(PyObject* module);          // files.cpp: reading and checksums
void init_optim(PyObject* module);          // optim.cpp: the inputs of an optimizer's step
void init_named_tensors(PyObject* module);  // named_tensors.cpp: loops over dicts of tensors
void init_extension(PyObject* module);      // extension.cpp: the table of taeda/abi.h
void init_devices(PyObject* module);        // devices.cpp: those that libraries add
void init_package(PyObject* module);        // package.cpp: the type of the package's module
void init_class_slots(PyObject* module);    // class_slots.cpp: how attributes of a class are read
}  // namespace py

}  // namespace taeda
