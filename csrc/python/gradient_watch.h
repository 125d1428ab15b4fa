// What taeda.strict does in each backward pass.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace taeda::py {

class GradientWatch;

// The quick checks of every backward pass; those of a pass that is not usual are Python's.
class BackwardWatch {
 public:
  // `told` is called instead of `Tensor.backward` where a pass needs more checks.
  explicit BackwardWatch(nanobind::object told) : told_(std::move(told)) {}

  using Gradients = std::vector<std::shared_ptr<GradientWatch>>;

  int64_t patience = 0;  // so many passes need no other checks
  const Gradients& gradients() const { return *gradients_; }
  void set_gradients(Gradients gradients);  // TypeError if one is null

  // Whether this pass of a loss, which `backward` got without arguments, needs no other checks.
  bool is_usual(const Tensor& loss);
  PyObject* tell(PyObject* loss, PyObject* args, PyObject* kwargs) const;

  void before_pass() const;
  void after_pass() const;

 private:
  nanobind::object told_;
  std::shared_ptr<const Gradients> gradients_ = std::make_shared<const Gradients>();
};

// What `Tensor.backward` asks, or null.
extern std::shared_ptr<BackwardWatch> backward_watch;  // guarded by Python's lock
// Whether this thread's next call of `Tensor.backward` comes from what a watch was told.
extern thread_local bool backward_is_told;

inline std::shared_ptr<BackwardWatch> watch_of_backward() {
  if (!backward_watch) [[likely]]
    return nullptr;
  return std::exchange(backward_is_told, false) ? nullptr : backward_watch;
}

}  // namespace taeda::py
