// The losses and the times of a training loop's steps, for taeda.record. Python code that listens
// to each backward pass would cost a small step several times as much.
#include "python/step_log.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <optional>
#include <utility>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "python/casters.h"
#include "python/module.h"

namespace nb = nanobind;

namespace taeda::py {

std::vector<StepLog*> listening;

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The one real number of a tensor, if it is such.
std::optional<double> number(const Tensor& t) {
  if (!is_floating(t.dtype()) || t.numel() != 1) return {};
  try {
    return t.item().to<double>();
  } catch (const std::exception&) {  // of a device, or a kind, without memory
    return {};
  }
}

}  // namespace

class StepLog {
 public:
  using Losses = std::vector<std::optional<double>>;
  using Ends = std::vector<int64_t>;

  StepLog() = default;
  StepLog(const StepLog&) = delete;
  StepLog& operator=(const StepLog&) = delete;
  ~StepLog() { stop(); }

  void start(const Tensor& sentinel) {
    stop();
    sentinel_ = sentinel;
    ends_.push_back(now());
    listening.push_back(this);
  }

  void stop() {
    std::erase(listening, this);
    sentinel_ = {};
    forget_scaled();
  }

  void before_backward(const Tensor& loss, std::optional<double> value) {
    const AutogradMeta* meta = meta_of(sentinel_.impl());
    const bool cleared = !meta || !meta->grad.defined();
    for (const auto& [known, factor] : scaled_) {
      if (value && known.impl() == loss.impl()) value = *value / factor;
    }
    if (!begun_ || cleared) {
      sum_ = value;
    } else if (sum_) {
      sum_ = value ? std::optional(*sum_ + *value) : std::nullopt;
    }
    begun_ = true;
  }

  // A loss is `factor` times another one, which is the one to note.
  void scaled(const Tensor& loss, double factor) { scaled_.emplace_back(loss, factor); }

  // Notes the end of a step; returns whether the time `due` has come.
  bool step(int64_t due) {
    ends_.push_back(now());
    losses_.push_back(std::exchange(sum_, std::nullopt));
    forget_scaled();
    begun_ = false;
    return ends_.back() >= due;
  }

  // The losses and the ends that were noted since the last call.
  std::pair<Losses, Ends> take() { return {std::exchange(losses_, {}), std::exchange(ends_, {})}; }

 private:
  void forget_scaled() { decltype(scaled_)().swap(scaled_); }  // what ends with them may add others

  Tensor sentinel_;
  std::vector<std::pair<Tensor, double>> scaled_;  // since the last step
  bool begun_ = false;                             // a backward pass has run since the last step
  std::optional<double> sum_;  // of the losses; nothing where one was no single number
  Losses losses_;
  Ends ends_;
};

void note_backward(const Tensor& loss) {
  if (current_node()) return;  // a pass within a derivative, as of a checkpoint
  const std::optional<double> value = number(loss);  // a mode that sees this may stop a log
  for (StepLog* log : listening) log->before_backward(loss, value);
}

}  // namespace taeda::py

namespace taeda {

void bind_step_log(nb::module_& m) {
  using py::StepLog;
  nb::class_<StepLog>(m, "_StepLog", "The losses and the times of a training loop's steps.")
      .def(nb::init<>())
      .def("start", &StepLog::start, nb::arg("sentinel"),
           "Listen to backward passes; a parameter without gradient says that all are cleared.")
      .def("stop", &StepLog::stop, "Listen no more.")
      .def("scaled", &StepLog::scaled, nb::arg("loss"), nb::arg("factor"),
           "Note a loss, if a backward pass begins there, as divided by the factor.")
      .def("step", &StepLog::step, nb::arg("due"),
           "Note the end of a step; whether the clock, in ns, has reached `due`.")
      .def("take", &StepLog::take,
           "The losses and ends since the last call: of each step, its loss or None, and the ns of "
           "the clock; one more for the start.");
}

}  // namespace taeda
