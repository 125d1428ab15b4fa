#pragma once

#include "base/error.h"

namespace taeda {

// A device of a kind that this build has none of: AssertionError, as in PyTorch.
struct Unavailable : Error {
  using Error::Error;
};

}  // namespace taeda
