// taeda._C: the extension module.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <vector>

#include "base/allocator.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "base/warn.h"
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/gemm.h"
#include "python/batching.h"
#include "python/casters.h"
#include "python/dispatch_modes.h"
#include "python/library.h"
#include "python/module.h"
#include "python/objects.h"
#include "python/op_callable.h"
#include "python/overrides.h"
#include "python/results.h"
#include "python/tensor_slots.h"
#include "python/traits.h"

namespace nb = nanobind;
using namespace taeda;

namespace {

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Error&) {
    py::translate_exception();
  }
}

void bind_machine(nb::module_& m) {
  m.def("get_num_threads", &get_num_threads, "How many threads may work on one call.");
  m.def(
      "set_num_threads",
      [](int64_t n) {
        check(n > 0, "set_num_threads expects a positive integer, got ", n);
        set_num_threads(static_cast<int>(std::min<int64_t>(n, 4096)));
      },
      nb::arg("num"), "Set how many threads may work on one call.");
  m.def(
      "cpu_level", [] { return cpu_level_name(cpu_level()); },
      "The instruction set that kernels run with.");
  m.def(
      "cpu_memory_stats",
      [] {
        cpu::MemoryStats s = cpu::memory_stats();
        nb::dict d;
        d["allocated"] = s.allocated;
        d["reserved"] = s.reserved;
        d["peak"] = s.peak;
        d["limit"] =
            s.limit == cpu::kNoLimit ? nb::object(nb::none()) : nb::object(nb::int_(s.limit));
        d["allocations"] = s.allocations;
        d["system_calls"] = s.system_calls;
        return d;
      },
      "Bytes in use, held, at the most and allowed.");
  m.def("cpu_reset_peak_memory", &cpu::reset_peak);
  m.def("cpu_empty_cache", &cpu::empty_cache);
  m.def(
      "cpu_set_memory_limit",
      [](nb::object bytes) {
        cpu::set_limit(bytes.is_none() ? cpu::kNoLimit : nb::cast<size_t>(bytes));
      },
      nb::arg("bytes").none(), "The most bytes that tensors may hold; None for no limit.");
}

// For benchmarks/tune.py.
void bind_conv_tuning(nb::module_& m) {
  m.def(
      "_force_conv",
      [](const std::string& name) {
        check(cpu::force_conv_algorithm(name.empty() ? nullptr : name.c_str()),
              "no convolution algorithm is called '", name, "'");
      },
      nb::arg("name"),
      "Use this algorithm for all convolutions that it can compute; '' to choose by estimates.");
  m.def(
      "_conv_candidates",
      [](int which, int64_t batch, int64_t groups, int64_t in_channels, int64_t out_channels,
         const std::vector<std::array<int64_t, 6>>& dimensions) {
        constexpr int64_t most = 1 << 20;  // of every number, so that no product of them overflows
        auto fits = [](int64_t n, int64_t least) { return n >= least && n <= most; };
        check(which >= 0 && which < 3 && !dimensions.empty() && dimensions.size() <= 3,
              "_conv_candidates(): expected a pass, 0 to 2, and one to three dimensions");
        check(fits(batch, 1) && fits(groups, 1) && fits(in_channels, 1) && fits(out_channels, 1) &&
                  in_channels % groups == 0 && out_channels % groups == 0,
              "_conv_candidates(): expected a batch and channels of at least 1, which the groups "
              "divide");
        ConvShape s;
        s.batch = batch;
        s.groups = groups;
        s.in_channels = in_channels;
        s.out_channels = out_channels;
        for (size_t d = 3 - dimensions.size(); d < 3; ++d) {
          const auto& [in, kernel, out, stride, padding, dilation] =
              dimensions[d + dimensions.size() - 3];
          check(fits(in, 1) && fits(kernel, 1) && fits(out, 1) && fits(stride, 1) &&
                    fits(padding, 0) && fits(dilation, 1),
                "_conv_candidates(): expected sizes, strides and dilations of at least 1, and no "
                "negative padding");
          s.in[d] = in;
          s.kernel[d] = kernel;
          s.out[d] = out;
          s.stride[d] = stride;
          s.padding[d] = padding;
          s.dilation[d] = dilation;
        }
        nb::list list;
        for (const auto& c : cpu::conv_candidates(static_cast<ConvPass>(which), s)) {
          list.append(nb::make_tuple(c.name, c.cost, c.work[0], c.work[1], c.work[2], c.work[3]));
        }
        return list;
      },
      nb::arg("which"), nb::arg("batch"), nb::arg("groups"), nb::arg("in_channels"),
      nb::arg("out_channels"), nb::arg("dimensions"),
      "The algorithms for a convolution: name, estimated nanoseconds and amounts of work.");
}

