// Every arithmetic and logical functor that is an op by itself.
#include "ops/pointwise/rows.h"

namespace taeda {
namespace {
const bool registered[] = {register_ops(portable::ArithmeticOps{}),
                           register_ops(portable::RoundingOps{}),
                           register_ops(portable::LogicOps{}),
                           register_aliases({{"multiply", "mul"},
                                             {"negative", "neg"},
                                             {"absolute", "abs", kInplaceFunction},
                                             {"fix", "trunc"},
                                             {"greater", "gt"},
                                             {"greater_equal", "ge"},
                                             {"less", "lt"},
                                             {"less_equal", "le"},
                                             {"not_equal", "ne"},
                                             {"__lshift__", "bitwise_left_shift"},
                                             {"__rshift__", "bitwise_right_shift"}})};
}
}  // namespace taeda
