// Ops on devices that lack a kernel.
#pragma once

#include "ops/core/op.h"

namespace taeda {

// Runs Op::factory, which makes tensors on the CPU and the meta device; those of other devices are
// made on the CPU and moved.
Value make_on_device(Call& c);

}  // namespace taeda
