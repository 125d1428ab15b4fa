// Every elementary and special function and every activation that is an op by itself.
#include "ops/pointwise_rows.h"

namespace taeda {
namespace {
const bool registered[] = {register_ops(portable::MathOps{}), register_ops(portable::SpecialOps{}),
                           register_ops(portable::ActivationOps{})};
}
}  // namespace taeda
