// Autocast: a layer that runs some ops in a lower precision and some in float32, whatever the
// dtypes of the tensors they are given. On this thread.
#pragma once

#include "base/dtype.h"

namespace taeda {

struct Autocast {
  bool enabled = false;
  DType dtype = DType::BFloat16;  // the lower precision
  bool cache = true;              // parameters are converted once in a region
};

Autocast autocast();
void set_autocast(Autocast state);
void clear_autocast_cache();

}  // namespace taeda
