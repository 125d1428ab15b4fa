// Telling taeda.record of backward passes.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace taeda::py {

class StepLog;
extern std::vector<StepLog*> listening;  // guarded by Python's lock

void note_backward(const Tensor& loss);

// What `backward` calls before it runs: nothing happens where nobody listens.
inline void tell_of_backward(const Tensor& loss) {
  if (!listening.empty()) [[unlikely]]
    note_backward(loss);
}

}  // namespace taeda::py
