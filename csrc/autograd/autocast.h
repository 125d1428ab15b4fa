// Autocast: a layer that runs some ops in a lower precision and some in float32, whatever the
// dtypes of the tensors they are given. On this thread, and for each kind of device by itself.
#pragma once

#include "base/device.h"
#include "base/dtype.h"

namespace taeda {

struct Autocast {
  bool enabled = false;
  DType dtype;  // the lower precision
};
struct AutocastState {
  Autocast cpu{.dtype = DType::BFloat16}, cuda{.dtype = DType::Float16};
  bool cache = true;  // parameters are converted once in a region

  Autocast& of(DeviceType type) { return type == DeviceType::CUDA ? cuda : cpu; }
};

AutocastState autocast();
void set_autocast(const AutocastState& state);
void clear_autocast_cache();

}  // namespace taeda
