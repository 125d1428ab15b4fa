#include "kernels/kernels.h"

#include "base/error.h"

namespace taeda {

void missing_kernel() { fail<NotImplemented>("this device has no kernel for it"); }

}  // namespace taeda
