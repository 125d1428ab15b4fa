// What taeda.strict looks at in each backward pass and in each step. Python code that looks at
// every gradient would cost a small step several times as much.
#include "python/gradient_watch.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "autograd/meta.h"
#include "ops/core/tensor_ops.h"
#include "python/casters.h"
#include "python/module.h"

namespace nb = nanobind;

namespace taeda::py {
namespace {

// The elements of a tensor as they are in memory, if they are there.
std::span<const std::byte> memory_of(const Tensor& t) {
  if ((t.flags() & (kOverride | kDispatch | kPlaceFlags)) || !t.is_contiguous()) return {};
  return {static_cast<const std::byte*>(t.data()), t.nbytes()};
}

bool is_zero(const Tensor& t) {
  if (t.flags() & (kOverride | kDispatch | kMeta | kNoMemory))
    return false;  // the values of sparse ones are elsewhere
  const auto bytes = memory_of(t);
  if (bytes.empty()) return !op<"any">(t).item().to<bool>();
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

using Head = std::array<std::byte, 32>;
Head head_of(const Tensor& t) {
  Head head{};
  const auto bytes = memory_of(t);
  std::copy_n(bytes.begin(), std::min(bytes.size(), head.size()), head.begin());
  return head;
}

// Whether a loss is one finite number.
bool is_finite_number(const Tensor& loss) {
  if (!is_floating(loss.dtype()) || loss.numel() != 1) return false;
  if (const auto bytes = memory_of(loss); loss.dtype() == DType::Float32 && !bytes.empty())
    return std::isfinite(*reinterpret_cast<const float*>(bytes.data()));
  try {
    return std::isfinite(loss.item().to<double>());
  } catch (const std::exception&) {  // of a device, or a kind, without memory
    return false;
  }
}

}  // namespace

// The gradient of one parameter of an optimizer, its sentinel: of how many backward passes it is
// the sum, and whether a step has used a part of it.
class GradientWatch {
 public:
  GradientWatch(Tensor sentinel, int64_t limit) : sentinel_(std::move(sentinel)), limit_(limit) {}

  const Tensor& sentinel() const { return sentinel_; }
  int64_t backwards() const { return backwards_; }
  bool reused() const { return reused_; }
  // Whether the last step has used the gradient as it is now.
  bool stale() const {
    const Tensor now = gradient();
    return now.defined() && used_ && is_known(now) && head_ == head_of(now);
  }

  // Begins again: with another parameter, or as the gradient is known to be of one pass.
  void begin(Tensor sentinel) {
    sentinel_ = std::move(sentinel);
    counted(1, false);
  }

  void before_pass() {
    const Tensor now = gradient();
    const bool cleared = !now.defined() || is_zero(now);
    if (cleared) counted(0, false);
    if (cleared || now.impl() != known_.impl()) used_ = false;
    note(now);
  }
  void after_pass() {
    const Tensor now = gradient();
    if (!now.defined() || is_known(now)) return;
    counted(backwards_ + 1, reused_ || used_);
    used_ = false;
    note(now);
  }

  // Whether a step may use the gradient: notes it then. What it finds otherwise, Python looks at.
  bool usual_step() {
    if (!gradient().defined() || reused_ || backwards_ > limit_ || stale()) return false;
    stepped();
    return true;
  }
  // Notes the gradient that a step uses.
  void stepped() {
    const Tensor now = gradient();
    used_ = now.defined();
    note(now);
  }

 private:
  // Held, since a mode that sees how it is read may take it from the parameter.
  Tensor gradient() const { return grad_of(sentinel_); }
  bool is_known(const Tensor& t) const {
    return known_.impl() == t.impl() && version_ == t.version();
  }
  void note(const Tensor& now) {
    if (known_.impl() != now.impl()) known_ = now;
    version_ = now.defined() ? now.version() : 0;
    head_ = now.defined() ? head_of(now) : Head();
  }
  void counted(int64_t backwards, bool reused) {
    backwards_ = backwards;
    reused_ = reused;
  }

  Tensor sentinel_;
  int64_t limit_;         // of how many passes a gradient may be the sum
  Tensor known_;          // the gradient after the last pass or step; held, so that no other one
  uint32_t version_ = 0;  // gets its address
  Head head_{};           // no version counts what is written by way of .data
  bool used_ = false;     // by the last step
  int64_t backwards_ = 1;
  bool reused_ = false;
};

std::shared_ptr<BackwardWatch> backward_watch;
thread_local bool backward_is_told = false;

bool BackwardWatch::is_usual(const Tensor& loss) {
  if (patience <= 0 || !is_finite_number(loss)) return false;
  --patience;
  return true;
}

PyObject* BackwardWatch::tell(PyObject* loss, PyObject* args, PyObject* kwargs) const {
  const nb::object function = told_, all = nb::make_tuple(nb::handle(loss)) + nb::borrow(args);
  backward_is_told = true;
  PyObject* result = PyObject_Call(function.ptr(), all.ptr(), kwargs);
  backward_is_told = false;  // it may have failed before the pass
  return result;
}

void BackwardWatch::set_gradients(Gradients gradients) {
  check<TypeError>(std::ranges::find(gradients, nullptr) == gradients.end(),
                   "_BackwardWatch.gradients: None among them");
  gradients_ = std::make_shared<const Gradients>(std::move(gradients));
}
void BackwardWatch::before_pass() const {
  const auto held = gradients_;  // a mode that sees the pass may exchange them
  for (const auto& gradient : *held) gradient->before_pass();
}
void BackwardWatch::after_pass() const {
  const auto held = gradients_;
  for (const auto& gradient : *held) gradient->after_pass();
}

}  // namespace taeda::py

namespace taeda {

void bind_gradient_watch(nb::module_& m) {
  using py::BackwardWatch;
  using py::GradientWatch;
  nb::class_<GradientWatch>(m, "_GradientWatch", "What is known of the gradient of a parameter.")
      .def(nb::init<Tensor, int64_t>(), nb::arg("sentinel"), nb::arg("limit"))
      .def_prop_ro("sentinel", &GradientWatch::sentinel)
      .def_prop_ro("backwards", &GradientWatch::backwards)
      .def_prop_ro("reused", &GradientWatch::reused)
      .def_prop_ro("stale", &GradientWatch::stale)
      .def("begin", &GradientWatch::begin, nb::arg("sentinel"),
           "Watch a parameter whose gradient is of one backward pass.")
      .def("usual_step", &GradientWatch::usual_step,
           "Note the gradient that a step uses, unless something is wrong with it.")
      .def("stepped", &GradientWatch::stepped, "Note the gradient that a step uses.");
  nb::class_<BackwardWatch>(m, "_BackwardWatch", "The quick checks of every backward pass.")
      .def(nb::init<nb::object>(), nb::arg("told"))
      .def_rw("patience", &BackwardWatch::patience)
      .def_prop_rw("gradients", &BackwardWatch::gradients, &BackwardWatch::set_gradients)
      .def("before_pass", &BackwardWatch::before_pass, "Look at the gradients that are there.")
      .def("after_pass", &BackwardWatch::after_pass, "Look at them again.");
  m.def(
      "_watch_backward", [](std::shared_ptr<BackwardWatch> watch) { py::backward_watch = watch; },
      nb::arg("watch").none(), "Let Tensor.backward ask a watch; None: nothing.");
}

}  // namespace taeda
