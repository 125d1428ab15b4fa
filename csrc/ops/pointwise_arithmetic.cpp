// Every arithmetic and logical functor that is an op by itself.
#include "ops/pointwise_rows.h"

namespace taeda {
namespace {
const bool registered[] = {register_ops(portable::ArithmeticOps{}), register_ops(portable::RoundingOps{}),
                           register_ops(portable::LogicOps{})};
}
}  // namespace taeda
