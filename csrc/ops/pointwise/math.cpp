// Every elementary and special function that is an op by itself.
#include "ops/pointwise/rows.h"

namespace taeda {
namespace {
const bool registered[] = {register_ops(portable::MathOps{}), register_ops(portable::SpecialOps{}),
                           register_ops(portable::BesselOps{}),
                           register_aliases({{"arcsin", "asin"},
                                             {"arccos", "acos"},
                                             {"arctan", "atan"},
                                             {"arctan2", "atan2"},
                                             {"arcsinh", "asinh"},
                                             {"arccosh", "acosh"},
                                             {"arctanh", "atanh"}})};
}
}  // namespace taeda