void bind_gemm_tuning(nb::module_& m) {
  m.def(
      "_force_gemm",
      [](const std::string& name) {
        check(cpu::force_gemm_algorithm(name.empty() ? nullptr : name.c_str()),
              "no way to multiply matrices is called '", name, "'");
      },
      nb::arg("name"),
      "Use this way for all matrix products that it can compute; '' to choose by estimates.");
  m.def(
      "_gemm_candidates",
      [](int64_t m, int64_t n, int64_t k, bool a_transposed, bool b_transposed) {
        constexpr int64_t most = 1 << 20;
        check(std::min({m, n, k}) >= 1 && std::max({m, n, k}) <= most,
              "_gemm_candidates(): expected sizes of at least 1");
        nb::list list;
        for (const auto& c : cpu::gemm_candidates(m, n, k, a_transposed, b_transposed))
          list.append(nb::make_tuple(c.name, c.cost, std::vector(c.work, c.work + 8)));
        return list;
      },
      nb::arg("m"), nb::arg("n"), nb::arg("k"), nb::arg("a_transposed"), nb::arg("b_transposed"),
      "The ways to compute a product: name, estimated nanoseconds and amounts of work.");
}

// Names of the ops that are public in taeda itself: taeda.add, taeda.softmax.
nb::list function_names() {
  nb::list names;
  for (const std::string& name : op_names()) {
    bool shown = false;
    for (const Op* op : overloads(name))
      shown |= (op->traits.forms & kFunction) && !*op->traits.module;
    if (shown && name[0] != '_') names.append(nb::str(name.c_str()));
  }
  return names;
}

// Refuses a machine that no kernel runs on, before anything runs that was compiled for more.
void check_machine() {
  const CpuChoice& choice = cpu_choice();
  if (!choice.error.empty()) throw std::runtime_error(choice.error);  // an ImportError
  if (!choice.warning.empty() && PyErr_WarnEx(PyExc_RuntimeWarning, choice.warning.c_str(), 1) != 0)
    throw nb::python_error();
}

// Gives a warning of the core to Python's `warnings`, at the line that is running.
void give_warning(const char* text) {
  py::AcquireGil gil;
  if (PyErr_WarnEx(PyExc_UserWarning, text, 1) != 0) throw PythonError();
}

void bind_warnings(nb::module_& m) {
  warning_handler = give_warning;
  m.def(
      "set_warn_always", [](bool on) { warn_always = on; }, nb::arg("b"),
      "Whether warnings that are given once in a process are given every time.");
  m.def(
      "is_warn_always_enabled", [] { return warn_always.load(); },
      "Whether warnings that are given once in a process are given every time.");
}

}  // namespace

NB_MODULE(_C, m) {
  check_machine();
  nb::set_leak_warnings(false);  // types and singletons live until the process ends
  nb::register_exception_translator(translate);
  PyObject* module = m.ptr();
  py::init_errors(module);
  py::init_dtype_device(module);
  py::init_size(module);
  py::init_tensor_type(module);
  py::init_generator(module);
  py::init_results(module);
  py::init_ops(module);
  py::init_library(module);
  py::init_tensor_methods();
  py::init_tensor_attributes();
  py::init_overrides(module);
  py::init_dispatch_modes(module);
  py::init_batching(module);
  py::init_traits(module);
  py::init_creation(module);
  py::init_interop(module);
  py::init_files(module);
  py::init_optim(module);
  py::init_named_tensors(module);
  py::init_extension(module);
  py::init_devices(module);
  py::init_package(module);
  py::init_class_slots(module);
  m.def("function_names", function_names,
        "Names of the ops that are functions of the package itself.");
  bind_warnings(m);
  bind_machine(m);
  bind_conv_tuning(m);
  bind_gemm_tuning(m);
  bind_autograd(m);
  bind_autocast(m);
  bind_profile(m);
  bind_step_log(m);
  bind_gradient_watch(m);
}
