#pragma once

#include "base/error.h"

namespace taeda {

// A device of a kind (CUDA, XPU, MTIA) that this build was made without: AssertionError, as in
// PyTorch.
struct Unavailable : Error {
  using Error::Error;
};

}  // namespace taeda
